"""What became of one case."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Status(StrEnum):
    """ACCEPTED: Pumice differs on purpose, and the reason names the decision record or the detail of Go."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_YET = "not_yet"
    ACCEPTED = "accepted"


class CaseResult(Struct, frozen=True):
    """``file`` is written as in the index of its folder; ``reason`` is empty only where the case passed."""

    file: str
    name: str
    status: Status
    reason: str = ""


class NotYet(Exception):
    """The case needs something that Pumice does not have; the text names it."""


class Unusable(Exception):
    """The case cannot be read, or says something that the runner does not understand: it cannot pass."""
