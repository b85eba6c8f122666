"""proportion: queues share the cluster by weight. Source: Volcano proportion (spec 04 §7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import in_turn
from pumice.algorithms.shares import all_at_most, at_most, largest_part, queue_share, water_filling
from pumice.columns.dtypes import F64, AnyArray, Bool, read_only
from pumice.columns.placement import Placement
from pumice.columns.rows import Candidates, TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, Node, Queue, Task
from pumice.framework.combine import Vote
from pumice.framework.memo import Ground, ground
from pumice.framework.plugin import plugin
from pumice.framework.point import COUNTS_DOWN, NOBODY_NEW, ROWS, SIGNATURE
from pumice.framework.session import Session
from pumice.volcano import points
from pumice.volcano.admission import exceeded, fitting, minimum
from pumice.volcano.eviction import EvictionContext, EvictionKind
from pumice.volcano.queue_amounts import QueueAmounts, queue_amounts


@plugin("proportion")
class Proportion:
    """Only queues with jobs take part. All columns are (Q, R), ``share`` (Q,). ``deservedKept``: gangs of other queues
    take, like single tasks, only from queues that have more than they deserve; off, as in Volcano, from any."""

    spares = "of queues within what they deserve"

    def __init__(self, ssn: Session, *, deservedKept: bool = False) -> None:
        self.ssn = ssn
        self.unused_points = () if deservedKept else (points.unified_evictable,)
        amounts = queue_amounts(ssn)
        due = _due_of(ssn, amounts)
        self.request, self.takes_part = amounts.request, due.takes_part
        self.elastic = ssn.column("proportion.elastic", "queue", values=amounts.elastic)
        self.real_capability = ssn.column("proportion.real_capability", "queue", values=due.capability)
        self.deserved = ssn.column("proportion.deserved", "queue", values=due.deserved)
        self.allocated = ssn.column("proportion.allocated", "queue", values=amounts.allocated)
        self.inqueue = ssn.column("proportion.inqueue", "queue", values=amounts.inqueue)
        self.share = ssn.column("proportion.share", "queue", values=due.share)

    def figures(self) -> Mapping[str, AnyArray]:
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
        """Larger spec.priority first, then the smaller share."""
        return -self.ssn.tables.queues.priority[queue.row], self.share.array[queue.row]

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return all_at_most(self.deserved.array[queue.row].tolist(), self.allocated.array[queue.row].tolist())

    @points.allocatable
    def allocatable(self, queue: Queue, tasks: TaskRows) -> int:
        """As many as stay within what the queue deserves, in the dimensions that each asks for; none in a closed
        queue."""
        if not queue.open:
            return 0
        return fitting(tasks, self.deserved.array[queue.row] - self.allocated.array[queue.row])

    @points.preemptive
    def preemptive(self, queue: Queue, tasks: TaskRows) -> bool:
        asked = tasks.req.sum(axis=0)
        held = self.allocated.array[queue.row]
        return queue.open and not exceeded(self.ssn, held + asked, self.deserved.array[queue.row], asked)

    @points.simulate_remove_task
    def simulate_remove(self, task: Task, gone: Task, node: Node) -> None:
        """The queue of the task ``gone`` holds so much less, until the trial is rolled back."""
        self._move(TaskRun(self.ssn.tables, Placement([gone.row], [node.row])), -1.0)

    @points.simulate_add_task
    def simulate_add(self, task: Task, added: Task, node: Node) -> None:
        """The queue of the task ``added`` holds so much more, until the trial is rolled back."""
        self._move(TaskRun(self.ssn.tables, Placement([added.row], [node.row])), 1.0)

    @points.simulate_allocatable
    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        held = self.allocated.array[queue.row]
        return not exceeded(self.ssn, held + task.req, self.deserved.array[queue.row], task.req)

    @points.reclaimable(reads=(ROWS, SIGNATURE, COUNTS_DOWN, NOBODY_NEW, "proportion.allocated", "proportion.deserved"))
    def reclaimable(self, reclaimer: Task, candidates: Candidates) -> Bool:
        """Tasks of queues that have more than they deserve, counted down victim by victim. Shape (rows,)."""
        return self._beyond_deserved(candidates, candidates.apart(candidates.queue))

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: TaskRows) -> Bool:
        """For a gang of the same queue everything; for one of another the tasks of queues that have more than they
        deserve, as ``reclaimable``. Shape (rows,)."""
        if context.kind is not EvictionKind.GANG_RECLAIM:
            return np.ones(len(candidates), dtype=bool)
        return self._beyond_deserved(candidates, candidates.queue)

    def _beyond_deserved(self, candidates: TaskRows, group: AnyArray) -> Bool:
        """``group``: candidates of which are counted down together. Shape (rows,)."""
        queue, req = candidates.queue, candidates.req
        allocated, deserved = self.allocated.array[queue], self.deserved.array[queue]
        left, victims = np.empty_like(allocated), np.zeros(len(candidates), dtype=bool)
        for step, (rows, groups) in enumerate(in_turn(group)):
            if not step:
                left[groups] = allocated[rows]
            victims[rows] = ~at_most(left[groups], deserved[rows])
            left[groups] -= np.where(victims[rows, None], req[rows], 0.0)
        return victims

    @points.job_enqueueable
    def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | str:
        if not queue.open:
            return Vote.REJECT
        row = queue.row
        wanted = asked + self.allocated.array[row] + self.inqueue.array[row] - self.elastic.array[row]
        over = exceeded(self.ssn, wanted, self.real_capability.array[row], asked)
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
        self.ssn.journal.add(self.allocated, queue, sign * run.total)
        share = largest_part(self.allocated.array[queue].tolist(), self.deserved.array[queue].tolist())
        self.ssn.journal.put(self.share, queue, share)


class Due(NamedTuple):
    """What is due to queues as the session begins: whether they take part (Q,), the most they can have and what they
    deserve (Q, R), and their shares (Q,). Not to be written on."""

    takes_part: Bool
    capability: F64
    deserved: F64
    share: F64


def _due_of(ssn: Session, amounts: QueueAmounts) -> Due:
    given = (amounts.allocated, amounts.request, amounts.has_jobs)
    rests_on = (*_entitled_by(ssn), *(each.tobytes() for each in given))
    return ssn.memo.get("proportion", rests_on, lambda: _due(ssn, *given))


def _due(ssn: Session, allocated: F64, request: F64, takes_part: Bool) -> Due:
    queues, part = ssn.tables.queues, takes_part.nonzero()[0]
    capability = ssn.memo.get("real capability", _entitled_by(ssn), lambda: real_capability(ssn, queues.guarantee))
    given = (ssn.total, queues.weight[part], request[part], queues.guarantee[part], capability[part])
    deserved = np.zeros_like(request)
    same = tuple(amount.tobytes() for amount in given)
    deserved[part] = ssn.memo.get("proportion.deserved", same, lambda: water_filling(*given))
    return Due(*map(read_only, (takes_part, capability, deserved, queue_share(allocated, deserved))))


def _entitled_by(ssn: Session) -> Ground:
    """What says how much queues may have, whatever their jobs want: the size of the cluster, and the queues."""
    queues = ssn.tables.queues
    return ssn.tables.nodes.facts.version, *ground(queues["weight"], queues["guarantee"], queues["capability"])


def real_capability(ssn: Session, guarantee: F64) -> F64:
    """The most a queue can have: what others' guarantees leave of the cluster, and its own capability. (Q, R), inf
    where unlimited."""
    left = np.maximum(ssn.total - guarantee.sum(axis=0), 0.0) + guarantee
    return np.asarray(np.minimum(left, ssn.tables.queues.capability))
