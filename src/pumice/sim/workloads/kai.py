"""Workloads by formula for KAI's language: index arithmetic and no random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from pumice.model.devices.claims import (
    Device,
    DeviceClass,
    DeviceOption,
    DeviceRequest,
    ResourceClaimTemplate,
    ResourceSlice,
)
from pumice.model.devices.numa import SINGLE, NodeResourceTopology, NumaZone
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod, PodSpec
from pumice.model.queue import PriorityClass, Queue, QueueSharing, Quota
from pumice.model.resources import PODS, Resource
from pumice.model.topology import Topology
from pumice.model.workloads.gang import Gang, TopologyConstraint
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.placing.claims.resolve import TEMPLATE
from pumice.sim.workloads.volcano import EPOCH, GPU, NAMESPACE, OBJECTS_MAX, PODS_PER_NODE

SCHEDULER = "kai-scheduler"
TRAIN, BUILD = "train", "build"

_ROOT = "root"
_GPUS = 8
_UNLIMITED = Quota(None, None, 1.0)
_PRIORITIES = {TRAIN: 50, BUILD: 100}
_NODE = Resource(128_000.0, 1e12, {GPU: 1000.0 * _GPUS, PODS: float(PODS_PER_NODE)}, PODS_PER_NODE)
_WITHOUT_GPUS = Resource(128_000.0, 1e12, {PODS: float(PODS_PER_NODE)}, PODS_PER_NODE)
_DRIVER = "gpu.example.com"
_NATIVE = "scheduling.k8s.io/v1beta1"


@dataclass(slots=True)
class KaiWorkload:
    """A cluster and its waiting work."""

    nodes: list[Node]
    queues: list[Queue]
    topologies: list[Topology] = field(default_factory=list)
    groups: list[PodGroup] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    others: list[Object] = field(default_factory=list)
    _specs: dict[float, PodSpec] = field(default_factory=dict)

    def objects(self) -> Iterator[Object]:
        """Yield all objects, each after those that it refers to."""
        yield from self.nodes
        yield Queue(_ROOT, priority=100, sharing=QueueSharing(_UNLIMITED, _UNLIMITED, _UNLIMITED))
        yield from self.queues
        yield from (PriorityClass(name, value) for name, value in _PRIORITIES.items())
        yield from self.topologies
        yield from self.others
        yield from self.groups
        yield from self.pods

    def job(
        self,
        name: str,
        queue: str,
        gpus: int,
        age: int,
        *places: str,
        priority: str = TRAIN,
        topology: TopologyConstraint | None = None,
    ) -> None:
        """Add a gang with a pod for each place, "" for a waiting pod. ``age``: minutes."""
        creation = EPOCH - 60.0 * age
        self.groups.append(
            PodGroup(
                NAMESPACE,
                name,
                name,
                queue,
                min_member=len(places),
                priority_class_name=priority,
                creation=creation,
                gang=Gang(topology=topology),
            )
        )
        asked = {GPU: 1000.0 * gpus, PODS: 1.0}
        spec = self._specs.setdefault(gpus, PodSpec(Resource(1000.0, 1e9, asked)))
        annotations = {GROUP_NAME_ANNOTATION: name}
        for k, node in enumerate(places):
            pod = f"{name}-{k}"
            phase = "Running" if node else "Pending"
            self.pods.append(
                Pod(
                    NAMESPACE,
                    pod,
                    pod,
                    spec,
                    creation,
                    annotations=annotations,
                    scheduler_name=SCHEDULER,
                    node_name=node,
                    phase=phase,
                )
            )


def build_kai(scenario: str, nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return one of KAI_SCENARIOS. ``pods``: number of pending pods.

    Raises: ValueError for an unknown scenario, and for sizes that make no workload.
    """
    if scenario not in _FORMULAS:
        raise ValueError(f"scenario: found {scenario!r}, wanted one of {', '.join(_FORMULAS)}")
    for name, value in (("nodes", nodes), ("pods", pods), ("gang", gang)):
        if not 1 <= value <= OBJECTS_MAX:
            raise ValueError(f"{name}: found {value}, wanted 1 to {OBJECTS_MAX:,}")
    return _FORMULAS[scenario](nodes, pods, gang)


