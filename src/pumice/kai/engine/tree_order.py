"""Who goes first in a tree of queues: the best job of the best queue, at every level.

The key of a queue includes its best job, and both change while others wait, so queues are compared when one is chosen.
Source: KAI JobsOrderByQueues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.tables import Tables
from pumice.columns.views import Queue
from pumice.framework.cycle.ordering import Line, older
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.kai.engine.chunks import are_ordered, chunk_of, order_tasks
from pumice.kai.engine.parts import Part, may_wait
from pumice.kai.engine.points import Turn, turn_order

#: Of so many jobs that come after each other the tasks are put in order together.
_TOGETHER = 32

#: The section of a policy file that says, by action, how many jobs of each queue have a turn. Source: KAI's name.
QUEUE_DEPTH = "queueDepthPerAction"


def depth_problems(section: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each bound that is none."""
    for action, depth in section.items():
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            yield f"{action}: found {depth!r:.80}, wanted a whole number of jobs, 1 or more"


def may_have_missed_its_turn(ssn: Session) -> bool:
    """Whether ``allocate`` may have left a job out, which then may have room as things are."""
    return "allocate" in ssn.policy.section(QUEUE_DEPTH)


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
    tree, sign, by_turns = queue_tree(ssn), -1 if last else 1, ssn.has(turn_order)
    queues = ssn.tables.queues
    best = {leaf: (leaf, turn) for leaf, turn in turns.items()}  # by queue: its best leaf, and its turn with that
    depth = {queue: len(tree.path[queue]) for queue in best}
    while True:
        deepest = max(depth.values())
        groups: dict[int, list[int]] = {}
        for queue in [queue for queue in best if depth[queue] == deepest]:
            groups.setdefault(tree.parent[queue], []).append(queue)
        for parent, siblings in groups.items():
            winner = siblings[0]
            for other in siblings[1:]:
                said = _compared(ssn, best[other][1], best[winner][1], by_turns=by_turns)
                if sign * (said or older(queues.creation, queues.names, other, winner)) < 0:
                    winner = other
            leaf, turn = best[winner]
            if len(siblings) == len(best):
                return leaf
            for queue in siblings:
                del best[queue], depth[queue]
            best[parent], depth[parent] = (leaf, turn._replace(queue=parent)), deepest - 1


def _compared(ssn: Session, left: Turn, right: Turn, *, by_turns: bool) -> int:
    """Which of two siblings goes first, 0 for neither: by their turns, or by what plugins say of the queues alone."""
    if by_turns:
        return ssn.ask(turn_order, left, right)
    return ssn.ask(points.queues_compared, Queue(ssn.tables, left.queue), Queue(ssn.tables, right.queue))


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
    """Waiting jobs, given out one after the other with what is to be placed of each. What is given out may be pushed
    back. Of each queue only the first are, where the policy bounds that for the action under way."""

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn = ssn
        depth = ssn.policy.section(QUEUE_DEPTH).get(ssn.trace.action)
        self._lines = ssn.order.lines(rows, depth)
        self._turns: dict[int, tuple[Turn, int, Part | None]] = {}  # of a queue, with its job's stamp and part

    def __iter__(self) -> Iterator[tuple[int, Part | None]]:
        while self._lines:
            yield self._next()

    def _next(self) -> tuple[int, Part | None]:
        leaf = best_leaf(self._ssn, {leaf: self._turn(leaf, line) for leaf, line in self._lines.items()})
        line, (_, stamp, part) = self._lines[leaf], self._turns.pop(leaf)
        job = line.pop()
        if not line:
            del self._lines[leaf]
        return job, part if stamp == self._stamp(job) else chunk_of(self._ssn, job)

    def _turn(self, leaf: int, line: Line) -> Turn:
        """A queue with the job that would go next."""
        known = self._turns.get(leaf)
        if known is None:
            job = line.peek()
            part = self._part(line, job)
            turn = Turn(leaf, part.amount(self._ssn.tables) if part is not None else None)
            known = self._turns[leaf] = turn, self._stamp(job), part
        return known[0]

    def _part(self, line: Line, job: int) -> Part | None:
        ssn, subs = self._ssn, self._ssn.tables.jobs.subs
        if not are_ordered(ssn, subs[job]):
            order_tasks(ssn, [sub for each in line.next(_TOGETHER) for sub in subs[each]])
        return chunk_of(ssn, job)

    def _stamp(self, job: int) -> int:
        stamps = self._ssn.tables.jobs.stamps
        assert stamps is not None
        return int(stamps[job])

    def push(self, job: int) -> None:
        leaf = int(self._ssn.tables.jobs.queue[job])
        line = self._lines.get(leaf)
        if line is None:
            line = self._lines[leaf] = Line(self._ssn.order.job_keys())
        line.push(job)
        self._turns.pop(leaf, None)

    def drop(self, job: int, leading: Callable[[Iterable[int]], int]) -> None:
        """Take the next jobs of a job's queue out: as many as ``leading`` says of those that come."""
        leaf = int(self._ssn.tables.jobs.queue[job])
        line = self._lines.get(leaf)
        if line is None:
            return
        if line.skip(leading):
            self._turns.pop(leaf, None)
        if not line:
            del self._lines[leaf]
