"""capacity: give queues explicit amounts, side by side or in a tree. Source: Volcano capacity plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pumice.api import (
    EPS,
    F64,
    JOBS,
    PENDING,
    PODS,
    QUEUES,
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
    Unfit,
    Vote,
    plugin,
    points,
)
from pumice.columns.placement import Placement
from pumice.framework.memo import ground
from pumice.model.blockers import NO_HIERARCHY, BadQueue
from pumice.volcano.eviction.victim_order import eviction_order_by_node
from pumice.volcano.queues.admitted import exceeded, fitting, minimum, queue_limit
from pumice.volcano.queues.amounts import queue_amounts
from pumice.volcano.queues.device_quota import DeviceQuota, limited_classes
from pumice.volcano.queues.entitlements import Entitlements, in_tree, side_by_side
from pumice.volcano.queues.reclaimable import Reclaimable
from pumice.volcano.queues.reserved_room import ReservedRoom, has_gated_pods
from pumice.volcano.queues.tree import QueueTree

#: What the eviction order rests on. Any plugin may contribute to it, so it rests on everything.
VICTIMS = (ROWS, QUEUES, JOBS, PODS)
#: What a queue may take rests on all its ancestors, on devices, and on reservations for some tasks.
_TAKES_ON = ("allocated", "most", "works", "devices", "naming", "kept_room", "kept_for")
TAKES_ON = (ROWS, *(f"capacity.{name}" for name in _TAKES_ON))

#: Column -> name of the published figure.
FIGURES = {
    "allocated": "queue.allocated",
    "deserved": "queue.deserved",
    "most": "queue.real_capacity",
    "inqueue": "queue.inqueue",
    "elastic": "queue.elastic",
    "share": "queue.share",
}


@plugin("capacity", separator=".")
class Capacity:
    """Limit queues and order them by deserved amounts.

    With ``hierarchy``, queues form a tree, and what a queue holds counts in all its ancestors.
    ``capacity.DynamicResourceAllocationEnable``: count devices that a queue's capability limits.
    ``ancestorReclaimLevel``: number of ancestors that count when a queue reclaims, and in victims' queues; below 0
    means 0. ``commonAncestorsCount``: an ancestor that deserves more lets a queue also reclaim from queues below the
    same ancestor. Volcano does so, and two such queues may then take the same resources from each other forever.
    ``problem``: why nothing can be placed, admitted or reclaimed, or "". Columns are (Q, R), ``share`` (Q,).
    """

    def __init__(
        self,
        ssn: Session,
        *,
        hierarchy: bool = False,
        ancestorReclaimLevel: int = 0,
        commonAncestorsCount: bool = True,
        capacity_DynamicResourceAllocationEnable: bool = True,
        capacity_DRAConsumableCapacityEnable: bool = False,
    ) -> None:
        self.ssn, self.hierarchy = ssn, hierarchy
        self.level = max(0, ancestorReclaimLevel) if hierarchy else 0
        # At level 0 no ancestor is consulted, so its rule has nothing to exclude.
        self.common_count = commonAncestorsCount or not self.level
        queues = ssn.tables.queues
        self.tree, self.of = self._shape()
        # One job in an inner queue stops placement, admission and reclaim in the whole cluster, as in Volcano.
        self.problem = self.tree.problem or (self._misplaced_job() if hierarchy else "")
        # Sums first, then the tree: what a queue holds counts in each of its ancestors. Source: Volcano capacity.go,
        # buildHierarchicalQueueAttrs.
        amounts, up = queue_amounts(ssn), self.tree.summed_up
        allocated = up(amounts.allocated)
        self.request = up(amounts.request)
        self.deserved = ssn.column("capacity.deserved", "queue", values=self.of.deserved)
        # Also columns although they do not change in a session, so that memoized answers rest on them.
        self.most = ssn.column("capacity.most", "queue", values=self.of.most)
        self.elastic = ssn.column("capacity.elastic", "queue", values=up(amounts.elastic))
        self.allocated = ssn.column("capacity.allocated", "queue", values=allocated)
        self.inqueue = ssn.column("capacity.inqueue", "queue", values=up(amounts.inqueue))
        self.share = ssn.column("capacity.share", "queue", values=self.of.share(allocated))
        # Few clusters have gated pods. Without any, no room needs to be reserved for them.
        self.kept = ReservedRoom(ssn, self.tree) if has_gated_pods(ssn) else None
        # A column, so that memoized answers about queues also rest on whether the tree is valid.
        self.works = ssn.column("capacity.works", values=np.array([not self.problem]))
        self._empty: list[bool] = self.of.deserves_nothing().tolist()
        # Lists, because a comparison of two queues reads single values.
        self._rank = list(zip((-queues.priority).tolist(), (~self.tree.is_leaf).tolist(), strict=True))
        self.unused_points = () if hierarchy else (points.victim_queue_order,)
        classes = limited_classes(ssn) if capacity_DynamicResourceAllocationEnable else ()
        self.devices = DeviceQuota(ssn, self.tree, classes) if classes else None
        self.unused_hooks = (
            "queue_key" if hierarchy else "queue_order",
            *(() if self.devices else ("job_enqueueable_with_devices",)),
            *(() if self.kept else ("gate_taken_off",)),
        )
        if self.problem:
            ssn.trace.tell("queues", BadQueue("", NO_HIERARCHY, detail=self.problem))

    @staticmethod
    def problems(*, capacity_DRAConsumableCapacityEnable: bool, **others: Any) -> Iterator[str]:
        """Yield problems with the arguments."""
        if capacity_DRAConsumableCapacityEnable:
            yield "argument capacity.DRAConsumableCapacityEnable: quotas count devices, not yet what is used of them"

    def _shape(self) -> tuple[QueueTree, Entitlements]:
        """Return the tree and the entitlements of queues, cached while queues and the size of the cluster are
        unchanged."""
        ssn, queues = self.ssn, self.ssn.tables.queues
        rests_on = (*ground(queues["parent"]), ssn.total.tobytes())
        return ssn.memo.get(("capacity.shape", self.hierarchy), rests_on, self._build_shape)

    def _build_shape(self) -> tuple[QueueTree, Entitlements]:
        """Build the tree and the entitlements."""
        tables, total = self.ssn.tables, self.ssn.total
        queues, axis = tables.queues, tables.axis
        tree = QueueTree.of(queues) if self.hierarchy else QueueTree.flat(len(queues))
        if self.hierarchy and not tree.problem:
            return tree, in_tree(queues, tree, axis, total)
        return tree, side_by_side(queues, axis, total)

    def _misplaced_job(self) -> str:
        """Return a problem if a job is in a queue that has queues below it, else ""."""
        jobs, live = self.ssn.tables.jobs, self.ssn.live_jobs
        wrong = live[~self.tree.is_leaf[jobs.queue[live]]]
        if not len(wrong):
            return ""
        # The smallest UID, so that every cycle names the same job.
        first = min(wrong.tolist(), key=jobs.uids.__getitem__)
        return (
            f'queue "{self.ssn.tables.queues.names[jobs.queue[first]]}" of job {jobs.uids[first]} has queues below it'
        )

    def figures(self) -> Mapping[str, AnyArray]:
        """Return the numbers of queues for metrics and reports."""
        columns = {figure: getattr(self, column).array for column, figure in FIGURES.items()}
        return {**columns, "queue.request": self.request, "queue.overused": self.share.array > 1}

    # -- order --------------------------------------------------------------------------------------------------------

    @points.queue_order
    def queue_key(self, queue: Queue) -> tuple[float, float, bool]:
        """Return the key without hierarchy: larger spec.priority first, then smaller share, then queues that deserve
        something."""
        row = queue.row
        return self._rank[row][0], self.share.array[row], self._empty[row]

    @points.queue_order
    def queue_order(self, left: Queue, right: Queue) -> int:
        """Compare with hierarchy: larger spec.priority first, then leaves, then smaller share."""
        a, b = left.row, right.row
        rank, other_rank = self._rank[a], self._rank[b]
        if rank != other_rank:
            return -1 if rank < other_rank else 1
        # Two leaves are compared by their highest ancestors that differ, so that shares are fair at every level.
        if not rank[1]:
            a, b = self.tree.parted(a, b)
        share, other_share = self.share.array.item(a), self.share.array.item(b)
        if share != other_share:
            return -1 if share < other_share else 1
        return int(self._empty[a]) - int(self._empty[b])

    @points.victim_queue_order
    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """Order victims of queues with more ancestors in common with the preemptor's queue first."""
        near, far = (self.tree.in_common(queue.row, preemptor.row) for queue in (left, right))
        return far - near

    # -- what a queue may take on -------------------------------------------------------------------------------------

    @points.allocatable(reads=TAKES_ON)
    def allocatable(self, queue: Queue, tasks: TaskRows) -> int | Unfit:
        """Return how many tasks stay within the most that the queue and each ancestor can have, in the dimensions that
        each task asks for.

        None in a queue that is closed or has queues below it.
        """
        if self.problem:
            return Unfit(self.problem)
        if not queue.open or not self.tree.is_leaf[queue.row]:
            return 0
        line = self.tree.line(queue.row)
        # A queue can take no more than the tightest of its ancestors leaves.
        room = self.most.array[line] - self.allocated.array[line]
        count = fitting(tasks, room.min(axis=0)) if self.kept is None else self.kept.fitting(line, tasks, room)
        return count if self.devices is None else min(count, self.devices.fitting(queue.row, tasks.rows.tolist()))

    @points.simulate_allocatable
    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        """Return True if the queue and each ancestor could take the task now."""
        line = self.tree.line(queue.row)
        room = ((self.allocated.array[row] + task.req, self.most.array[row]) for row in line)
        if any(exceeded(self.ssn, wanted, most, task.req) for wanted, most in room):
            return False
        return self.devices is None or self.devices.fitting(queue.row, [task.row]) == 1

    @points.simulate_remove_task
    def simulate_remove(self, task: Task, gone: Task, node: Node) -> None:
        """Subtract the task ``gone`` from its queue and ancestors until the trial is rolled back."""
        self._move(TaskRun(self.ssn.tables, Placement([gone.row], [node.row])), -1.0)

    @points.simulate_add_task
    def simulate_add(self, task: Task, added: Task, node: Node) -> None:
        """Add the task ``added`` to its queue and ancestors until the trial is rolled back."""
        self._move(TaskRun(self.ssn.tables, Placement([added.row], [node.row])), 1.0)

    @points.preemptive
    def preemptive(self, queue: Queue, tasks: TaskRows) -> bool:
        """Return True if the queue may reclaim for these tasks.

        With the tasks it must stay within the most it can have, and in some dimension within what it, or an ancestor
        up to the level, deserves.
        """
        asked, row = tasks.req.sum(axis=0), queue.row
        if self.problem or not queue.open:
            return False
        if exceeded(self.ssn, self.allocated.array[row] + asked, self.most.array[row], asked):
            return False
        return any(self._partly_deserved(each, asked) for each in (row, *self.tree.above(row, self.level)))

    def _partly_deserved(self, row: int, asked: F64) -> bool:
        """Return True if a queue stays within what it deserves in some dimension of the request."""
        wanted = self.allocated.array[row] + asked
        deserved = self.deserved.array[row]
        within = (asked > 0) & (wanted - deserved < EPS) & ((wanted >= EPS) | (deserved >= EPS))
        return bool(within[: self.ssn.tables.axis.pods].any())

    # -- what a queue must give back ----------------------------------------------------------------------------------

    @points.reclaimable(reads=VICTIMS)
    def reclaimable(self, reclaimer: Task, candidates: Candidates) -> Bool:
        """Return the tasks that their queues have to give back, in eviction order. Shape (rows,)."""
        if self.problem:
            return np.zeros(len(candidates), dtype=bool)
        order, queue = eviction_order_by_node(self.ssn, candidates, reclaimer.row), reclaimer.queue.row
        given = self._reclaim_rule().to_task(queue, reclaimer.req, self.level, candidates, order)
        return given if self.common_count else given & self._due_to(queue, reclaimer.req, candidates)

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: TaskRows) -> Bool:
        """Return the tasks that a gang may evict: all for a gang of the same queue, else what queues have to give
        back. Shape (rows,)."""
        if context.kind is not EvictionKind.GANG_RECLAIM:
            return np.ones(len(candidates), dtype=bool)
        if self.problem:
            return np.zeros(len(candidates), dtype=bool)
        # For gangs, Volcano does not look at ancestors.
        given = self._reclaim_rule().to_gang(candidates)
        if self.common_count:
            return given
        tables, tasks = self.ssn.tables, context.job.tasks
        waiting = tasks[tables.tasks.status[tasks] == PENDING]
        return given & self._due_to(context.job.queue.row, TaskRows(tables, waiting).req.sum(axis=0), candidates)

    def _due_to(self, queue: int, asked: F64, candidates: TaskRows) -> Bool:
        """Return the candidates that a queue may take ``asked`` (R,) from, if common ancestors do not count.
        Shape (rows,).

        These are all candidates if the queue stays within what it deserves, else those outside of some ancestor that
        does.
        """
        if self._partly_deserved(queue, asked):
            return np.ones(len(candidates), dtype=bool)
        within = [row for row in self.tree.above(queue, self.level) if self._partly_deserved(row, asked)]
        # Many candidates belong to few queues, so the question is answered once per queue.
        found, inverse = np.unique(candidates.queue, return_inverse=True)
        due = [any(row not in self.tree.line(other) for row in within) for other in found.tolist()]
        return np.array(due, dtype=bool)[inverse]

    def _reclaim_rule(self) -> Reclaimable:
        """Return the rule for the present state of queues."""
        return Reclaimable(self.tree, self.of, self.allocated.array)

    # -- admission ----------------------------------------------------------------------------------------------------

    @points.job_enqueueable
    def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | QueueLimit:
        """Vote on the admission of a request: with what is promised, the queue and each ancestor must stay within the
        most they can have."""
        if self.problem or not queue.open or not self.tree.is_leaf[queue.row]:
            return Vote.REJECT
        for row in self.tree.line(queue.row):
            wanted = asked + self.allocated.array[row] + self.inqueue.array[row] - self.elastic.array[row]
            over = exceeded(self.ssn, wanted, self.most.array[row], asked)
            if over:
                return queue_limit(
                    self.ssn,
                    row,
                    over,
                    limit=self.most.array[row],
                    used=self.allocated.array[row] - self.elastic.array[row],
                    promised=self.inqueue.array[row],
                    asked=asked,
                )
        return Vote.PERMIT

    @points.job_enqueueable
    def job_enqueueable_with_devices(self, job: Job) -> Vote | QueueLimit:
        """Vote on the admission of a job's device claims."""
        assert self.devices is not None
        return self.devices.exceeded(job) or Vote.PERMIT

    @points.job_enqueued
    def job_enqueued(self, job: Job) -> None:
        """Count the minimum of an admitted job."""
        self.ssn.journal.add(self.inqueue, self.tree.line(job.queue.row), minimum(self.ssn, job))
        if self.devices is not None:
            self.devices.promise(job)

    # -- events -------------------------------------------------------------------------------------------------------

    @points.gate_taken_off
    def gate_taken_off(self, task: Task) -> None:
        """Reserve room for a task whose gate is removed until it is placed."""
        assert self.kept is not None
        self.kept.keep(task)

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._move(run, 1.0)
        if self.kept is not None:
            self.kept.placed(run)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._move(run, -1.0)
        if self.kept is not None:
            self.kept.left(run)

    def _move(self, run: TaskRun, sign: float) -> None:
        """Add tasks to their queue and its ancestors, or subtract them."""
        # Pods without a PodGroup have no queue.
        if run.queue < 0:
            return
        line = self.tree.line(run.queue)
        self.ssn.journal.add(self.allocated, line, sign * run.total)
        if self.devices is not None:
            self.devices.move(run.rows, run.queue, sign)
        # At once, because the action compares shares before it chooses the next queue.
        self.ssn.journal.put(self.share, line, self.of.share(self.allocated.array[line], line))
