"""Questions that a cycle cannot answer from its snapshot: the port to programs that a policy names.

The shell passes it in, like the planner. A cycle under a policy without such programs is a function of its snapshot;
otherwise of its snapshot and the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class OutsideError(Exception):
    """Why there is no answer, as a sentence."""


class Outside(Protocol):
    """A port to external programs."""

    def ask(self, url: str, question: Mapping[str, object], within_s: float) -> Mapping[str, object]:
        """Return the answer to a question, both as JSON, within ``within_s`` seconds. The time for all answers of a
        cycle together is bounded, too. Raises: OutsideError."""
        ...


class _NoPrograms:
    """A port without programs."""

    def ask(self, url: str, question: Mapping[str, object], within_s: float) -> Mapping[str, object]:
        raise OutsideError("external programs are not asked here")


#: For simulations and for cycles on files, which must not depend on a program's answers.
NO_PROGRAMS: Outside = _NoPrograms()
