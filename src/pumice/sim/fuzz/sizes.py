"""How large a world is. Most worlds are small: what a few jobs on one or two nodes can show is found at a fraction of
the cost. Some faults need more jobs and nodes."""

from __future__ import annotations

from typing import NamedTuple

from pumice.sim.fuzz.dice import Dice


class Size(NamedTuple):
    """Lowest and highest numbers of nodes, of jobs, and of equal pods of a job."""

    nodes: tuple[int, int]
    jobs: tuple[int, int]
    pods: tuple[int, int] = (1, 5)


SMALL = Size((1, 2), (3, 5), (1, 3))  # larger gangs would not fit
MIDDLE = Size((2, 4), (8, 12))
LARGE = Size((5, 8), (14, 20))
#: Sizes of 50 worlds.
_OF_FIFTY = (SMALL,) * 43 + (MIDDLE,) * 6 + (LARGE,)


def draw_size(dice: Dice) -> Size:
    """Return the size of a world: small in 43 of 50."""
    return dice.one(_OF_FIFTY)
