"""A simulated cluster behind the ``Cluster`` port: the state of an API server, and kubelets.

Pods go from Pending to bound, to Running (after ``start_latency_s``), to Succeeded (after their
``pumice.dev/duration``, or when the controller of their job says so). Every operation costs only as much as what it
touches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, get_args

from msgspec.structs import replace

from pumice.columns.objects.device_amounts import amounts_by_devices
from pumice.model.decisions import Bind, Decision, Evict, GateRemoval, PodGroupUpdate, PodNotice, Refusal
from pumice.model.devices.claims import DeviceClass, ResourceSlice
from pumice.model.events import Event, Gone, News, Object, Seen, key_of
from pumice.model.node import Node
from pumice.model.pod import ENDED, QUEUE_GATE, Pod, PodCondition, without_queue_gate
from pumice.model.queue import PriorityClass, Queue, QueueUsage
from pumice.model.resources import Resource
from pumice.model.topology import HyperNode
from pumice.model.workloads.gang import gang_at
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.bind_checks import refusal_of_state
from pumice.sim.engine import Engine, Priority
from pumice.sim.equal_pods import EqualPods, in_parts, one_by_one, one_of
from pumice.sim.hooks import Hooks, Objection
from pumice.sim.pod_states import refusal_of_bind, says_the_same, with_grant
from pumice.sim.queued_binds import QueuedBinds
from pumice.sim.undelivered_events import UndeliveredEvents
from pumice.sim.workloads.spans import DURATION_ANNOTATION, seconds_of

_SCHEDULED = (PodCondition("PodScheduled", "True"),)


class SimCluster:
    """API objects by key. Everything else that follows the cluster (usage, history, laws, controller) uses the hooks.

    ``start_latency_s``: from bound to Running. ``grace_s``: from eviction to removal, while the pod keeps its
    resources. ``objection``: a fault's reason to refuse a decision. ``start_together``: how many of the pods that are
    about to start do so before anything else may happen. ``queued``: binds that wait to be sent, None: none does.
    """

    def __init__(self, engine: Engine, *, start_latency_s: float = 0.0, grace_s: float = 0.0) -> None:
        self.engine = engine
        self.start_latency_s = start_latency_s
        self.grace_s = grace_s
        self.hooks = Hooks()
        self.undelivered = UndeliveredEvents(engine)
        self.objection: Objection | None = None
        self.queued: QueuedBinds | None = None
        self.start_together: Callable[[EqualPods], int] = len
        self.pods: dict[str, Pod] = {}
        self.groups: dict[str, PodGroup] = {}
        self.nodes: dict[str, Node] = {}
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, PriorityClass] = {}
        self.hypernodes: dict[str, HyperNode] = {}
        self.pods_on: dict[str, dict[str, None]] = defaultdict(dict)  # node -> keys of pods that hold room on it
        self.binds_done = 0
        self.evictions_done = 0
        self.refusals = 0
        self.phases_written = 0  # PodGroups that were given another phase
        self._tables: dict[type[Object], dict[str, Any]] = {
            Pod: self.pods,
            PodGroup: self.groups,
            Node: self.nodes,
            Queue: self.queues,
            PriorityClass: self.priority_classes,
            HyperNode: self.hypernodes,
        }
        # Other kinds stay as they were written, because no controller updates their status here.
        for kind in get_args(Object):
            self._tables.setdefault(kind, {})

    # -- the port ------------------------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """True if an event that may change a decision is waiting to be drained."""
        return self.undelivered.has_news

    def drain(self) -> list[News]:
        """Return the events since the last call, oldest first."""
        if self.queued is not None:
            self.queued.begin()
        return self.undelivered.drain()

    def objects(self, kind: type[Any]) -> list[Any]:
        """Return all objects of a kind."""
        return list(self._tables[kind].values())

    def room_on(self, node: Node, resource: str) -> float:
        """Return how much of a resource a node has, by itself or by devices."""
        own = node.allocatable.get(resource) + node.oversubscription.get(resource)
        classes = self._tables[DeviceClass]
        if own or not classes:
            return own
        offered = amounts_by_devices([node], self.objects(ResourceSlice), classes.values(), (resource,))
        return offered.get(node.name, {}).get(resource, 0.0)

    def relist(self) -> None:
        """Send all objects, as to a scheduler that has just started."""
        if self.queued is not None:
            self.queued.forget()
        self.undelivered.begin_anew(obj for table in self._tables.values() for obj in table.values())

    def queue_binds(self, delay: Callable[[], float]) -> None:
        """Let binds wait before they are sent, each for ``delay()`` seconds."""

        def send(bind: Bind) -> Refusal | None:
            (refusal,) = self._send([bind])
            for hook in self.hooks.send_refused if refusal is not None else ():
                hook(bind)
            return refusal

        def give_back(bind: Bind) -> None:
            self.refusals += 1
            self.undelivered.add_undone(bind)

        tables = self.pods, self.groups, self.nodes
        self.queued = QueuedBinds(self.engine, *tables, delay=delay, send=send, give_back=give_back)

    def decided_pods(self) -> dict[str, Pod]:
        """Return all pods by key. Those whose binds wait are on their nodes."""
        return self.pods if self.queued is None else self.pods | self.queued.bound()

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        """Bind waiting pods to nodes that exist, and delete pods, at once or after the grace period. A job's controller
        may create others. Return refusals by index in ``decisions``."""
        answers: list[Refusal | None] = []
        for part in self._parts(decisions):
            answer = self._bind(part) if isinstance(part[0], Bind) else [self._evict(part[0])]
            self.refusals += len(answer) - answer.count(None)
            for hook in self.hooks.answered:
                hook(part, answer)
            answers += answer
        return {place: refusal for place, refusal in enumerate(answers) if refusal is not None}

    def _parts(self, decisions: Sequence[Decision]) -> Iterator[Sequence[Any]]:
        """Yield runs of binds that can be carried out together, because no fault may strike between them."""
        binds: list[Bind] = []
        for decision in decisions:
            if isinstance(decision, Bind) and self.objection is None and self.queued is None:
                binds.append(decision)
                continue
            if binds:
                yield binds
                binds = []
            yield (decision,)
        if binds:
            yield binds

    def _bind(self, decisions: Sequence[Bind]) -> list[Refusal | None]:
        """Bind pods, or take their binds in to be sent later. Return a refusal or None for each."""
        if self.queued is None:
            return self._send(decisions)
        answers = [self._queue(decision, self.queued) for decision in decisions]
        return [None if why is None else Refusal(why) for why in answers]

    def _queue(self, bind: Bind, queued: QueuedBinds) -> str | None:
        why = refusal_of_bind(self.pods.get(bind.pod), bind)
        if why is None and bind.node not in self.nodes:
            why = f"node {bind.node} does not exist"
        if why is None and (before := queued.of(bind.pod)) is not None:
            why = f"pod {bind.pod} is on its way to {before.node}"
        if why is None:
            queued.accept(bind)
        return why

    def _send(self, decisions: Sequence[Bind]) -> list[Refusal | None]:
        answers: list[Refusal | None] = []
        bound: dict[str, Pod] = {}
        for decision in decisions:
            key, _, node, _, context = decision
            pod = self.pods.get(key)
            why = self._no_bind(pod, decision)
            if pod is None or why is not None:
                answers.append(Refusal(why or ""))
                continue
            answers.append(None)
            pod = replace(pod, node_name=node, nominated_node="", conditions=_SCHEDULED)
            self.pods[key] = bound[key] = with_grant(pod, decision) if context else pod
        self.binds_done += len(bound)
        for pods in in_parts(bound):
            self._pods_changed(pods, news=False)  # the planner learns it from the answer
            self._take_room(pods)
        return answers

    def _no_bind(self, pod: Pod | None, decision: Bind) -> str | None:
        why = refusal_of_bind(pod, decision)
        # As in Kubernetes, whose binding does not ask for the node. Binds that do not wait are never too late for that.
        if why is None and decision.node not in self.nodes and self.queued is None:
            return f"node {decision.node} does not exist"
        return why if why is not None or self.objection is None else self.objection(decision)

    def _evict(self, decision: Evict) -> Refusal | None:
        pod = self.pods.get(decision.pod)
        why = refusal_of_state(pod, decision)
        if why is None and self.objection is not None:
            why = self.objection(decision)
        if pod is None or why is not None:
            return Refusal(why or "")
        self.evictions_done += 1
        self.delete_pod(decision.pod)
        return None

    def write_group(self, update: PodGroupUpdate) -> None:
        """Store a PodGroup's status. It is ignored if the group no longer exists."""
        group = self.groups.get(update.job)
        if group is None or (group.status == update.status and update.times is None):
            return
        self.phases_written += group.status.phase != update.status.phase
        gang = gang_at(group.gang, update.times)
        group = self.groups[update.job] = replace(group, status=update.status, gang=gang)
        self.undelivered.add(group, update.job, news=False)
        for hook in self.hooks.group_written:
            hook(group)

    def write_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> None:
        """Store a queue's status."""
        queue = self.queues.get(name)
        if queue is None or (queue.allocated, queue.usage) == (allocated, usage):
            return
        queue = self.queues[name] = replace(queue, allocated=allocated, usage=usage)
        self.undelivered.add(queue, name, news=False)

    def remove_gate(self, removal: GateRemoval) -> None:
        """Remove the queue's gate, and no other, from a pod that still exists."""
        pod = self.pods.get(removal.pod)
        if pod is None or pod.uid != removal.uid or QUEUE_GATE not in pod.gates:
            return
        pod = self.pods[removal.pod] = replace(pod, gates=without_queue_gate(pod.gates))
        self._pods_changed({removal.pod: pod})

    def notice(self, notice: PodNotice) -> None:
        """Store why a pod waits, and the node that it is nominated to. A nomination is never removed: it ends when the
        pod is bound."""
        pod = self.pods.get(notice.pod)
        if pod is None or pod.uid != notice.uid or pod.node_name:
            return
        said = PodCondition("PodScheduled", "False", notice.reason, notice.message, self.engine.now)
        nominated = notice.nominated_node or pod.nominated_node
        if pod.nominated_node == nominated and says_the_same(pod.conditions, said):
            return
        pod = self.pods[notice.pod] = replace(pod, conditions=(said,), nominated_node=nominated)
        self._pods_changed({notice.pod: pod}, news=False)

    # -- objects come and go -------------------------------------------------------------------------------------------

    def put(self, obj: Object) -> None:
        """Add an object, or replace the one with its name. A pod that has a node keeps it."""
        key = key_of(obj)
        if isinstance(obj, Pod):
            self._put_pod(obj, key)
            return
        before = self._tables[type(obj)].get(key)
        self._tables[type(obj)][key] = obj
        self.undelivered.add(obj, key)
        if isinstance(obj, Node):
            self._observe(Seen(obj))
            for hook in self.hooks.node_changed:
                hook(before, obj)

    def _observe(self, event: Event) -> None:
        if self.queued is not None:
            self.queued.observe(event)

    def add_pods(self, pods: Mapping[str, Pod]) -> None:
        """Add new pods. Those that are already on nodes are added one by one."""
        for part in in_parts(pods):
            for equal in one_by_one(part) if one_of(part).node_name else (part,):
                self._add_pods(equal)

    def _add_pods(self, pods: EqualPods) -> None:
        self.pods.update(pods)
        self._pods_changed(pods)
        for hook in self.hooks.created:
            hook(pods)
        first = one_of(pods)
        if first.node_name and first.phase not in ENDED:
            self._take_room(pods)
            if first.phase == "Running":
                self._runs(pods)

    def delete(self, kind: type[Object], key: str) -> bool:
        """Remove an object at once. With a node, the pods on it are removed. Return False if there is none."""
        if kind is Pod:
            return self.remove_pod(key)
        before = self._tables[kind].pop(key, None)
        if before is None:
            return False
        self.undelivered.add_gone(kind, (key,))
        if kind is Node:
            self._observe(Gone(Node, key))
            for hook in self.hooks.node_changed:
                hook(before, None)
            for pod in list(self.pods_on.get(key, ())):
                self.remove_pod(pod)
        return True

    def delete_pod(self, key: str) -> bool:
        """Delete a pod, which keeps its resources for the grace period. Return False if there is none."""
        pod = self.pods.get(key)
        if pod is None:
            return False
        if self.grace_s <= 0 or not pod.node_name or pod.phase in ENDED:
            return self.remove_pod(key)
        if pod.deletion is None:
            leaving = self.pods[key] = replace(pod, deletion=self.engine.now + self.grace_s)
            self._pods_changed({key: leaving})
            self._observe(Seen(leaving))
            self.engine.after(self.grace_s, self._remove_this, key, pod.uid)
        return True

    def remove_pod(self, key: str) -> bool:
        """Remove a pod at once. Return False if there is none."""
        there = key in self.pods
        self.remove_pods((key,))
        return there

    def remove_pods(self, keys: Iterable[str]) -> None:
        """Remove pods at once, if they exist. Hooks are called when all are gone."""
        pods = self.pods
        gone = {key: pod for key in keys if (pod := pods.pop(key, None)) is not None}
        if self.queued is not None:
            for key, pod in gone.items():
                self.queued.observe(Gone(Pod, key))
                self.queued.pod_gone(pod)
        for part in in_parts(gone):
            self.undelivered.add_gone(Pod, part)
            self._give_room_back(part)
            for hook in self.hooks.removed:
                hook(part)

    def finish(self, were: Mapping[str, Pod]) -> None:
        """Complete pods that still run and have not been replaced."""
        pods, now = self._still(were, "Running"), self.engine.now
        for part in in_parts({key: replace(pod, phase="Succeeded", finish_time=now) for key, pod in pods.items()}):
            self.pods.update(part)
            self._pods_changed(part)
            self._give_room_back(part)
            for hook in self.hooks.finished:
                hook(part)

    # -- kubelets ------------------------------------------------------------------------------------------------------

    def _start(self, bound: EqualPods) -> None:
        """Start pods that still exist: all at once, unless something may happen in between."""
        waiting = {key: pod for key, pod in self._still(bound, "Pending").items() if pod.deletion is None}
        if not waiting:
            return
        count = self.start_together(waiting)
        if count < len(waiting):
            self.engine.go_on(self._start, dict(islice(waiting.items(), count, None)))
        now = self.engine.now
        pods = {key: replace(pod, phase="Running", start_time=now) for key, pod in islice(waiting.items(), count)}
        self.pods.update(pods)
        self._pods_changed(pods)
        self._runs(pods)

    def _runs(self, pods: EqualPods) -> None:
        seconds = seconds_of(one_of(pods).annotations, DURATION_ANNOTATION)
        if seconds is not None:
            self.engine.after(seconds, self.finish, pods)
        for hook in self.hooks.started:
            hook(pods)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _put_pod(self, pod: Pod, key: str) -> None:
        before = self.pods.get(key)
        if before is not None and before.uid != pod.uid:
            self.remove_pod(key)
            before = None
        if before is not None and before.node_name != pod.node_name:
            raise ValueError(f"pod {key} is on node {before.node_name or '(none)'}; only bind moves a pod")
        if before is None:
            self.add_pods({key: pod})
            return
        self.pods[key] = pod
        self._pods_changed({key: pod})

    def _take_room(self, pods: EqualPods) -> None:
        pods_on = self.pods_on
        for key, pod in pods.items():
            pods_on[pod.node_name][key] = None
        if one_of(pods).phase == "Pending":
            self.engine.after(self.start_latency_s, self._start, pods, priority=Priority.START)
        for hook in self.hooks.bound:
            hook(pods)

    def _give_room_back(self, pods: EqualPods) -> None:
        pods_on, left = self.pods_on, dict[str, Pod]()
        for key, pod in pods.items() if one_of(pods).node_name else ():
            there = pods_on[pod.node_name]
            if key in there:
                del there[key]
                left[key] = pod
        for hook in self.hooks.left if left else ():
            hook(left)

    def _still(self, were: Mapping[str, Pod], phase: str) -> dict[str, Pod]:
        """Return the present state of those of these pods that still exist and are in this phase."""
        pods = self.pods
        return {
            key: pod
            for key, was in were.items()
            if (pod := pods.get(key)) is not None and pod.uid == was.uid and pod.phase == phase
        }

    def _remove_this(self, key: str, uid: str) -> None:
        pod = self.pods.get(key)
        if pod is not None and pod.uid == uid:
            self.remove_pod(key)

    def _pods_changed(self, pods: EqualPods, news: bool = True) -> None:
        self.undelivered.add_all(Pod, pods, news)
