"""Decide which running tasks queues have to give back. Source: Volcano capacity plugin, Reclaimable."""

from __future__ import annotations

import numpy as np

from pumice.algorithms.groups import in_turn
from pumice.algorithms.shares import EPS
from pumice.columns.dtypes import F64, I32, I64, MEMORY, Bool
from pumice.columns.rows import Candidates, TaskRows
from pumice.volcano.queues.entitlements import Entitlements
from pumice.volcano.queues.tree import QueueTree


class Reclaimable:
    """The rule for one state of queues. ``allocated`` (Q, R) is what they hold.

    A task can be taken if its queue keeps its guarantee, and if the queue has more than it deserves of a resource that
    the task holds, or the task holds nothing that the queue deserves.
    """

    __slots__ = ("_allocated", "_of", "_relevant", "_tree")

    def __init__(self, tree: QueueTree, of: Entitlements, allocated: F64) -> None:
        self._tree, self._of, self._allocated = tree, of, allocated
        self._relevant: Bool = of.named.copy()
        self._relevant[:, : MEMORY + 1] = of.deserved[:, : MEMORY + 1] >= EPS
        # Every task holds one of ``pods``, so with it any queue with enough pods would have to give tasks back.
        self._relevant[:, -1] = False  # pods

    def to_gang(self, candidates: TaskRows) -> Bool:
        """Return the candidates that a gang can take, in their order. Shape (rows,)."""
        # A gang may take victims on several nodes, so all candidates share one balance, as if they were on one node.
        lines, every = candidates.queue.astype(np.int64)[:, None], np.arange(len(candidates))
        return self._take(candidates, np.zeros_like(every), every, lines, lines >= 0, every >= 0)

    def to_task(self, reclaimer: int, req: F64, level: int, candidates: Candidates, order: I64) -> Bool:
        """Return the candidates that a task can take on each node, in the given order. Shape (rows,).

        The task asks for ``req`` (R,) and is of the queue ``reclaimer``. Only candidates count that hold something
        that it asks for. Up to ``level`` ancestors of a victim's queue must also have more than they deserve, except
        those that are the reclaimer's at the same distance.
        """
        useful = np.asarray(((candidates.req >= EPS) & (req >= EPS))[:, :-1].any(axis=1))
        lines, measured = self._lines(candidates.queue, reclaimer, level)
        if level and not ((req >= EPS) & (self._of.deserved[reclaimer] >= EPS)).any():
            # A reclaimer that deserves nothing of what it asks for may not take such tasks from queues that are
            # related to its own.
            undeserved = self._undeserved(candidates, candidates.queue)
            useful &= ~(undeserved & self._related(candidates, reclaimer, level))
        return self._take(candidates, candidates.nth, order, lines, measured, useful)

    def _lines(self, queue: I32, reclaimer: int, level: int) -> tuple[I64, Bool]:
        """Return for each candidate its queue and ancestors, and which of them are compared. Shapes (rows, level +
        1)."""
        # Few queues have many candidates, so the tree is walked once per queue.
        found, inverse = np.unique(queue, return_inverse=True)
        own = self._ancestors(reclaimer, level)
        lines = np.array([[row, *self._ancestors(row, level)] for row in found.tolist()], dtype=np.int64)
        lines = lines.reshape(len(found), level + 1)
        measured = lines >= 0
        measured[:, 1:] &= lines[:, 1:] != np.array(own, dtype=np.int64)
        return lines[inverse], measured[inverse]

    def _ancestors(self, queue: int, level: int) -> list[int]:
        """Return the next ancestors, -1 beyond the last."""
        found = self._tree.above(queue, level) if queue >= 0 else []
        return found + [-1] * (level - len(found))

    def _related(self, candidates: TaskRows, reclaimer: int, level: int) -> Bool:
        """Return the candidates whose queue shares one of these ancestors with the reclaimer. Shape (rows,)."""
        found, inverse = np.unique(candidates.queue, return_inverse=True)
        own = set(self._ancestors(reclaimer, level)) - {-1}
        related = [not own.isdisjoint(self._ancestors(queue, level)) for queue in found.tolist()]
        return np.array(related, dtype=bool)[inverse]

    def _undeserved(self, candidates: TaskRows, queue: I64 | I32) -> Bool:
        """Return the candidates that hold nothing of what a queue, one for each, deserves. Shape (rows,)."""
        return np.asarray(~((candidates.req >= EPS) & (self._of.deserved[queue] >= EPS)).any(axis=1))

    def _take(self, candidates: TaskRows, node: I64, order: I64, lines: I64, measured: Bool, useful: Bool) -> Bool:
        """Process the useful candidates of all nodes. Each one taken lowers what its queues in ``lines``
        (rows, queues) hold, where ``measured``. Shape (rows,)."""
        req, deserved = candidates.req, self._of.deserved
        undeserved = np.stack([self._undeserved(candidates, queue) for queue in lines.T], axis=1)
        distinct, place = np.unique(node[:, None] * len(deserved) + lines, return_inverse=True)
        place, left = place.reshape(lines.shape), self._allocated[distinct % len(deserved)]
        taken = np.zeros(len(req), dtype=bool)
        # The order matters within a node only, so step k handles the k-th candidate of every node at once.
        for step, _ in in_turn(node[order]):
            rows = order[step]
            rows = rows[useful[rows] & measured[rows, 0]]
            asked, queues, held = req[rows], lines[rows], left[place[rows]]
            more = (held > deserved[queues]) & (asked > 0)[:, None] & self._relevant[queues]
            gives = (undeserved[rows] | more.any(axis=2) | ~measured[rows]).all(axis=1)
            gives &= self._keeps_guarantee(queues[:, 0], held[:, 0] - asked)
            rows, asked = rows[gives], asked[gives]
            taken[rows] = True
            of_each = measured[rows]
            # Each (node, queue) pair has a balance of its own: victims on other nodes are alternatives and not evicted
            # as well.
            left[place[rows][of_each]] -= np.repeat(asked, of_each.sum(axis=1), axis=0)
        return taken

    def _keeps_guarantee(self, queue: I64, left: F64) -> Bool:
        """Return True for queues that keep their guarantee. Shape (rows,)."""
        guarantee = self._of.guarantee[queue]
        return np.asarray(((guarantee - left < EPS) | (guarantee <= 0)).all(axis=1))
