"""The cluster over time: takes events, keeps the columns in step, gives snapshots.

What an event touches is marked and rebuilt when the next snapshot is taken; a snapshot after no events costs nothing.
Source: Volcano cache event handlers (which pods count, when a job exists, what an update in flight may not undo).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pumice.columns.classes import ClassTable
from pumice.columns.counting import PENDING, RELEASING
from pumice.columns.dtypes import I64, ResourceAxis
from pumice.columns.hypernodes import build_tree
from pumice.columns.jobs import JobTable, SubJobTable
from pumice.columns.ledger import DirectWriter, Ledger
from pumice.columns.nodes import NodeFacts, NodeTable
from pumice.columns.queues import QueueTable
from pumice.columns.roles import RoleNames
from pumice.columns.snapshot import Shard, Snapshot
from pumice.columns.tables import Tables
from pumice.columns.tasks import TaskTable
from pumice.model.decisions import Bind, Evict
from pumice.model.events import Event, Gone, Object, Seen, Undone
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.podgroup import PodGroup
from pumice.model.queue import PriorityClass, Queue
from pumice.model.resources import Resource
from pumice.model.status import ALLOCATED_STATUSES, COMPLETED_STATUSES, TaskStatus, status_of_pod
from pumice.model.topology import HyperNode
from pumice.state.job_rows import JobKeeper
from pumice.state.task_fields import fill_task


class Store:
    """The columns behind every snapshot.

    ``scheduler_names``: pods of other schedulers count only once they are on a node. ``default_queue``: where a
    PodGroup without queue goes.
    """

    def __init__(
        self,
        *,
        scheduler_names: Iterable[str] = ("volcano",),
        default_queue: str = "default",
        use_priority_classes: bool = True,
    ) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.use_priority_classes = use_priority_classes
        self.shard: Shard | None = None
        self.nodes: dict[str, Node] = {}
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, PriorityClass] = {}
        self.hypernodes: dict[str, HyperNode] = {}
        self._row_of_pod: dict[str, int] = {}
        self._number = 0
        self._memory: dict[str, Any] = {}
        self._stale_nodes = self._stale_queues = self._stale_tree = self._stale_priorities = False
        axis = ResourceAxis()
        tables = Tables(
            axis,
            NodeTable(NodeFacts((), axis)),
            TaskTable(),
            JobTable(axis),
            SubJobTable(),
            QueueTable((), axis),
            ClassTable(axis),
            build_tree((), (), ()),
            RoleNames(),
        )
        self._tables = tables
        self._ledger = Ledger(tables, DirectWriter())
        self._jobs = JobKeeper(tables, self._ledger, default_queue)

    # -- events -------------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Take one event in. Raises nothing for events that are merely late, repeated or about unknown objects."""
        match event:
            case Seen():
                self._seen(event.obj)
            case Gone():
                self._gone(event)
            case Undone():
                self._undone(event)

    def _seen(self, obj: Object) -> None:
        match obj:
            case Pod():
                self._pod_seen(obj)
            case PodGroup():
                self._cover(obj.min_resources)
                self._jobs.group_seen(obj)
                self._stale_priorities = True
            case Node():
                if self.nodes.get(obj.name) != replace(obj, resource_version=self._version_of(obj.name)):
                    self._stale_nodes = True
                self.nodes[obj.name] = obj
            case Queue():
                self._queue_seen(obj)
            case PriorityClass():
                self.priority_classes[obj.name] = obj
                self._jobs.all_priorities_stale()
                self._stale_priorities = True
            case HyperNode():
                self.hypernodes[obj.name] = obj
                self._stale_tree = True

    def _queue_seen(self, queue: Queue) -> None:
        for amount in (queue.capability, queue.deserved, queue.guarantee, queue.allocated):
            self._cover(amount)
        known = self.queues.get(queue.name)
        self.queues[queue.name] = queue
        row = self._tables.queues.row_of.get(queue.name)
        if (
            known is None
            or row is None
            or replace(queue, resource_version=known.resource_version, allocated=known.allocated) != known
        ):
            self._stale_queues = True
        else:
            self._tables.queues.restate(row, queue)

    def _version_of(self, node: str) -> str:
        known = self.nodes.get(node)
        return known.resource_version if known else ""

    def _gone(self, event: Gone) -> None:
        if event.kind is Pod:
            row = self._row_of_pod.pop(event.key, None)
            if row is not None:
                self._remove_task(row)
        elif event.kind is PodGroup:
            self._jobs.group_gone(event.key)
        elif event.kind is Node:
            self._stale_nodes |= self.nodes.pop(event.key, None) is not None
        elif event.kind is Queue:
            self._stale_queues |= self.queues.pop(event.key, None) is not None
        elif event.kind is PriorityClass:
            self.priority_classes.pop(event.key, None)
            self._jobs.all_priorities_stale()
            self._stale_priorities = True
        elif event.kind is HyperNode:
            self._stale_tree |= self.hypernodes.pop(event.key, None) is not None

    def _pod_seen(self, pod: Pod) -> None:
        key = pod.key
        if key not in self._row_of_pod and pod.scheduler_name not in self.scheduler_names and not pod.node_name:
            return
        self._cover(pod.spec.request)  # first of all: a new scalar makes new tables, with other rows
        row = self._row_of_pod.get(key)
        if row is None:
            self._file(pod)
            return
        tasks = self._tables.tasks
        known, status = tasks.pods[row], TaskStatus(int(tasks.status[row]))
        assumed = known.uid == pod.uid and _stands(status, known, pod)
        if _same_terms(known, pod):
            if not assumed:
                self._leave(row)
            tasks.pods[row] = pod
            if not assumed:
                self._enter(row, pod)
            return
        at = self._node_name(row)
        self._remove_task(self._row_of_pod.pop(key))
        row = self._file(pod)
        if assumed:
            self._assume(row, status, at)

    def _file(self, pod: Pod) -> int:
        """Give a new pod its row, under its class and its job."""
        tasks = self._tables.tasks
        row = self._row_of_pod[pod.key] = tasks.new_row()
        tasks.pods[row] = pod
        tasks.cls[row] = self._tables.classes.row(pod.spec)
        fill_task(self._tables, row, pod)
        if pod.group_key:
            self._jobs.add_task(row, pod)
        self._enter(row, pod)
        return row

    def _enter(self, row: int, pod: Pod) -> None:
        tables = self._tables
        status = _own_status(pod)
        node = (
            tables.nodes.facts.row_of.get(pod.node_name, -1)
            if pod.node_name and status not in COMPLETED_STATUSES
            else -1
        )
        tables.tasks.nominated[row] = (
            tables.nodes.facts.row_of.get(pod.nominated_node, -1) if pod.nominated_node else -1
        )
        self._ledger.enter(row, status, node)
        self._view(row, node, 1.0)
        self._jobs.changed(row)

    def _remove_task(self, row: int) -> None:
        self._leave(row)
        self._jobs.remove_task(row)
        self._tables.tasks.free_row(row)

    def _leave(self, row: int) -> None:
        self._ledger.leave(row)
        self._view(row, int(self._tables.tasks.view_node[row]), -1.0)
        self._jobs.changed(row)

    def _view(self, row: int, node: int, sign: float) -> None:
        """The same move in kube-scheduler's view of the node: every pod that is on it, in whatever state."""
        tables = self._tables
        tables.tasks.view_node[row] = node if sign > 0 else -1
        if node >= 0:
            tables.nodes.view[node] += sign * tables.classes.steps[tables.tasks.cls[row]]

    # -- decisions in flight ------------------------------------------------------------------------------------------

    def assume(self, decision: Bind | Evict) -> None:
        """Count a decision that was sent as if it had happened, until events say what really did.

        Nothing to do when events were faster. Who sends a decision sees to it that an event comes in bounded time: the
        pod as it became of it, or ``Undone``.
        """
        row = self._row_of_pod.get(decision.pod)
        tasks = self._tables.tasks
        if row is None or tasks.pods[row].uid != decision.uid:
            return
        confirmed = tasks.status[row] != PENDING if isinstance(decision, Bind) else tasks.status[row] == RELEASING
        if confirmed:
            return
        self._assume(row, TaskStatus.BINDING if isinstance(decision, Bind) else TaskStatus.RELEASING, decision.node)

    def _assume(self, row: int, status: TaskStatus, node_name: str) -> None:
        """Book a task as it will be."""
        node = self._tables.nodes.facts.row_of.get(node_name, -1)
        self._leave(row)
        self._ledger.enter(row, status, node)
        self._view(row, node, 1.0)

    def _node_name(self, row: int) -> str:
        node = int(self._tables.tasks.node[row])
        return self._tables.nodes.facts.names[node] if node >= 0 else ""

    def _undone(self, event: Undone) -> None:
        row = self._row_of_pod.get(event.pod)
        if row is not None and self._tables.tasks.pods[row].uid == event.uid:
            self._leave(row)
            self._enter(row, self._tables.tasks.pods[row])

    def remember(
        self, job_hypernodes: Mapping[int, int], sub_hypernodes: Mapping[int, int], settled: I64, settled_as: I64
    ) -> None:
        """Keep what a cycle found out: the hypernode of each job and sub-job (by row), the jobs that need no further
        look until they change, and as what these failed."""
        jobs, subs = self._tables.jobs, self._tables.subs
        for row, hypernode in job_hypernodes.items():
            jobs.hypernode[row] = hypernode
        for row, hypernode in sub_hypernodes.items():
            subs.hypernode[row] = hypernode
        jobs.settled[settled] = True
        jobs.settled_as[settled] = settled_as

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The cluster as it is now. Cost follows what changed since the last one."""
        if self._stale_nodes:
            self._rebuild_nodes()
        tables = self._tables  # a new scalar made new tables
        if self._stale_tree:
            self._rebuild_tree()
        if self._stale_queues:
            tables.queues = QueueTable(self.queues.values(), tables.axis)
            self._jobs.all_queues_stale()
            self._stale_queues = False
        self._jobs.refresh()
        if self._stale_priorities:
            self._jobs.refresh_priorities(self.priority_classes if self.use_priority_classes else {})
            self._stale_priorities = False
        self._number += 1
        return Snapshot(tables, self._number, self.shard, self._memory)

    def _cover(self, resource: Resource | None) -> None:
        """Make sure that every scalar has a column; a new one rebuilds all tables, which is rare."""
        if resource is not None and not self._tables.axis.covers(resource):
            self._widen(resource.scalars or {})

    def _widen(self, names: Iterable[str]) -> None:
        """Make all tables anew, with columns for these scalars too. Decisions in flight stay in flight."""
        old, keeper = self._tables, self._jobs
        axis = ResourceAxis([*old.axis.names, *names])
        queues = QueueTable(self.queues.values(), axis)
        self._tables = Tables(
            axis,
            NodeTable(NodeFacts((), axis)),
            TaskTable(),
            JobTable(axis),
            SubJobTable(),
            queues,
            ClassTable(axis),
            old.tree,
            RoleNames(),
        )
        self._ledger = Ledger(self._tables, DirectWriter())
        self._jobs = JobKeeper(self._tables, self._ledger, keeper.default_queue)
        for group in keeper.groups():
            self._jobs.group_seen(group)
        rows, self._row_of_pod = self._row_of_pod, {}
        for row in rows.values():
            self._file(old.tasks.pods[row])
        self._jobs.inherit(keeper)
        self._stale_priorities = True
        self._rebuild_nodes()
        for key, row in rows.items():
            status = TaskStatus(int(old.tasks.status[row]))
            if status is not _own_status(old.tasks.pods[row]):
                at = int(old.tasks.node[row])
                self._assume(self._row_of_pod[key], status, old.nodes.facts.names[at] if at >= 0 else "")

    def _rebuild_nodes(self) -> None:
        amounts = [amount for node in self.nodes.values() for amount in (node.allocatable, node.oversubscription)]
        if not all(map(self._tables.axis.covers, amounts)):
            self._widen(name for amount in amounts for name in amount.scalars or ())
            return
        tables = self._tables
        tasks, old_names = tables.tasks, tables.nodes.facts.names
        facts = NodeFacts(list(self.nodes.values()), tables.axis)
        tables.nodes = NodeTable(facts)
        for row in self._row_of_pod.values():
            pod, status, at = tasks.pods[row], TaskStatus(int(tasks.status[row])), int(tasks.node[row])
            name = old_names[at] if at >= 0 else pod.node_name
            where = facts.row_of.get(name, -1) if name and status not in COMPLETED_STATUSES else -1
            tasks.nominated[row] = facts.row_of.get(pod.nominated_node, -1)
            self._ledger.rebook(row, where)
            self._view(row, where, 1.0)
        self._stale_nodes = False
        self._stale_tree = True

    def _rebuild_tree(self) -> None:
        tables = self._tables
        facts = tables.nodes.facts
        before = tables.tree.names
        tables.tree = build_tree(self.hypernodes.values(), facts.names, [n.labels for n in facts.objs])
        for column in (tables.jobs.hypernode, tables.subs.hypernode, tables.subs.nominated):
            for row in np.flatnonzero(column >= 0).tolist():
                column[row] = tables.tree.row_of.get(before[column[row]], -1)
        self._stale_tree = False


def _own_status(pod: Pod) -> TaskStatus:
    """The state that the API server gives the pod."""
    return status_of_pod(pod.phase, node_name=pod.node_name, deleting=pod.deletion is not None)


def _stands(status: TaskStatus, known: Pod, pod: Pod) -> bool:
    """Whether a decision in flight, that put the task in this state, is neither confirmed nor overtaken by ``pod``."""
    own = _own_status(pod)
    if status is TaskStatus.RELEASING:
        return own not in COMPLETED_STATUSES and TaskStatus.RELEASING not in (own, _own_status(known))
    return status in ALLOCATED_STATUSES and own is TaskStatus.PENDING


def _same_terms(known: Pod, pod: Pod) -> bool:
    """Whether it is the same pod, and nothing has changed that its row or its job's were filled from."""
    return (
        known.uid == pod.uid
        and known.spec is pod.spec
        and known.labels == pod.labels
        and known.annotations == pod.annotations
        and known.gates == pod.gates
    )
