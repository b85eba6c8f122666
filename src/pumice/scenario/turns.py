"""Who goes first in a tree of queues: the best job of the best queue, at every level.

The key of a queue includes its best job, and both change while others wait, so queues are compared when one is chosen.
Source: KAI JobsOrderByQueues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.tables import Tables
from pumice.framework.ordering import Heap, heaps_by, older
from pumice.framework.session import Session
from pumice.scenario.chunks import chunk_of
from pumice.scenario.parts import amount_of, may_wait
from pumice.scenario.points import Turn, turn_order


class QueueTree:
    """Queues by parent. ``leaf`` (Q,): has no children and all its ancestors are there; only these run jobs."""

    def __init__(self, tables: Tables) -> None:
        queues = tables.queues
        self.parent: list[int] = queues.parent.tolist()
        has_children = np.zeros(len(queues), dtype=bool)
        has_children[queues.parent[queues.parent >= 0]] = True
        #: Whether all ancestors of each are there.
        self.whole = whole = [self._is_whole(tables, row) for row in range(len(queues))]
        self.leaf = ~has_children & np.array(whole, dtype=bool)
        #: Of each queue itself and its ancestors, upwards.
        self.path = [self._up(row) if whole[row] else [row] for row in range(len(queues))]

    def _is_whole(self, tables: Tables, row: int) -> bool:
        """Whether its ancestors end at a root: a queue whose parent is not there is not there itself."""
        queues, seen = tables.queues, 0
        while self.parent[row] >= 0:
            row, seen = self.parent[row], seen + 1
            if seen > len(self.parent):
                return False
        return not queues.objs[row].parent or queues.objs[row].parent == "root"

    def _up(self, row: int) -> list[int]:
        found = []
        while row >= 0:
            found.append(row)
            row = self.parent[row]
        return found


def queue_tree(ssn: Session) -> QueueTree:
    """That of this session."""
    return ssn.memo.get("tree of leaves", (ssn.tables.queues["parent"].version,), lambda: QueueTree(ssn.tables))


def best_leaf(ssn: Session, turns: Mapping[int, Turn], *, last: bool = False) -> int:
    """Of leaves with their turns the one that goes first (``last``: the one that goes last)."""
    if len(turns) == 1:
        return next(iter(turns))
    tree, sign = queue_tree(ssn), -1 if last else 1
    queues = ssn.tables.queues
    best = {leaf: (leaf, turn) for leaf, turn in turns.items()}  # by queue: its best leaf, and its turn with that
    depth = {queue: len(tree.path[queue]) for queue in best}
    while len(best) > 1:
        deepest = max(depth.values())
        groups: dict[int, list[int]] = {}
        for queue in [queue for queue in best if depth[queue] == deepest]:
            groups.setdefault(tree.parent[queue], []).append(queue)
        for parent, siblings in groups.items():
            winner = siblings[0]
            for other in siblings[1:]:
                left, right = best[other][1], best[winner][1]
                said = ssn.ask(turn_order, left, right) or older(queues.creation, queues.names, other, winner)
                if sign * said < 0:
                    winner = other
            leaf, turn = best[winner]
            for queue in siblings:
                del best[queue], depth[queue]
            if parent < 0:
                return leaf
            best[parent], depth[parent] = (leaf, turn._replace(queue=parent)), deepest - 1
    return next(iter(best.values()))[0]


def waiting_jobs(ssn: Session) -> AnyArray:
    """Rows of jobs in leaves that have tasks to place and pods enough for their minimums."""
    jobs, tree = ssn.tables.jobs, queue_tree(ssn)
    rows = (jobs.alive & (jobs.queue >= 0) & (jobs.waits + jobs.best_effort > 0)).nonzero()[0]
    rows = rows[tree.leaf[jobs.queue[rows]]]
    plain = (jobs.counts[rows].sum(axis=1) - jobs.gated[rows] >= jobs.min_available[rows]) & ~jobs.has_policy[rows]
    ended = jobs.counts[rows, -3:].sum(axis=1) + jobs.counts[rows, 6] + jobs.gated[rows] > 0
    sure = plain & ~ended
    keep = [bool(ok) or may_wait(ssn.tables, row) for ok, row in zip(sure.tolist(), rows.tolist(), strict=True)]
    found: AnyArray = rows[np.array(keep, dtype=bool)]
    return found


class Turns:
    """Waiting jobs, given out one after the other. What is given out may be pushed back."""

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn = ssn
        self._heaps = heaps_by(ssn.order.job_keys(), rows, ssn.tables.jobs.queue[rows])
        self._turns: dict[int, Turn] = {}

    def __iter__(self) -> Iterator[int]:
        while self._heaps:
            yield self._next()

    def _next(self) -> int:
        leaf = best_leaf(self._ssn, {leaf: self._turn(leaf, heap) for leaf, heap in self._heaps.items()})
        heap = self._heaps[leaf]
        job = heap.pop()
        self._turns.pop(leaf, None)
        if not heap:
            del self._heaps[leaf]
        return job

    def _turn(self, leaf: int, heap: Heap) -> Turn:
        turn = self._turns.get(leaf)
        if turn is None:
            turn = self._turns[leaf] = turn_of(self._ssn, leaf, heap.peek())
        return turn

    def push(self, job: int) -> None:
        leaf = int(self._ssn.tables.jobs.queue[job])
        heap = self._heaps.get(leaf)
        if heap is None:
            heap = self._heaps[leaf] = Heap(self._ssn.order.job_keys())
        heap.push(job)
        self._turns.pop(leaf, None)

    def drop(self, job: int, goes: Callable[[int], bool]) -> None:
        """Take the next jobs of a job's queue out for as long as they go."""
        leaf = int(self._ssn.tables.jobs.queue[job])
        heap = self._heaps.get(leaf)
        if heap is None:
            return
        while heap and goes(heap.peek()):
            heap.pop()
            self._turns.pop(leaf, None)
        if not heap:
            del self._heaps[leaf]


def turn_of(ssn: Session, leaf: int, job: int) -> Turn:
    """A queue with the job that would go next."""
    part = chunk_of(ssn, job)
    return Turn(leaf, amount_of(ssn.tables, part.rows) if part is not None else None)


def by_queue(ssn: Session, rows: Iterable[int]) -> dict[int, list[int]]:
    """Jobs by their queue, in their order."""
    found: dict[int, list[int]] = {}
    queue = ssn.tables.jobs.queue
    for row in rows:
        found.setdefault(int(queue[row]), []).append(row)
    return found
