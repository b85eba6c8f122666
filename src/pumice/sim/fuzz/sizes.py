"""How large a world is. Most worlds are small: what a few jobs on one or two nodes can show is found at a fraction of
the cost. Some faults need more jobs and nodes."""

from __future__ import annotations

from typing import NamedTuple

from pumice.sim.fuzz.dice import Dice

#: When the last job of a world comes at the latest, in seconds.
LAST_ARRIVAL_S = 300


class Size(NamedTuple):
    """Lowest and highest numbers of nodes, of jobs, and of equal pods of a job.

    ``more_pods``: those that a job which fills the cluster has more. ``contest_share``: share of worlds in which all
    jobs ask for the same, so that a job finds room as soon as a pod of another has left, and little protects that pod.
    ``last_arrival_s``: when the last job comes at the latest.
    """

    nodes: tuple[int, int]
    jobs: tuple[int, int]
    pods: tuple[int, int] = (1, 5)
    more_pods: int = 3
    contest_share: float = 0.0
    last_arrival_s: int = LAST_ARRIVAL_S


#: A job that fills the cluster, and one that finds it full.
TINY = Size((1, 2), (2, 2), (1, 2), more_pods=5, contest_share=0.8, last_arrival_s=100)
SMALL = Size((1, 2), (3, 5), (1, 3))  # larger gangs would not fit
MIDDLE = Size((2, 4), (8, 12))
LARGE = Size((5, 8), (14, 20))
#: Sizes of 1,000 worlds.
_OF_THOUSAND = (TINY,) * 965 + (SMALL,) * 30 + (MIDDLE,) * 4 + (LARGE,)


def draw_size(dice: Dice) -> Size:
    """Return the size of a world: tiny in 965 of 1,000."""
    return dice.one(_OF_THOUSAND)
