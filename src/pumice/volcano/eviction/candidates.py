"""List tasks that might be evicted, by node, and what each node would have if all of them left."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.algorithms.sums import sums_by
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.nodes import FUTURE
from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.memo import ground
from pumice.model.status import PREEMPTABLE_STATUSES, STATUS_COUNT, TaskStatus
from pumice.model.workloads.podgroup import PodGroup
from pumice.volcano.eviction.refuted_nodes import RefutedNodes, Votes

# Preemption may take a pod that is bound and has not started; reclaim takes running ones only. Source: Volcano
# preempt.go and reclaim.go.
RUNNING_OR_BOUND = frozenset(PREEMPTABLE_STATUSES)
RUNNING = frozenset({TaskStatus.RUNNING})


def leaves_together(group: PodGroup) -> bool:
    """Return True if the tasks of a job are evicted only all together."""
    # Volcano's counting protects the minimum of a job, and not those of the groups in its tree.
    return group.leaves_whole or (group.native is not None and group.native.is_tree)


class Evictable:
    """All preemptable tasks that run when the first eviction of a session is considered, by node.

    The tasks of a node are in the order in which plugins see them, which is the order in which plugins use up what
    they count down.
    """

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        tables = ssn.tables
        tasks, jobs = tables.tasks, tables.jobs
        runs = np.isin(tasks.status, list(map(int, RUNNING_OR_BOUND))) & tasks.preemptable & (tasks.node >= 0)
        rows = (runs & (tasks.job >= 0)).nonzero()[0]
        # Jobs without a queue are not in the session, so no plugin could vote about them. A quarantined job cannot be
        # read, so nothing says that it may be evicted.
        rows = rows[((jobs.queue >= 0) & ~jobs.quarantined)[tasks.job[rows]]]
        # Volcano offers the tasks of a node in the random order of a Go map. Here, tasks that would be evicted first
        # come first, so that the result is the same in each run. The set is computed once: no other task starts to run
        # within a session.
        self.rows = rows[np.lexsort((*_offer_keys(ssn, rows), tasks.node[rows]))]
        self.queue: AnyArray = jobs.queue[tasks.job[self.rows]]
        self._by_queue: dict[tuple[int, bool, bool], Supply] = {}
        together = [job for job in distinct(tasks.job[self.rows]).tolist() if leaves_together(jobs.groups[job])]
        #: Which of the tasks may be evicted without the others of their job. Shape (rows,).
        self._single: Bool = ~np.isin(tasks.job[self.rows], together)

    def of_queue(self, queue: int, *, gangs: bool = False) -> Supply:
        """Return running or bound tasks of a queue. ``gangs``: also those that are evicted only together."""
        return self._kept(queue, others=False, statuses=RUNNING_OR_BOUND, gangs=gangs)

    def of_other_queues(self, queue: int, *, gangs: bool = False) -> Supply:
        """Return running tasks of all other queues that are reclaimable. ``gangs``: as above."""
        return self._kept(queue, others=True, statuses=RUNNING, gangs=gangs)

    def of_job(self, job: int) -> Supply:
        """Return running or bound tasks of a job that may be evicted one by one."""
        rows = self.rows[(self._ssn.tables.tasks.job[self.rows] == job) & self._single]
        return Supply(self._ssn, rows, RUNNING_OR_BOUND)

    def _kept(self, queue: int, *, others: bool, statuses: frozenset[TaskStatus], gangs: bool) -> Supply:
        """Return the tasks of a queue, or of all other queues; cached."""
        found = self._by_queue.get((queue, others, gangs))
        if found is None:
            which = self.queue == queue
            if others:
                # Asked once per queue, since a cluster has few queues and many tasks.
                reclaimable = [queue.reclaimable for queue in self._ssn.tables.queues.objs]
                which = ~which & np.array(reclaimable)[self.queue]
            which = which if gangs else which & self._single
            found = self._by_queue[queue, others, gangs] = Supply(self._ssn, self.rows[which], statuses)
        return found


def evictable(ssn: Session) -> Evictable:
    """Return the evictable tasks of the session."""
    return ssn.shared(Evictable, lambda: Evictable(ssn))


class Supply:
    """Tasks that might be evicted while they are in one of some statuses.

    ``rows`` (K,) are sorted by node; ``starts`` (N + 1,) holds where those of each node begin.
    """

    def __init__(self, ssn: Session, rows: AnyArray, statuses: Iterable[TaskStatus]) -> None:
        self._ssn, self._tables, self.rows = ssn, ssn.tables, rows
        tasks = ssn.tables.tasks
        self.starts = np.searchsorted(tasks.node[rows], np.arange(len(ssn.tables.nodes.facts) + 1))
        # A table by status, because tasks that this session evicts leave the set without its being built again.
        self._counts = np.zeros(STATUS_COUNT, dtype=bool)
        self._counts[list(map(int, statuses))] = True
        self._rests_on = rows.tobytes(), self.starts.tobytes(), *ground(tasks["job"], tasks["cls"])
        self._refuted: dict[Votes, RefutedNodes] = {}

    def on(
        self, nodes: AnyArray, *, but_job: int = -1, only_best_effort: bool = False, below: Task | None = None
    ) -> Candidates:
        """Return the tasks on some nodes, without one job's. ``only_best_effort``: only tasks without requests.
        ``below``: only tasks of lower priority than this one."""
        # The first node often suffices; a slice is all it takes.
        if len(nodes) == 1:
            node = int(nodes[0])
            rows = self.rows[self.starts[node] : self.starts[node + 1]]
            return Candidates(self._tables, rows[self._kept(rows, but_job, only_best_effort, below)])
        begin = self.starts[nodes]
        lengths = self.starts[nodes + 1] - begin
        # One range of rows per node, joined without a Python loop.
        nth = np.repeat(np.arange(len(nodes)), lengths)
        rows = self.rows[np.arange(len(nth)) + (begin - lengths.cumsum() + lengths)[nth]]
        kept = self._kept(rows, but_job, only_best_effort, below)
        return Candidates(self._tables, rows[kept], np.searchsorted(nth[kept], np.arange(len(nodes) + 1)))

    def _kept(self, rows: AnyArray, but_job: int, only_best_effort: bool, below: Task | None) -> Bool:
        """Return True for rows that may still be evicted. Shape (rows,)."""
        tasks = self._tables.tasks
        kept: Bool = self._counts[tasks.status[rows]]
        if but_job >= 0:
            kept &= tasks.job[rows] != but_job
        if only_best_effort:
            kept &= tasks.best_effort[rows]
        if below is not None:
            kept &= _is_below(below, rows)
        return kept

    def refuted(self, votes: Votes) -> RefutedNodes:
        """Return the nodes that votes have ruled out."""
        found = self._refuted.get(votes)
        if found is None:
            found = self._refuted[votes] = RefutedNodes(self._ssn, votes, self.rows, self._counts.tobytes())
        return found

    def could_hold(self, cls: int) -> Bool:
        """Return the nodes that would have room for a task of a class if all of these tasks left. Shape (N,)."""
        books, amounts = self._tables.nodes.books, self._amounts()
        found = np.ones(len(amounts), dtype=bool)
        for dimension, limit in self._tables.classes.asked[cls]:
            found &= books[:, FUTURE, dimension] + amounts[:, dimension] > limit
        return found

    def freed(self) -> F64:
        """Return what nodes would have if all of these tasks left. Shape (N, R)."""
        found: F64 = self._tables.nodes.books[:, FUTURE] + self._amounts()
        return found

    def has_any(self) -> Bool:
        """Return the nodes that still have any of these tasks. Shape (N,)."""
        pods: Bool = self._amounts()[:, self._tables.axis.pods] > 0
        return pods

    def _amounts(self) -> F64:
        """Return the total request of these tasks per node. Shape (N, R)."""
        stamps = self._tables.nodes.stamps
        assert stamps is not None
        # By row: an eviction changes the sums of its node only.
        question = "could leave", self._counts.tobytes()
        return self._ssn.memo.by_row(question, self._rests_on, stamps, lambda nodes: amounts_by_node(self.on(nodes)))


def _is_below(task: Task, rows: AnyArray) -> Bool:
    """Return True for tasks whose job has a lower priority, or which have one themselves in the same job."""
    tasks, jobs, own = task.tables.tasks, task.tables.jobs, task.job
    job = tasks.job[rows]
    return np.asarray(np.where(job == own.row, tasks.priority[rows] < task.priority, jobs.priority[job] < own.priority))


def amounts_by_node(candidates: Candidates, mask: Bool | None = None) -> F64:
    """Return the total request of the tasks of each node, or of those that are marked. Shape (nodes, R)."""
    if candidates.node_count == 1:
        tables, rows = candidates.tables, candidates.rows if mask is None else candidates.rows[mask]
        found: F64 = tables.classes.req[tables.tasks.cls[rows]].sum(axis=0)
        return found[None]
    nth, req = candidates.nth, candidates.req
    if mask is not None:
        nth, req = nth[mask], req[mask]
    return sums_by(nth, req, candidates.node_count)


def _offer_keys(ssn: Session, rows: AnyArray) -> list[AnyArray]:
    """Return sort keys of tasks for ``lexsort``, the last one first. Tasks that would be evicted earlier have smaller
    keys."""
    jobs, tasks = ssn.tables.jobs, ssn.tables.tasks
    job = tasks.job[rows]
    which = distinct(job)
    lists = [jobs.tasks[j] for j in which.tolist()]
    # The position of a task in its job is the last tie-break.
    place = np.zeros(tasks.capacity, dtype=np.int64)
    if lists:
        place[np.concatenate(lists)] = np.concatenate([np.arange(len(each)) for each in lists])
    by_job = np.zeros((jobs.capacity,), dtype=np.int64)
    by_job[ssn.order.jobs_in_order(which)] = np.arange(len(which))
    by_task = ssn.order.task_columns(rows) or []
    return [-place[rows], *(-column for column in by_task[::-1]), -by_job[job]]
