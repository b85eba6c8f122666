"""Who runs where and might be evicted: tasks by node, and what each node would have if all of them left."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.algorithms.sums import sums_by
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.nodes import FUTURE
from pumice.columns.rows import Candidates
from pumice.framework.cycle.session import Session
from pumice.framework.memo import ground
from pumice.model.status import PREEMPTABLE_STATUSES, STATUS_COUNT, TaskStatus
from pumice.volcano.eviction.refuted_nodes import Refuted, Votes

RUNNING_OR_BOUND = frozenset(PREEMPTABLE_STATUSES)
RUNNING = frozenset({TaskStatus.RUNNING})


class Evictable:
    """All preemptable tasks that ran when a session's first eviction was thought of, by node. In a session no other
    task begins to run.

    On one node they are in the order in which they are offered to plugins, and so in which what these count down is
    used up: those that would be evicted first come first, as far as plugins give keys, and as of then. (Volcano
    offers them in any order.)
    """

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        tables = ssn.tables
        tasks, jobs = tables.tasks, tables.jobs
        runs = np.isin(tasks.status, list(map(int, RUNNING_OR_BOUND))) & tasks.preemptable & (tasks.node >= 0)
        rows = (runs & (tasks.job >= 0)).nonzero()[0]
        rows = rows[((jobs.queue >= 0) & ~jobs.barred)[tasks.job[rows]]]
        self.rows = rows[np.lexsort((*_offered(ssn, rows), tasks.node[rows]))]
        self.queue: AnyArray = jobs.queue[tasks.job[self.rows]]
        self._by_queue: dict[tuple[int, bool], Supply] = {}

    def of_queue(self, queue: int) -> Supply:
        """Running or bound tasks of a queue."""
        return self._kept(queue, others=False, statuses=RUNNING_OR_BOUND)

    def of_other_queues(self, queue: int) -> Supply:
        """Running tasks of all other queues from which may be taken."""
        return self._kept(queue, others=True, statuses=RUNNING)

    def of_job(self, job: int) -> Supply:
        """Running or bound tasks of a job."""
        rows = self.rows[self._ssn.tables.tasks.job[self.rows] == job]
        return Supply(self._ssn, rows, RUNNING_OR_BOUND)

    def _kept(self, queue: int, *, others: bool, statuses: frozenset[TaskStatus]) -> Supply:
        found = self._by_queue.get((queue, others))
        if found is None:
            which = self.queue == queue
            if others:
                reclaimable = [queue.reclaimable for queue in self._ssn.tables.queues.objs]
                which = ~which & np.array(reclaimable)[self.queue]
            found = self._by_queue[queue, others] = Supply(self._ssn, self.rows[which], statuses)
        return found


def evictable(ssn: Session) -> Evictable:
    """Those of this session."""
    return ssn.shared(Evictable, lambda: Evictable(ssn))


class Supply:
    """Some tasks that might be evicted, as long as they are in one of some states. ``rows`` (K,) by node; ``starts``
    (N + 1,): where those of each node begin."""

    def __init__(self, ssn: Session, rows: AnyArray, statuses: Iterable[TaskStatus]) -> None:
        self._ssn, self._tables, self.rows = ssn, ssn.tables, rows
        tasks = ssn.tables.tasks
        self.starts = np.searchsorted(tasks.node[rows], np.arange(len(ssn.tables.nodes.facts) + 1))
        self._counts = np.zeros(STATUS_COUNT, dtype=bool)
        self._counts[list(map(int, statuses))] = True
        self._rests_on = rows.tobytes(), self.starts.tobytes(), *ground(tasks["job"], tasks["cls"])
        self._refuted: dict[Votes, Refuted] = {}

    def on(self, nodes: AnyArray, *, but_job: int = -1, only_best_effort: bool = False) -> Candidates:
        """Those on some nodes, but for one job's; ``only_best_effort``: that ask for nothing."""
        if len(nodes) == 1:
            node = int(nodes[0])
            rows = self.rows[self.starts[node] : self.starts[node + 1]]
            return Candidates(self._tables, rows[self._kept(rows, but_job, only_best_effort)])
        begin = self.starts[nodes]
        lengths = self.starts[nodes + 1] - begin
        nth = np.repeat(np.arange(len(nodes)), lengths)
        rows = self.rows[np.arange(len(nth)) + (begin - lengths.cumsum() + lengths)[nth]]
        kept = self._kept(rows, but_job, only_best_effort)
        return Candidates(self._tables, rows[kept], np.searchsorted(nth[kept], np.arange(len(nodes) + 1)))

    def _kept(self, rows: AnyArray, but_job: int, only_best_effort: bool) -> Bool:
        tasks = self._tables.tasks
        kept: Bool = self._counts[tasks.status[rows]]
        if but_job >= 0:
            kept &= tasks.job[rows] != but_job
        if only_best_effort:
            kept &= tasks.best_effort[rows]
        return kept

    def refuted(self, votes: Votes) -> Refuted:
        """What votes have refuted of the nodes."""
        found = self._refuted.get(votes)
        if found is None:
            found = self._refuted[votes] = Refuted(self._ssn, votes, self.rows, self._counts.tobytes())
        return found

    def could_hold(self, cls: int) -> Bool:
        """Nodes that would have room for one task of a class if all left that are asked for. Shape (N,)."""
        books, amounts = self._tables.nodes.books, self._amounts()
        found = np.ones(len(amounts), dtype=bool)
        for dimension, limit in self._tables.classes.asked[cls]:
            found &= books[:, FUTURE, dimension] + amounts[:, dimension] > limit
        return found

    def somebody(self) -> Bool:
        """Nodes on which somebody is left. Shape (N,)."""
        pods: Bool = self._amounts()[:, self._tables.axis.pods] > 0
        return pods

    def _amounts(self) -> F64:
        """What all that are left ask for together (N, R)."""
        stamps = self._tables.nodes.stamps
        assert stamps is not None
        question = "could leave", self._counts.tobytes()
        return self._ssn.memo.by_row(question, self._rests_on, stamps, lambda nodes: amounts_by_node(self.on(nodes)))


