"""proportion: share the cluster among queues by weight. Source: Volcano proportion plugin."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pumice.algorithms.groups import in_turn
from pumice.algorithms.shares import all_at_most, at_most, largest_part, queue_share, water_filling
from pumice.api import (
    F64,
    ROWS,
    AnyArray,
    Bool,
    Candidates,
    EvictionContext,
    EvictionKind,
    Job,
    Node,
    Queue,
    QueueLimit,
    Session,
    Task,
    TaskRows,
    TaskRun,
    Vote,
    plugin,
    points,
    read_only,
)
from pumice.columns.placement import Placement
from pumice.volcano.queues.admitted import exceeded, fitting, minimum, queue_limit
from pumice.volcano.queues.amounts import QueueAmounts, queue_amounts


@plugin("proportion")
class Proportion:
    """Shares of queues with jobs. Columns are (Q, R), ``share`` (Q,).

    ``deservedKept``: gangs of other queues reclaim only from queues above what they deserve, like single tasks. Off,
    as in Volcano: from any queue.
    """

    spares = "of queues within what they deserve"

    def __init__(self, ssn: Session, *, deservedKept: bool = False) -> None:
        self.ssn = ssn
        # Volcano's proportion has no such hook, so it does not limit which queues a gang reclaims from.
        self.unused_points = () if deservedKept else (points.unified_evictable,)
        amounts = queue_amounts(ssn)
        self.request, self.takes_part = amounts.request, amounts.has_jobs
        capability = _capability(ssn)
        deserved = _deserved(ssn, amounts, capability)
        self.elastic = ssn.column("proportion.elastic", "queue", values=amounts.elastic)
        self.real_capability = ssn.column("proportion.real_capability", "queue", values=capability)
        self.deserved = ssn.column("proportion.deserved", "queue", values=deserved)
        self.allocated = ssn.column("proportion.allocated", "queue", values=amounts.allocated)
        self.inqueue = ssn.column("proportion.inqueue", "queue", values=amounts.inqueue)
        self.share = ssn.column("proportion.share", "queue", values=read_only(queue_share(amounts.allocated, deserved)))

    def figures(self) -> Mapping[str, AnyArray]:
        """Return the numbers of queues for metrics and reports."""
        return {
            "queue.allocated": self.allocated.array,
            "queue.request": self.request,
            "queue.deserved": self.deserved.array,
            "queue.real_capacity": self.real_capability.array,
            "queue.inqueue": self.inqueue.array,
            "queue.elastic": self.elastic.array,
            "queue.share": self.share.array,
        }

    @points.queue_order
    def queue_order(self, queue: Queue) -> tuple[float, float]:
        """Return the order key: larger spec.priority first, then smaller share."""
        return -self.ssn.tables.queues.priority[queue.row], self.share.array[queue.row]

    @points.overused
    def overused(self, queue: Queue) -> bool:
        """Return True if the queue holds at least what it deserves in every dimension."""
        # In every dimension, as in Volcano: a queue that has used up one resource may still take what it deserves of
        # the others.
        return all_at_most(self.deserved.array[queue.row].tolist(), self.allocated.array[queue.row].tolist())

    @points.allocatable(reads=(ROWS,))
    def allocatable(self, queue: Queue, tasks: TaskRows) -> int:
        """Return how many tasks stay within what the queue deserves, in the dimensions that each asks for; none in a
        closed queue."""
        if not queue.open:
            return 0
        return fitting(tasks, self.deserved.array[queue.row] - self.allocated.array[queue.row])

    @points.preemptive
    def preemptive(self, queue: Queue, tasks: TaskRows) -> bool:
        """Return True if the queue is open and stays within what it deserves with these tasks."""
        asked = tasks.req.sum(axis=0)
        held = self.allocated.array[queue.row]
        # Only in the dimensions that are asked for: a queue above its share of GPUs may still reclaim CPUs.
        return queue.open and not exceeded(self.ssn, held + asked, self.deserved.array[queue.row], asked)

    @points.simulate_remove_task
    def simulate_remove(self, task: Task, gone: Task, node: Node) -> None:
        """Subtract the task ``gone`` from its queue until the trial is rolled back."""
        self._move(TaskRun(self.ssn.tables, Placement([gone.row], [node.row])), -1.0)

    @points.simulate_add_task
    def simulate_add(self, task: Task, added: Task, node: Node) -> None:
        """Add the task ``added`` to its queue until the trial is rolled back."""
        self._move(TaskRun(self.ssn.tables, Placement([added.row], [node.row])), 1.0)

    @points.simulate_allocatable
    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        """Return True if the queue stays within what it deserves with the task."""
        held = self.allocated.array[queue.row]
        return not exceeded(self.ssn, held + task.req, self.deserved.array[queue.row], task.req)

    @points.reclaimable(reads=(ROWS, "proportion.allocated", "proportion.deserved"))
    def reclaimable(self, reclaimer: Task, candidates: Candidates) -> Bool:
        """Return the tasks of queues above what they deserve, counted down victim by victim. Shape (rows,)."""
        return self._beyond_deserved(candidates, candidates.apart(candidates.queue))

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: TaskRows) -> Bool:
        """Return all tasks for a gang of the same queue; for one of another queue, tasks of queues above what they
        deserve. Shape (rows,)."""
        if context.kind is not EvictionKind.GANG_RECLAIM:
            return np.ones(len(candidates), dtype=bool)
        return self._beyond_deserved(candidates, candidates.queue)

    def _beyond_deserved(self, candidates: TaskRows, group: AnyArray) -> Bool:
        """Return the tasks of queues above what they deserve. ``group``: candidates that are counted down together.
        Shape (rows,)."""
        queue, req = candidates.queue, candidates.req
        allocated, deserved = self.allocated.array[queue], self.deserved.array[queue]
        left, victims = np.empty_like(allocated), np.zeros(len(candidates), dtype=bool)
        # Step k handles the k-th candidate of every group at once, because only candidates of one group affect each
        # other.
        for step, (rows, groups) in enumerate(in_turn(group)):
            if not step:
                left[groups] = allocated[rows]
            # Counted down with each victim, so that no more tasks are named than take the queue down to what it
            # deserves.
            victims[rows] = ~at_most(left[groups], deserved[rows])
            left[groups] -= np.where(victims[rows, None], req[rows], 0.0)
        return victims

    @points.job_enqueueable
    def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | QueueLimit:
        """Vote on the admission of a request: with what is promised, the queue must stay within its real capability."""
        if not queue.open:
            return Vote.REJECT
        row = queue.row
        # What jobs hold beyond their minimums can be reclaimed, so it does not keep another job from being admitted.
        # Source: Volcano proportion.go, job enqueueable.
        wanted = asked + self.allocated.array[row] + self.inqueue.array[row] - self.elastic.array[row]
        over = exceeded(self.ssn, wanted, self.real_capability.array[row], asked)
        if not over:
            return Vote.PERMIT
        return queue_limit(
            self.ssn,
            row,
            over,
            limit=self.real_capability.array[row],
            used=self.allocated.array[row] - self.elastic.array[row],
            promised=self.inqueue.array[row],
            asked=asked,
        )

    @points.job_enqueued
    def job_enqueued(self, job: Job) -> None:
        """Count the minimum of an admitted job."""
        # Otherwise every job of a queue would be admitted against the same free share, and most would wait as admitted
        # jobs.
        self.ssn.journal.add(self.inqueue, job.queue.row, minimum(self.ssn, job))

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._move(run, 1.0)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._move(run, -1.0)

    def _move(self, run: TaskRun, sign: float) -> None:
        """Add tasks to their queue, or subtract them."""
        queue = run.queue
        if queue < 0:
            return
        self.ssn.journal.add(self.allocated, queue, sign * run.total)
        share = largest_part(self.allocated.array[queue].tolist(), self.deserved.array[queue].tolist())
        self.ssn.journal.put(self.share, queue, share)


def _deserved(ssn: Session, amounts: QueueAmounts, capability: F64) -> F64:
    """Return what queues with jobs deserve when the session begins, 0 for others. Shape (Q, R)."""
    queues, part = ssn.tables.queues, amounts.has_jobs
    # Queues without jobs get nothing, so that the others share all of the cluster.
    weight, least = queues.weight * part, queues.guarantee * part[:, None]
    return read_only(water_filling(ssn.total, weight, amounts.request, least, capability))


def _capability(ssn: Session) -> F64:
    """Return the most each queue can have: what other guarantees leave of the cluster, up to its own capability; inf
    if unlimited. Shape (Q, R)."""
    guarantee = ssn.tables.queues.guarantee
    # Guarantees may add up to more than the cluster has.
    left = np.maximum(ssn.total - guarantee.sum(axis=0), 0.0) + guarantee
    return read_only(np.minimum(left, ssn.tables.queues.capability))
