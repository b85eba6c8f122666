"""What came of a world."""

from __future__ import annotations

from typing import NamedTuple


class PlayResult(NamedTuple):
    """The result of a world. ``problem``: the broken law, or the kind of fault in the program, "" for none. Numbers of
    pods bound and evicted, 0 if there is a problem."""

    problem: str
    binds: int = 0
    evictions: int = 0
