"""Choose nodes for equal tasks one after the other, each time the node that is best then.

The score of a node depends on that node alone. So none of k tasks goes to a node that is not among the k best at the
beginning, and what happens to one node decides nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from heapq import heapify, heapreplace

import numpy as np

from pumice.columns.dtypes import F64, AnyArray

#: Hypothetical rows per call. More cost more than they save.
LOOK_MAX = 256

#: The score of nodes (rows,) after a number of further tasks (rows,) on each, -inf if the next does not fit.
ScoreAfter = Callable[[AnyArray, F64], F64]


class KBestMerge:
    """Merges the score sequences of the best nodes: after 0, 1, 2 … more tasks on each, computed as far as needed.

    ``places``: of equal nodes the one with the lower place is chosen. ``steps``: the scores that are known, equally
    many for each node.
    """

    __slots__ = ("_count", "_has_more", "_places", "_rows", "_score_after", "_steps")

    def __init__(
        self, rows: AnyArray, places: AnyArray, steps: list[list[float]], count: int, score_after: ScoreAfter
    ) -> None:
        self._rows: list[int] = rows.tolist()
        self._places: list[int] = places.tolist()
        self._steps, self._count, self._score_after = steps, count, score_after
        self._has_more = False

    def climb(self) -> list[int]:
        """Choose the best node again and again, ``count`` times or until none is left."""
        # The heap orders by score, then by place, which is what argmax over all nodes would choose.
        heap = [
            (-steps[0], place, i, 0) for i, (place, steps) in enumerate(zip(self._places, self._steps, strict=True))
        ]
        heapify(heap)
        picked: list[int] = []
        for _ in range(self._count):
            score, place, i, level = heap[0]
            # The negative score of a node without room: all others have none either.
            if score == np.inf:
                break
            picked.append(self._rows[i])
            level += 1
            steps = self._steps[i]
            # Most nodes get one task, so scores after more tasks are only computed for those that are chosen again.
            score = steps[level] if level < len(steps) else self._step(i, level)
            heapreplace(heap, (-score, place, i, level))
        return picked

    def _step(self, i: int, level: int) -> float:
        """Return the score of a node at a level that is not known yet."""
        steps = self._steps[i]
        if not self._has_more and level < self._count:
            self._look_further()
        if level >= len(steps):
            if len(steps) >= self._count:
                return -np.inf
            self._look_up(i)
        found: float = steps[level]
        return found

    def _look_further(self) -> None:
        """Extend all nodes. If one gets more tasks than was computed, others may, too."""
        rows, self._has_more = np.array(self._rows), True
        known = len(self._steps[0])
        width = max(1, min(self._count - known, LOOK_MAX // len(rows)))
        which, after = _rungs(len(rows), known, width)
        self._extend(self._steps, self._score_after(rows[which], after), width)

    def _look_up(self, i: int) -> None:
        """Extend a node that gets many tasks, together with those after it that are as far."""
        # The nodes after it are next when it is full, and a call costs more than its rows.
        known = len(self._steps[i])
        width = min(known + 16, self._count - known)
        which = [i]
        for other in range(i + 1, min(len(self._rows), i + LOOK_MAX // width)):
            # One call has the same levels for all its nodes, so a node of which more or less is known ends the group.
            if len(self._steps[other]) != known:
                break
            which.append(other)
        step, after = _rungs(len(which), known, width)
        rows = np.array([self._rows[each] for each in which])
        self._extend([self._steps[each] for each in which], self._score_after(rows[step], after), width)

    @staticmethod
    def _extend(steps: list[list[float]], scores: F64, width: int) -> None:
        for known, more in zip(steps, scores.reshape(len(steps), width).tolist(), strict=True):
            known += more


@lru_cache(maxsize=256)
def _rungs(count: int, first: int, width: int) -> tuple[AnyArray, F64]:
    """Return for ``count`` nodes with ``width`` levels each: the node of each level, and its number from ``first``
    on."""
    which, after = np.repeat(np.arange(count), width), np.tile(np.arange(float(first), first + width), count)
    # Read-only, because the cache hands the same arrays to all callers.
    which.setflags(write=False)
    after.setflags(write=False)
    return which, after