def _alloc(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return gangs on an empty cluster, from four queues in turn, each with a quarter of it as quota."""
    made = _cluster(nodes, *(_queue(f"queue-{k}", _GPUS * nodes / 4) for k in range(4)))
    jobs = pods // gang
    for i in range(jobs):
        made.job(f"job-{i:05d}", f"queue-{i % 4}", 1, jobs - i, *_waiting(gang))
    return made


def _reclaim(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return two queues, each with half of the cluster as quota: one holds all of it, and gangs of the other wait."""
    total, jobs = _GPUS * nodes, pods // gang
    made = _cluster(nodes, _queue("queue-a", total / 2), _queue("queue-b", total / 2))
    for j in range(total):
        made.job(f"a-{j:05d}", "queue-a", 1, total - j + jobs, _name(j // _GPUS))
    for i in range(jobs):
        made.job(f"b-{i:05d}", "queue-b", 1, jobs - i, *_waiting(gang))
    return made


def _reclaim_big(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return a queue without quota that holds the cluster, and one with all of it as quota whose gang wants whole
    nodes."""
    if pods != gang:
        raise ValueError(f"gang: found {gang}, wanted {pods}: it is one gang")
    total = _GPUS * nodes
    made = _cluster(nodes, _queue("queue-0", 0, 0.0), _queue("queue-1", total, 0.0))
    for i in range(total):
        made.job(f"running-job-{i:05d}", "queue-0", 1, total + 1 - i, _name(i % nodes))
    made.job("very-large-job", "queue-1", _GPUS, 1, *_waiting(gang))
    return made


def _consolidate(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return jobs of one GPU that use half of each node, and waiting jobs that request a whole node."""
    running = 4 * nodes
    made = _cluster(nodes, _queue("queue-0", _GPUS * nodes))
    for j in range(running):
        made.job(f"run-{j:05d}", "queue-0", 1, running - j + pods // gang, _name(j % nodes))
    for i in range(pods // gang):
        made.job(f"want-{i:05d}", "queue-0", _GPUS, pods // gang - i, *_waiting(gang))
    return made


def _preempt(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return a cluster that is full of jobs which waiting jobs of the same queue may preempt."""
    total, jobs = _GPUS * nodes, pods // gang
    made = _cluster(nodes, _queue("queue-0", total))
    for j in range(total):
        made.job(f"train-{j:05d}", "queue-0", 1, total - j + jobs, _name(j // _GPUS))
    for i in range(jobs):
        made.job(f"build-{i:05d}", "queue-0", 1, jobs - i, *_waiting(gang), priority=BUILD)
    return made


def _topology(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return gangs of whole nodes, each within a rack of 8 nodes, or within a block of 8 racks if it is larger."""
    made = _cluster(nodes, _queue("queue-0", _GPUS * nodes))
    made.topologies = [Topology("topo", ("block", "rack", "host"))]
    made.nodes = [_node(i, {"block": f"b{i // 64}", "rack": f"r{i // 8}", "host": _name(i)}) for i in range(nodes)]
    topology, jobs = TopologyConstraint("topo", "rack" if gang <= 8 else "block"), pods // gang
    for i in range(jobs):
        made.job(f"job-{i:05d}", "queue-0", _GPUS, jobs - i, *_waiting(gang), topology=topology)
    return made


def _unschedulable(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return a cluster that is full of jobs that cannot be evicted, and jobs that wait in queues without quota."""
    jobs = pods // gang
    made = _cluster(nodes, _queue("queue-hold", _GPUS * nodes), *(_queue(f"queue-{k}", 0) for k in range(4)))
    for j in range(nodes):
        made.job(f"hold-{j:05d}", "queue-hold", _GPUS, nodes - j + jobs, _name(j), priority=BUILD)
    for i in range(jobs):
        made.job(f"want-{i:05d}", f"queue-{i % 4}", 1, jobs - i, *_waiting(gang))
    return made


def _full(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return two queues that hold what they deserve, which is the whole cluster, and want more: no job can be
    evicted."""
    total, jobs = _GPUS * nodes, pods // gang
    made = _cluster(nodes, _queue("queue-0", total // 2), _queue("queue-1", total // 2))
    for j in range(total):
        made.job(f"run-{j:05d}", f"queue-{j % 2}", 1, total - j + jobs, _name(j // _GPUS))
    for i in range(jobs):
        made.job(f"want-{i:05d}", f"queue-{i % 2}", 1, jobs - i, *_waiting(gang))
    return made


def _claims(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return ``kai-alloc`` with a claim of one device for each pod, in place of a GPU."""
    made = _alloc(nodes, pods, gang)
    made.nodes = [replace(node, allocatable=_WITHOUT_GPUS, capacity=_WITHOUT_GPUS) for node in made.nodes]
    asked = (DeviceRequest("gpu", (DeviceOption(_DRIVER),)),)
    made.others = [DeviceClass(_DRIVER), ResourceClaimTemplate(NAMESPACE, "one", asked)]
    devices = tuple(Device(f"gpu-{k}") for k in range(_GPUS))
    made.others += [ResourceSlice(node.name, _DRIVER, node.name, node.name, (), devices) for node in made.nodes]
    spec = PodSpec(Resource(1000.0, 1e9, {PODS: 1.0}), resource_claims=(f"{TEMPLATE}one",))
    made.pods = [replace(pod, spec=spec) for pod in made.pods]
    return made


def _numa(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return ``kai-alloc`` with pods whose whole cores and GPU must be in one of the two NUMA zones of a node."""
    made = _alloc(nodes, pods, gang)
    half = Resource(64_000.0, 5e11, {GPU: 500.0 * _GPUS})
    zones = tuple(NumaZone(f"node-{k}", half, half) for k in range(2))
    made.others = [NodeResourceTopology(node.name, SINGLE, by_pod=True, zones=zones) for node in made.nodes]
    made.pods = [replace(pod, spec=replace(pod.spec, qos="Guaranteed")) for pod in made.pods]
    return made


def _native(nodes: int, pods: int, gang: int) -> KaiWorkload:
    """Return ``kai-alloc`` with PodGroups of Kubernetes in place of KAI's."""
    made = _alloc(nodes, pods, gang)
    made.groups = [replace(group, native=NativeGroup(_NATIVE)) for group in made.groups]
    return made


_FORMULAS: dict[str, Callable[[int, int, int], KaiWorkload]] = {
    "kai-alloc": _alloc,
    "kai-reclaim": _reclaim,
    "kai-reclaimbig": _reclaim_big,
    "kai-consolidate": _consolidate,
    "kai-unschedulable": _unschedulable,
    "kai-preempt": _preempt,
    "kai-topology": _topology,
    "kai-full": _full,
    "kai-claims": _claims,
    "kai-numa": _numa,
    "kai-native": _native,
}
KAI_SCENARIOS = tuple(_FORMULAS)


def _cluster(nodes: int, *queues: Queue) -> KaiWorkload:
    return KaiWorkload([_node(i) for i in range(nodes)], list(queues))


def _queue(name: str, gpus: float, weight: float = 1.0) -> Queue:
    """Return a queue with a quota of GPUs only, and no limit."""
    sharing = QueueSharing(_UNLIMITED, _UNLIMITED, Quota(1000.0 * gpus, None, weight))
    return Queue(name, parent=_ROOT, priority=100, sharing=sharing)


def _name(i: int) -> str:
    return f"node-{i:05d}"


def _node(i: int, labels: dict[str, str] | None = None) -> Node:
    return Node(_name(i), _NODE, _NODE, uid=_name(i), labels=labels or {})


def _waiting(count: int) -> list[str]:
    return [""] * count
