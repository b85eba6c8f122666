"""proportion: queues share the cluster by weight. Source: Volcano proportion (spec 04 §7)."""

from __future__ import annotations

import math

import numpy as np

from pumice.algorithms.shares import all_at_most, at_most, largest_part, queue_share, water_filling
from pumice.algorithms.sums import sums_by
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import F64
from pumice.columns.rows import TaskRun
from pumice.columns.views import Job, Queue, Task, TaskClass
from pumice.framework import points
from pumice.framework.combine import Vote
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.volcano.admission import exceeded, minimum, promised


@plugin("proportion", by_shape=True)
class Proportion:
    """Only queues with jobs take part. All columns are (Q, R)."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        tables = ssn.tables
        shape = (len(tables.queues), len(tables.axis))
        jobs, held = tables.jobs, ssn.holding_jobs()
        queue_of, holds = jobs.queue[held], jobs.allocated[held]
        self.allocated = sums_by(queue_of, holds, shape[0])
        self.request = self.allocated + pending_by_queue(ssn)
        self.elastic = sums_by(queue_of, np.maximum(holds - jobs.min_resources[held], 0.0), shape[0])
        self.inqueue = ssn.column(shape)
        for rows, wanted in promised(ssn):
            self.inqueue += sums_by(jobs.queue[rows], wanted, shape[0])
        self.takes_part = np.bincount(jobs.queue[ssn.live_jobs()], minlength=shape[0]).astype(bool)
        guarantee = tables.queues.guarantee
        self.real_capability = real_capability(ssn, guarantee)
        self.deserved = ssn.column(shape)
        part = self.takes_part.nonzero()[0]
        self.deserved[part] = ssn.remembered(
            water_filling,
            ssn.total,
            tables.queues.weight[part],
            self.request[part],
            guarantee[part],
            self.real_capability[part],
        )
        self.share = queue_share(self.allocated, self.deserved)

    @points.queue_order
    def queue_order(self, queue: Queue) -> tuple[float, float]:
        """Larger spec.priority first, then the smaller share."""
        return -self.ssn.tables.queues.priority[queue.row], self.share[queue.row]

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return all_at_most(self.deserved[queue.row].tolist(), self.allocated[queue.row].tolist())

    @points.allocatable
    def allocatable(self, queue: Queue, task: TaskClass, count: int) -> int:
        """As many as stay within what the queue deserves, in the dimensions that are asked for; none in a closed
        queue."""
        if not queue.open:
            return 0
        room = (self.deserved[queue.row] - self.allocated[queue.row]).tolist()
        pods = self.ssn.tables.axis.pods
        for i, asked in enumerate(task.req.tolist()):
            if asked > 0 and i != pods:
                count = min(count, math.floor(room[i] / asked))
        return max(0, count)

    @points.preemptive
    def preemptive(self, queue: Queue, tasks: list[Task]) -> bool:
        asked = np.sum([t.req for t in tasks], axis=0)
        return queue.open and not exceeded(self.ssn, self.allocated[queue.row] + asked, self.deserved[queue.row], asked)

    @points.simulate_allocatable
    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        return not exceeded(self.ssn, self.allocated[queue.row] + task.req, self.deserved[queue.row], task.req)

    @points.reclaimable
    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Tasks of queues that have more than they deserve, counted down victim by victim."""
        left: dict[int, F64] = {}
        victims = []
        for task in candidates:
            queue = task.job.queue
            allocated = left.setdefault(queue, self.allocated[queue].copy())
            if not at_most(allocated, self.deserved[queue]):
                allocated -= task.req
                victims.append(task)
        return victims, Vote.PERMIT

    @points.job_enqueueable
    def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | str:
        if not queue.open:
            return Vote.REJECT
        wanted = asked + self.allocated[queue.row] + self.inqueue[queue.row] - self.elastic[queue.row]
        over = exceeded(self.ssn, wanted, self.real_capability[queue.row], asked)
        if not over:
            return Vote.PERMIT
        return "queue resource quota insufficient: " + ", ".join(f"insufficient {name}" for name in over)

    @points.job_enqueued
    def job_enqueued(self, job: Job) -> None:
        self.ssn.journal.add(self.inqueue, job.queue, minimum(self.ssn, job))

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._move(run, 1.0)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._move(run, -1.0)

    def _move(self, run: TaskRun, sign: float) -> None:
        queue = run.queue
        if queue < 0:
            return
        self.ssn.journal.add(self.allocated, queue, (sign * len(run)) * run.req)
        share = largest_part(self.allocated[queue].tolist(), self.deserved[queue].tolist())
        self.ssn.journal.put(self.share, queue, share)


def pending_by_queue(ssn: Session) -> F64:
    """What pending tasks ask for, by queue (Q, R)."""
    tables = ssn.tables
    rows = (tables.tasks.status == PENDING).nonzero()[0]
    rows = rows[tables.tasks.job[rows] >= 0]
    queue = tables.jobs.queue[tables.tasks.job[rows]]
    rows, queue = rows[queue >= 0], queue[queue >= 0]
    shape = len(tables.queues), len(tables.classes)
    if shape[0] * shape[1] > len(rows):
        return sums_by(queue, tables.classes.matrix[tables.tasks.cls[rows]], len(tables.queues))
    counts = np.bincount(queue.astype(np.int64) * shape[1] + tables.tasks.cls[rows], minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64) @ tables.classes.matrix


def real_capability(ssn: Session, guarantee: F64) -> F64:
    """The most a queue can have: what others' guarantees leave of the cluster, and its own capability. (Q, R), inf
    where unlimited."""
    left = np.maximum(ssn.total - guarantee.sum(axis=0), 0.0) + guarantee
    return np.asarray(np.minimum(left, ssn.tables.queues.capability))