def amounts_by_node(candidates: Candidates, mask: Bool | None = None) -> F64:
    """What the tasks of each node (that are marked) ask for together. Shape (nodes, R)."""
    if candidates.node_count == 1:
        tables, rows = candidates.tables, candidates.rows if mask is None else candidates.rows[mask]
        found: F64 = tables.classes.req[tables.tasks.cls[rows]].sum(axis=0)
        return found[None]
    nth, req = candidates.nth, candidates.req
    if mask is not None:
        nth, req = nth[mask], req[mask]
    return sums_by(nth, req, candidates.node_count)


def _offered(ssn: Session, rows: AnyArray) -> list[AnyArray]:
    """Keys of tasks for ``lexsort``, the last one first: who would be evicted earlier has the smaller key."""
    jobs, tasks = ssn.tables.jobs, ssn.tables.tasks
    job = tasks.job[rows]
    which = distinct(job)
    lists = [jobs.tasks[j] for j in which.tolist()]
    place = np.zeros(tasks.capacity, dtype=np.int64)
    if lists:
        place[np.concatenate(lists)] = np.concatenate([np.arange(len(each)) for each in lists])
    by_job = np.zeros((jobs.capacity,), dtype=np.int64)
    columns = [*(ssn.order.job_columns(which) or []), jobs.creation[which]]
    by_job[which] = _ranks(np.lexsort(columns[::-1])) if len(which) else 0
    by_task = ssn.order.task_columns(rows) or []
    return [-place[rows], *(-column for column in by_task[::-1]), -by_job[job]]


def _ranks(order: AnyArray) -> AnyArray:
    found = np.empty_like(order)
    found[order] = np.arange(len(order))
    return found
