"""Blockers about room that is kept for the start of a job, and what made that start later."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from pumice.model.blockers.base import Blocker
from pumice.model.blockers.changes import Change, Wait

#: Kinds of ``MovedBy``.
OVERRUN, STARTED, AHEAD = "Overrun", "Started", "Ahead"
ROOM, TOO_LONG, NO_PLACE, REPLANNED = "Room", "TooLong", "NoPlace", "Replanned"


class MovedBy(Struct, frozen=True):
    """What made a start later than was said.

    ``kind``: OVERRUN (``job`` runs longer than its estimate), STARTED (``job`` has started since, and does not end in
    time), AHEAD (``job`` goes before it), ROOM (nodes have less room than before), TOO_LONG (room was kept for as long
    as is allowed), NO_PLACE (its room was free for as long as its estimate, and it was not placed there), or REPLANNED
    (its pods, estimates or the policy changed).
    """

    kind: str
    job: str = ""


class StartReserved(Blocker, frozen=True):
    """Room is reserved for the job from ``start`` on, in seconds since the epoch; None: no longer. ``waits_for``: keys
    of some jobs whose ends that rests on, the latest last. ``first``: the start that was said first. If the start was
    moved in this cycle, it was ``said`` before (None: it was not moved), and is later because of ``moved_by``."""

    code: ClassVar[str] = "StartReserved"
    start: float | None
    waits_for: tuple[str, ...] = ()
    first: float | None = None
    said: float | None = None
    moved_by: tuple[MovedBy, ...] = ()

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Wait(),)
