"""Build the tree of queues under the queue ``root``. Source: Volcano capacity plugin with hierarchy."""

from __future__ import annotations

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.dtypes import F64, I32, AnyArray, Bool
from pumice.columns.queues import QueueTable

ROOT = "root"
#: Largest number of ancestors. Volcano's webhook has a limit too; without one, a chain of n queues costs n².
DEPTH_MAX = 64


class QueueTree:
    """A tree of queues.

    ``parent`` (Q,): a row, -1 for none. ``depth`` (Q,): number of ancestors. ``is_leaf`` (Q,). ``levels``: rows by
    depth. ``problem``: why the queues form no tree under the root, or "".
    """

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
        """Return queues without parents."""
        return cls(np.full(count, -1, dtype=np.int32), [np.arange(count)])

    @classmethod
    def of(cls, queues: QueueTable) -> QueueTree:
        """Return the tree of the queues' parents. With a ``problem``, the tree contains what can be built."""
        parent, count = queues.parent.copy(), len(queues)
        # Sorted by parent, the children of a queue are a slice, and each level costs a binary search per queue.
        by_parent = parent.argsort(kind="stable")
        ordered = parent[by_parent]
        levels, left = [(parent < 0).nonzero()[0]], count - int((parent < 0).sum())
        while left and len(levels) <= DEPTH_MAX and len(levels[-1]):
            starts, ends = (np.searchsorted(ordered, levels[-1], side) for side in ("left", "right"))
            levels.append(np.sort(np.concatenate([by_parent[a:b] for a, b in zip(starts, ends, strict=True)])))
            left -= len(levels[-1])
        lost = np.ones(count, dtype=bool)
        lost[np.concatenate(levels)] = False
        # Queues in a cycle or too deep become roots, so that walks upwards end.
        parent[lost] = -1
        levels[0] = np.concatenate((levels[0], lost.nonzero()[0]))
        return cls(parent, levels, _problem(queues, lost))

    def line(self, row: int) -> list[int]:
        """Return the queue and its ancestors up to the root. Read-only."""
        found = self._lines.get(row)
        if found is None:
            found = [row]
            while (up := int(self.parent[found[-1]])) >= 0:
                found.append(up)
            self._lines[row] = found
        return found

    def above(self, row: int, levels: int) -> list[int]:
        """Return the next ancestors of a queue without the root, the nearest first."""
        # Without the root, which every queue has in common with every other.
        return self.line(row)[1:-1][:levels]

    def parted(self, left: int, right: int) -> tuple[int, int]:
        """Return the highest queue on each path to the root that is not on both. If one queue is the other's ancestor,
        return the queues themselves."""
        mine, others = self.line(left), self.line(right)
        for i in range(-1, -min(len(mine), len(others)) - 1, -1):
            # From the root down, so the first difference is the highest queue that is not shared.
            if mine[i] != others[i]:
                return mine[i], others[i]
        return left, right

    def in_common(self, left: int, right: int) -> int:
        """Return how many ancestors two queues have in common."""
        lines = zip(reversed(self.line(left)[1:]), reversed(self.line(right)[1:]), strict=False)
        count = 0
        for a, b in lines:
            if a != b:
                break
            count += 1
        return count

    def summed_up(self, own: F64) -> F64:
        """Return amounts of queues including all queues below them. Shapes (Q, R)."""
        found = own.copy()
        # From the deepest level upwards, so that each level is complete before it is added.
        for rows in self.levels[:0:-1]:
            found += sums_by(self.parent[rows], found[rows], len(found))
        return found


def _problem(queues: QueueTable, lost: Bool) -> str:
    """Return why the queues form no tree under the root. ``lost``: queues in a cycle or too deep."""
    root = queues.row_of.get(ROOT, -1)
    if root < 0:
        return f'there is no queue "{ROOT}"'
    # The root is the only queue that may lack a parent.
    orphans = queues.parent < 0
    orphans[root] = False
    if orphans.any():
        queue = queues.objs[int(orphans.argmax())]
        return f'parent "{queue.parent}" of queue "{queue.name}" is not there'
    if lost.any():
        name = queues.names[int(lost.argmax())]
        return f'queue "{name}" is its own ancestor, or more than {DEPTH_MAX} levels below "{ROOT}"'
    return ""
