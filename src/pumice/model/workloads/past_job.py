"""What is remembered of a job after it has come, and after it has ended: the basis of predictions."""

from __future__ import annotations

import re

from msgspec import Struct

from pumice.model.resources import Resource

_NUMBERS = re.compile(r"[0-9a-f]{8,}|[0-9]+")
_TEXT_MAX = 100


class PastJob(Struct, frozen=True):
    """A job that came, by ``namespace/name``. ``name``: without its numbers, so that runs of one script are equal.

    ``pods``: how many; ``request``: what the first of them asks for. ``estimate_s``: 0 if nothing says. ``arrived``,
    ``ran_s``: seconds since the epoch, and from start to end; None for a job that has not ended.
    """

    key: str
    queue: str
    user: str
    name: str
    pods: int
    request: Resource
    estimate_s: float
    arrived: float
    ran_s: float | None = None


def stem_of(name: str) -> str:
    """Return a name without numbers and hashes, which differ between runs of one script: ``train-17`` is ``train-``."""
    return _NUMBERS.sub("", name[:_TEXT_MAX])
