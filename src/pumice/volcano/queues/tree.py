"""Queues as a tree under the queue ``root``: whose amounts count in whose. Source: Volcano capacity (spec 04 §8.2)."""

from __future__ import annotations

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.dtypes import F64, I32, AnyArray, Bool
from pumice.columns.queues import QueueTable

ROOT = "root"
#: Ancestors that a queue may have. Volcano's webhook has a limit too; without one a chain of queues costs its square.
DEPTH_MAX = 64


class QueueTree:
    """``parent`` (Q,) a row, -1 none; ``depth`` (Q,) how many ancestors a queue has; ``is_leaf`` (Q,); ``levels`` rows
    by depth. ``problem``: why the queues are no tree under the root, empty where they are."""

    __slots__ = ("_lines", "depth", "is_leaf", "levels", "parent", "problem")

    def __init__(self, parent: I32, levels: list[AnyArray], problem: str = "") -> None:
        self.parent, self.levels, self.problem = parent, levels, problem
        self.depth: I32 = np.zeros(len(parent), dtype=np.int32)
        for depth, rows in enumerate(levels):
            self.depth[rows] = depth
        self.is_leaf: Bool = np.ones(len(parent), dtype=bool)
        self.is_leaf[parent[parent >= 0]] = False
        self._lines: dict[int, list[int]] = {}

    @classmethod
    def flat(cls, count: int) -> QueueTree:
        """Queues that are nobody's parent."""
        return cls(np.full(count, -1, dtype=np.int32), [np.arange(count)])

    @classmethod
    def of(cls, queues: QueueTable) -> QueueTree:
        """The tree that the queues' parents make. Where there is a ``problem``: as much of it as there is."""
        parent, count = queues.parent.copy(), len(queues)
        by_parent = parent.argsort(kind="stable")
        ordered = parent[by_parent]
        levels, left = [(parent < 0).nonzero()[0]], count - int((parent < 0).sum())
        while left and len(levels) <= DEPTH_MAX and len(levels[-1]):
            starts, ends = (np.searchsorted(ordered, levels[-1], side) for side in ("left", "right"))
            levels.append(np.sort(np.concatenate([by_parent[a:b] for a, b in zip(starts, ends, strict=True)])))
            left -= len(levels[-1])
        lost = np.ones(count, dtype=bool)
        lost[np.concatenate(levels)] = False
        parent[lost] = -1
        levels[0] = np.concatenate((levels[0], lost.nonzero()[0]))
        return cls(parent, levels, _problem(queues, lost))

    def line(self, row: int) -> list[int]:
        """The queue, its parent and so on up to the root. Not to be written on."""
        found = self._lines.get(row)
        if found is None:
            found = [row]
            while (up := int(self.parent[found[-1]])) >= 0:
                found.append(up)
            self._lines[row] = found
        return found

    def above(self, row: int, levels: int) -> list[int]:
        """The next so many ancestors of a queue but the root, the nearest first."""
        return self.line(row)[1:-1][:levels]

    def parted(self, left: int, right: int) -> tuple[int, int]:
        """Where the lines of two queues part, seen from the root: the highest of each that is not of both. The queues
        themselves where one is the other's ancestor."""
        mine, others = self.line(left), self.line(right)
        for i in range(-1, -min(len(mine), len(others)) - 1, -1):
            if mine[i] != others[i]:
                return mine[i], others[i]
        return left, right

    def in_common(self, left: int, right: int) -> int:
        """How many ancestors two queues have in common."""
        lines = zip(reversed(self.line(left)[1:]), reversed(self.line(right)[1:]), strict=False)
        count = 0
        for a, b in lines:
            if a != b:
                break
            count += 1
        return count

    def summed_up(self, own: F64) -> F64:
        """What each queue has with all that are below it, from what each has of its own. Shapes (Q, R)."""
        found = own.copy()
        for rows in self.levels[:0:-1]:
            found += sums_by(self.parent[rows], found[rows], len(found))
        return found


def _problem(queues: QueueTable, lost: Bool) -> str:
    """Why queues are no tree under the root; ``lost``: on a circle, or too deep."""
    root = queues.row_of.get(ROOT, -1)
    if root < 0:
        return f'there is no queue "{ROOT}"'
    orphans = queues.parent < 0
    orphans[root] = False
    if orphans.any():
        queue = queues.objs[int(orphans.argmax())]
        return f'parent "{queue.parent}" of queue "{queue.name}" is not there'
    if lost.any():
        name = queues.names[int(lost.argmax())]
        return f'queue "{name}" is its own ancestor, or more than {DEPTH_MAX} levels below "{ROOT}"'
    return ""
