"""Whether a queue may take from others what it asks for. Arrays in, answers out; units and inf as in ``queue_tree``.

Source: KAI proportion (reclaimable). There lumps are judged one after the other; as what remains only falls and both
strategies ask for it to be above a bound, the last lump of each queue that loses decides for all before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class QueueStates:
    """Queues as they are before anything is taken. (Q, R), ``parent`` (Q,): a row, -1 none."""

    parent: Rows
    allocated: F64
    non_preemptible: F64
    quota: F64
    fair: F64
    share: F64

    def line(self, row: int) -> list[int]:
        """The queue, its parent and so on to the root."""
        found = [row]
        while (up := int(self.parent[found[-1]])) >= 0:
            found.append(up)
        return found


def may_reclaim(states: QueueStates, queue: int, need: F64, preemptible: bool) -> bool:
    """Whether it would stay within its fair share and, where it cannot be preempted, within its quota.

    ``need`` (R,).
    """
    if (states.allocated[queue] + need > states.fair[queue]).any():
        return False
    return preemptible or bool((states.non_preemptible[queue] + need <= states.quota[queue]).all())


def is_reclaimable(
    states: QueueStates, queue: int, need: F64, preemptible: bool, leaves: Rows, lumps: F64, multiplier: float = 1.0
) -> bool:
    """Whether ``queue`` may have ``need`` (R,) for what leaf queues lose: ``lumps`` (L, R), that of ``leaves`` (L,)
    each, in the order in which they go.

    ``multiplier``: how much fuller than its own share a queue above its fair share must find the one it takes from.
    """
    line = states.line(queue)
    remaining, before, touched = _losses(states, line, leaves, lumps)
    above = dict(zip(line[1:], line, strict=False)) | {-1: line[-1]}  # the one of its line below each
    for loser in before:
        taker = above[int(states.parent[loser])]
        if not _may_lose(states, taker, loser, need, before[loser]):
            return False
    involved = (need > 0) | (lumps > 0).any(axis=0)
    for taker in line:
        siblings = [row for row in touched if row != taker and states.parent[row] == states.parent[taker]]
        if siblings and _overfills(states, taker, remaining[taker] + need, siblings, remaining, involved, multiplier):
            return False
        if not preemptible and (states.non_preemptible[taker] + need > states.quota[taker]).any():
            return False
    return True


def _losses(states: QueueStates, line: list[int], leaves: Rows, lumps: F64) -> tuple[F64, dict[int, F64], list[int]]:
    """(what remains of each queue in the end, what remains of each that the taker's line parts from before its last
    lump goes, the rows that lose something)."""
    remaining = states.allocated.copy()
    within, touched = set(line), dict[int, None]()
    last: dict[int, int] = {}  # the place of the last lump of each that the taker's line parts from
    for leaf, place in {leaf: place for place, leaf in enumerate(leaves.tolist())}.items():
        path = states.line(leaf)
        remaining[path] -= lumps[leaves == leaf].sum(axis=0)
        touched.update(dict.fromkeys(path))
        parting = _parting(path, within)
        last[parting] = max(place, last.get(parting, place))
    return remaining, {row: remaining[row] + lumps[place] for row, place in last.items()}, list(touched)


def _parting(path: list[int], within: set[int]) -> int:
    """The highest of a line of queues that is not in another one; the leaf where all of it is."""
    return next((row for row in reversed(path) if row not in within), path[0])


def _may_lose(states: QueueStates, taker: int, loser: int, need: F64, before: F64) -> bool:
    """Whether one more lump may go: what it has is above its share, or above its quota while the taker is within its
    own."""
    if (before > states.share[loser]).any():
        return True
    within = (states.allocated[taker] + need <= states.quota[taker]).all()
    return bool(within and (before > states.quota[loser]).any())


def _overfills(
    states: QueueStates,
    taker: int,
    held: F64,
    siblings: list[int],
    remaining: F64,
    involved: Bool,
    multiplier: float,
) -> bool:
    """Whether it would be above its fair share and, for it, as full as one of those that lose."""
    mine = _filled(held, states.fair[taker])
    theirs, fair = _filled(remaining[siblings], states.fair[siblings]), states.fair[siblings]
    return bool(((mine > 1) & (fair > 0) & (mine * multiplier >= theirs) & involved).any())


def _filled(amount: F64, fair: F64) -> F64:
    """How full: nothing of nothing is 0, something of nothing inf, anything of unlimited 0."""
    empty = np.where(amount > 0, np.inf, 0.0)
    return np.divide(amount, fair, out=empty, where=fair != 0)
