"""The store: the cluster over time. It takes events, updates the columns, and makes snapshots.

An event marks what it touches, and ``snapshot`` rebuilds what is marked. A snapshot without events in between costs
nearly nothing.
Source: Volcano cache event handlers (which pods count, when a job exists).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isnan

import numpy as np
from msgspec.structs import replace

from pumice.columns.column import Versions, Writer
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.ledger import Accounting, Ledger
from pumice.columns.nodes import NodeFacts, NodeTable
from pumice.columns.objects.device_amounts import Amounts
from pumice.columns.queues import QueueStatusTable, QueueTable
from pumice.columns.snapshot import Shard, Snapshot
from pumice.columns.tables import Tables
from pumice.columns.topology.hypernodes import build_tree
from pumice.model.bind_request import BindRequest
from pumice.model.decisions import Bind, Evict, Writes
from pumice.model.devices.claims import ResourceSlice
from pumice.model.devices.extended import asks_for_any
from pumice.model.devices.gpu import GPU_RESOURCE, asks_for_gpus, is_gpu
from pumice.model.events import Gone, News, Object, PodsGone, PodsSeen, Seen, Undone
from pumice.model.node import Node
from pumice.model.pod import Pod, PodSpec
from pumice.model.queue import PriorityClass, Queue, QueueStatus, without_status
from pumice.model.resources import Resource
from pumice.model.status import COMPLETED_STATUSES
from pumice.model.topology import HyperNode
from pumice.model.usage import UsageWindow
from pumice.model.workloads.gang import DEFAULT_NODE_POOL
from pumice.model.workloads.podgroup import PodGroup
from pumice.state.beside import KINDS, Beside
from pumice.state.grants import Grants
from pumice.state.job_rows import JobKeeper
from pumice.state.label_usage import LabelUsage
from pumice.state.requests import BindRequests
from pumice.state.shared_rows import RoleNumbers
from pumice.state.task_rows import TaskKeeper, own_status, runs_of

#: The most pods that are kept to be written together. Beyond some thousands nothing is gained, and a snapshot has to
#: wait until all that is kept is written.
TAKEN_TOGETHER_MAX = 4096


class Store:
    """The columns behind every snapshot.

    Pods whose scheduler is not in ``scheduler_names`` count only while they are on a node. A PodGroup without a queue
    belongs to ``default_queue``.
    """

    def __init__(
        self,
        *,
        scheduler_names: Iterable[str] = ("volcano",),
        default_queue: str = "default",
        use_priority_classes: bool = True,
        node_pool: str = DEFAULT_NODE_POOL,
    ) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.default_queue = default_queue
        self.use_priority_classes = use_priority_classes
        self.node_pool = node_pool
        self.shard: Shard | None = None
        self.nodes: dict[str, Node] = {}
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, PriorityClass] = {}
        self.hypernodes: dict[str, HyperNode] = {}
        self._number = 0
        self._notes: Mapping[str, float] = {}
        # Events that are not in the columns yet. Decisions sent come first, then pods that came or pods that were
        # deleted. One of the latter two is always empty, so the order of events is kept.
        self._sent: tuple[Sequence[Bind | Evict], NodeTable | None] | None = None
        self._came: dict[str, Pod] = {}
        self._left: dict[str, None] = {}
        self._requests = BindRequests()
        self._versions = Versions()
        self._grants = Grants()
        self._beside = Beside(self._versions, self._grants)
        self._by_devices: Amounts = {}  # what nodes offer by devices, as the table of nodes has it
        self._stale_axis = self._stale_nodes = self._stale_queues = self._stale_tree = self._stale_priorities = False
        versions = self._versions
        tables = self._tables = Tables.empty(versions, ResourceAxis())
        self._usage = LabelUsage(tables)
        writer, roles = Writer(versions), RoleNumbers()
        ledger = Ledger(tables, writer, Accounting())
        self._jobs = JobKeeper(tables, ledger, roles, default_queue)
        self._tasks = TaskKeeper(tables, writer, ledger, self._jobs, roles)

    # -- events -------------------------------------------------------------------------------------------------------

    def apply_all(self, news: Iterable[News]) -> None:
        """Take in events, oldest first."""
        for each in news:
            self.apply(each)

    def apply(self, news: News) -> None:
        """Take in an event. Events that are late, repeated or about unknown objects are no errors."""
        match news:
            case PodsSeen(pods):
                self._pods_seen(pods)
            case PodsGone(keys):
                self._pods_gone(keys)
            case Seen(Pod() as pod):
                self._pods_seen({pod.key: pod})
            case Gone(kind, key) if kind is Pod:
                self._pods_gone((key,))
            case Seen(obj):
                self._take_in()
                self._seen(obj)
            case Gone(kind, key):
                self._take_in()
                self._gone(kind, key)
            case Undone(key, uid):
                self._take_in()
                self._tasks.undone(key, uid)
                self._grants.let_go((key,))

    def _pods_seen(self, pods: Mapping[str, Pod]) -> None:
        """Keep new and changed pods, to be written together with the next ones."""
        # A BindRequest binds a pod before its ``spec.nodeName`` says so. Without that, a second cycle would place it
        # again.
        if self._requests:
            pods = {key: self._requests.counts_as(pod) for key, pod in pods.items()}
        # A pod that changes twice is written twice: what it was in between decides, for one, when a bind is confirmed.
        if self._left or (self._came and not self._came.keys().isdisjoint(pods)):
            self._take_in()
        ours, known = self.scheduler_names, self._tasks.row_of
        # A pod of another scheduler that already has a row must not be left out, or its row would never change.
        if not ours.issuperset({pod.scheduler_name for pod in pods.values()}):
            pods = {
                key: pod for key, pod in pods.items() if pod.scheduler_name in ours or pod.node_name or key in known
            }
        self._came.update(pods)
        self._take_in_many()

    def _pods_gone(self, keys: Collection[str]) -> None:
        """Keep the keys of deleted pods, to be removed together with the next ones."""
        if self._came:
            self._take_in()
        self._left.update(dict.fromkeys(keys))
        self._requests.gone(keys)
        self._take_in_many()

    def _take_in_many(self) -> None:
        if len(self._came) + len(self._left) >= TAKEN_TOGETHER_MAX:
            self._take_in()

    def take_in(self) -> None:
        """Do a part of the work of the next snapshot early, while the scheduler is idle."""
        self._take_in()
        self._jobs.refresh()

    def _take_in(self) -> None:
        """Write what was kept: decisions that were sent, then the pods that came or were deleted."""
        if self._sent is not None:
            sent, self._sent = self._sent, None
            self._count_as_done(*sent)
        if self._came:
            pods, self._came = self._came, {}
            # Before the rows are written, which have the pods of before.
            if self._usage.windows:
                self._usage.seen(pods, self._known_pod)
            runs = list(runs_of(pods))
            self._cover_pods([next(iter(run.values())).spec for run in runs])
            self._tasks.seen(runs)
            if self._grants:
                self._grants.bound([key for key, pod in pods.items() if pod.node_name])
                self._grants.let_go([key for key, pod in pods.items() if own_status(pod) in COMPLETED_STATUSES])
        elif self._left:
            keys, self._left = self._left, {}
            if self._usage.windows:
                self._usage.gone(pod for pod in map(self._known_pod, keys) if pod is not None)
            self._tasks.gone(keys)
            self._grants.let_go(keys)

    def _known_pod(self, key: str) -> Pod | None:
        row = self._tasks.row_of.get(key)
        return None if row is None else self._tables.tasks.pods[row]

    def _seen(self, obj: Object) -> None:
        match obj:
            case PodGroup():
                if obj.min_resources is not None:
                    self._cover([obj.min_resources])
                self._jobs.group_seen(obj)
                self._stale_priorities = True
            case Node():
                # Kubelets write the status of a node every few minutes. Without a difference that counts, no table is
                # made anew.
                if self.nodes.get(obj.name) != replace(obj, resource_version=self._version_of(obj.name)):
                    self._stale_nodes = True
                    self._offered((obj.allocatable, obj.oversubscription))
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
            case BindRequest():
                self._recount(self._requests.take(obj))
            case _:
                self._beside.seen(obj)
                # By this object alone: to ask about all slices with each of them would take the square of their number.
                offers = isinstance(obj, ResourceSlice) and is_gpu(obj.driver)
                self._stale_axis |= offers and GPU_RESOURCE not in self._tables.axis.column

    def _recount(self, pod: str | None) -> None:
        """Count a pod again after its BindRequest has changed."""
        row = self._tasks.row_of.get(pod) if pod is not None else None
        if pod is None or row is None:
            return
        plain = self._requests.as_it_is(self._tables.tasks.pods[row])
        if self._grants and not self._requests.is_live(pod) and not plain.node_name:
            self._grants.let_go((pod,))
        self._tasks.seen([{pod: self._requests.counts_as(plain)}])
        # The decision to bind it is no longer in flight: the request has taken its place, or has failed.
        self._tasks.undone(pod, plain.uid)

    def _queue_seen(self, queue: Queue) -> None:
        self._offered(_amounts_of(queue))
        known = self.queues.get(queue.name)
        self.queues[queue.name] = queue
        row = self._tables.queues.row_of.get(queue.name)
        if known is None or row is None or without_status(queue) != without_status(known):
            self._stale_queues = True
        else:
            self._tables.queue_statuses.take(row, QueueStatus.of(queue))

    def _version_of(self, node: str) -> str:
        known = self.nodes.get(node)
        return known.resource_version if known else ""

    def _gone(self, kind: type[Object], key: str) -> None:
        if kind is PodGroup:
            self._jobs.group_gone(key)
        elif kind is Node:
            self._stale_nodes |= self.nodes.pop(key, None) is not None
        elif kind is Queue:
            self._stale_queues |= self.queues.pop(key, None) is not None
        elif kind is PriorityClass:
            self.priority_classes.pop(key, None)
            self._jobs.all_priorities_stale()
            self._stale_priorities = True
        elif kind is HyperNode:
            self._stale_tree |= self.hypernodes.pop(key, None) is not None
        elif kind is BindRequest:
            self._recount(self._requests.drop(key))
        # Other kinds are ignored: watches may carry more than what decides.
        elif kind in KINDS:
            self._beside.gone(kind, key)

    # -- decisions in flight ------------------------------------------------------------------------------------------

    def assume(self, decisions: Sequence[Bind | Evict], left: Tables | None = None) -> None:
        """Count decisions that were sent as if they had been carried out, until events show what happened.

        The caller must make sure that an event follows in bounded time: the changed pod, or ``Undone``. ``left`` has
        the tables as the deciding cycle left them; versions are taken over from it (``Table.adopt``).
        """
        self._take_in()
        # Not written at once: the caller still holds the snapshot of the cycle, and a write would copy memory for it.
        # At the next event or snapshot that reference is gone.
        if decisions:
            self._sent = decisions, left.nodes if left is not None else None

    def _count_as_done(self, decisions: Sequence[Bind | Evict], left: NodeTable | None) -> None:
        self._tasks.assume(decisions)
        for decision in decisions:
            if isinstance(decision, Bind) and decision.context:
                self._grants.assume(decision)
        if left is not None:
            self._tables.nodes.adopt(left)

    def remember(self, writes: Writes) -> None:
        """Keep the hypernodes that a cycle chose for jobs and sub-jobs, and its notes; one that is NaN ends."""
        for row, hypernode in writes.job_hypernodes.items():
            self._tables.jobs.write(row, hypernode=hypernode)
        for row, hypernode in writes.sub_hypernodes.items():
            self._tables.subs.write(row, hypernode=hypernode)
        if writes.notes:
            # A cycle ends a note by NaN and not by leaving it out, because actions that did not run write no notes at
            # all.
            notes = {**self._notes, **writes.notes}
            self._notes = {name: value for name, value in notes.items() if not isnan(value)}

    def keep_usage(self, windows: Sequence[UsageWindow]) -> None:
        """Keep usage over these windows from now on, and over no others."""
        if self._usage.windows != tuple(windows):
            self._take_in()
            pods = self._tables.tasks.pods
            # With the pods that exist: the ended ones among them are all that is still known of the time before.
            self._usage.keep(windows, [pods[row] for row in self._tasks.row_of.values()])

    def beside(self) -> Mapping[str, list[Object]]:
        """Return the objects that have a table by kind, by the name of the table."""
        self._take_in()
        return self._beside.objects()

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self, now: float | None = None) -> Snapshot:
        """Return the cluster as it is now. The cost follows what changed since the last snapshot.

        ``now`` (seconds since the epoch) is when pods count as ended that ended since then and do not say when.
        """
        # In the order of dependence: the axis makes new nodes and queues, nodes make a new tree, and jobs refer to
        # queues.
        self._take_in()
        if now is not None and self._usage.windows:
            self._usage.settle(now)
        tables = self._tables
        if self._beside.devices_changed:
            self._devices_changed()
        if self._stale_axis:
            self._measure()
        if self._stale_nodes:
            self._make_nodes()
        if self._stale_tree:
            self._rebuild_tree()
        if self._stale_queues:
            self._make_queues()
        self._beside.refresh(tables)
        self._jobs.refresh()
        if self._stale_priorities:
            self._jobs.refresh_priorities(self.priority_classes if self.use_priority_classes else {})
            self._stale_priorities = False
        # Counted even if nothing changed: the number names the session in conditions, and two sessions must not share a
        # name.
        self._number += 1
        return Snapshot(tables.freeze(), self._number, self.shard, self._notes, self.node_pool)

    def _offered(self, amounts: Iterable[Resource]) -> None:
        """Take in what a node has or a queue names: each resource in it needs a column."""
        self._stale_axis |= not all(map(self._tables.axis.offers, amounts))

    def _cover_pods(self, specs: Sequence[PodSpec]) -> None:
        """Make sure that every resource that pods ask for is counted, GPUs by their name."""
        is_new = GPU_RESOURCE not in self._tables.axis.column
        gpus = is_new and any(asks_for_gpus(spec.request, spec.gpu_share) for spec in specs)
        self._cover([spec.request for spec in specs], gpus=gpus)

    def _cover(self, requests: Sequence[Resource], *, gpus: bool = False) -> None:
        """Make sure that every resource of these requests is counted. ``gpus``: GPUs get a column."""
        # At once and not in ``snapshot``: the requests are about to be written as rows. And all of them together: an
        # axis for one of them alone may not cover those that were looked at before and have no rows yet.
        axis, backed = self._tables.axis, self._beside.backed
        if gpus or any(
            not axis.covers(each) or (not axis.offers(each) and asks_for_any(each, backed)) for each in requests
        ):
            self._measure(*requests, gpus=gpus)

    def _devices_changed(self) -> None:
        """Find out whether nodes offer other amounts by devices than before."""
        self._beside.devices_changed = False
        backed, asks = self._beside.backed, (*self._tables.classes.asks(), *self._tables.jobs.asks())
        column = self._tables.axis.column
        self._stale_axis |= any(asks_for_any(each, backed) for each in asks if not self._tables.axis.offers(each))
        if not self._stale_axis and any(name in column for name in backed):
            now = self._beside.by_devices(self.nodes.values(), column)
            self._stale_nodes |= now != self._by_devices

    def _measure(self, *asked: Resource, gpus: bool = False) -> None:
        """Compute the axis of resources, and change all tables to it if it is another one. ``gpus``: they are asked
        for."""
        # Resources never leave the axis: nodes that offer them come back, and each change costs new tables.
        tables, names = self._tables, set(self._tables.axis.offered)
        for node in self.nodes.values():
            names.update(node.allocatable.scalars or (), node.oversubscription.scalars or ())
        # Queues of KAI share GPUs by what is asked for, also while no node has any. Without a column of their own, a
        # cycle would depend on whether a node ever had some.
        if gpus or self._beside.offers_gpus or self._tables.classes.ask_for_gpus():
            names.add(GPU_RESOURCE)
        asks = (*asked, *tables.classes.asks(), *tables.jobs.asks())
        # Every device class backs a resource, and only those that are asked for get a column.
        backed = self._beside.backed
        names.update(name for each in asks for name in each.scalars or () if name in backed)
        for queue in self.queues.values():
            names.update(name for amount in _amounts_of(queue) for name in amount.scalars or ())
        axis = ResourceAxis(names)
        # The column ``unoffered`` only if a request needs it: most clusters do not.
        if not all(map(axis.offers, asks)):
            axis = ResourceAxis(names, unoffered=True)
        self._stale_axis = False
        if axis.names != tables.axis.names:
            tables.label_usages.measure(tables.axis, axis)
            tables.axis = axis
            tables.classes.measure(axis)
            tables.jobs.measure(axis)
            self._jobs.measure()
            self._make_queues()
            self._make_nodes()

    def _make_nodes(self) -> None:
        tables, old_names = self._tables, self._tables.nodes.facts.names
        # A new table for any change of nodes: rows are in the order of creation and name, so a node that is gone shifts
        # others. Nodes change seldom.
        nodes = list(self.nodes.values())
        self._by_devices = self._beside.by_devices(nodes, tables.axis.column)
        tables.nodes = NodeTable(self._versions, NodeFacts(self._versions, nodes, tables.axis, self._by_devices))
        self._tasks.rebook(old_names)
        self._stale_nodes = False
        self._stale_tree = True  # it names rows of nodes

    def _make_queues(self) -> None:
        tables = self._tables
        queues = tables.queues = QueueTable(self._versions, self.queues.values(), tables.axis)
        statuses = (QueueStatus.of(self.queues[name]) for name in queues.names)
        tables.queue_statuses = QueueStatusTable(self._versions, statuses, tables.axis)
        self._jobs.all_queues_stale()
        self._stale_queues = False

    def _rebuild_tree(self) -> None:
        tables = self._tables
        facts, before = tables.nodes.facts, tables.tree.names
        labels = [node.labels for node in facts.objs]
        tables.tree = build_tree(self.hypernodes.values(), facts.names, labels, self._versions.next())
        # Rows of hypernodes may have changed: find those that jobs refer to by name.
        for table, name in ((tables.jobs, "hypernode"), (tables.subs, "hypernode"), (tables.subs, "nominated")):
            held = getattr(table, name)
            rows = np.flatnonzero(held >= 0).tolist()
            for row, place in zip(rows, held[rows].tolist(), strict=True):
                table.write(row, **{name: tables.tree.row_of.get(before[place], -1)})
        self._stale_tree = False


def _amounts_of(queue: Queue) -> list[Resource]:
    amounts = (queue.capability, queue.deserved, queue.guarantee, queue.allocated)
    return [amount for amount in amounts if amount is not None]
