"""Workloads by formula: index arithmetic and no random numbers. The shapes on which other schedulers were measured, and
more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import (
    GROUP_NAME_ANNOTATION,
    TASK_SPEC_KEY,
    Affinity,
    LabelSelector,
    Pod,
    PodAffinityTerm,
    PodSpec,
    Requirement,
    TopologySpreadConstraint,
)
from pumice.model.queue import PriorityClass, Queue
from pumice.model.resources import PODS, Resource
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, PodGroupStatus

NAMESPACE = "bench"
EPOCH = 1_704_067_200.0  # 2024-01-01T00:00:00Z
DIVERSE = ("equal", "unique", "anti", "affinity", "spread", "preferred", "hopeless")
EVICTING = ("preempt", "reclaim", "gangreclaim", "starving")
SCENARIOS = ("gang", "topo", *DIVERSE, *EVICTING, "tree")
GPU = "nvidia.com/gpu"
PODS_PER_NODE = 110
OBJECTS_MAX = 10_000_000

_MI, _GI = 2**20, 2**30
_HOSTNAME = "kubernetes.io/hostname"
_ROLE = "worker"


@dataclass(slots=True)
class Workload:
    """A cluster and its waiting work."""

    nodes: list[Node] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    hypernodes: list[HyperNode] = field(default_factory=list)
    groups: list[PodGroup] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)

    def objects(self) -> Iterator[Object]:
        """Yield all objects, each after those that it refers to."""
        yield from self.nodes
        yield from self.queues
        yield from self.priority_classes
        yield from self.hypernodes
        yield from self.groups
        yield from self.pods


def build(scenario: str, nodes: int, pods: int, gang: int, queues: int = 1, tier: int = 0) -> Workload:
    """Return one of SCENARIOS. ``pods``: number of pending pods.

    Raises: ValueError for an unknown scenario, and for sizes that make no workload.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"scenario: found {scenario!r}, wanted one of {', '.join(SCENARIOS)}")
    for name, value in (("nodes", nodes), ("pods", pods), ("gang", gang), ("queues", queues)):
        if not 1 <= value <= OBJECTS_MAX:
            raise ValueError(f"{name}: found {value}, wanted 1 to {OBJECTS_MAX:,}")
    if not 0 <= tier <= 3:
        raise ValueError(f"tier: found {tier}, wanted 1 to 3, or 0 for all three in turn")
    if scenario == "gang":
        return gangs(nodes, pods, gang, queues)
    if scenario in DIVERSE:
        return diverse(scenario, nodes, pods, gang)
    if scenario == "tree":
        return tree(nodes, pods, gang, queues)
    return topo(nodes, pods, gang, tier) if scenario == "topo" else evict(scenario, nodes, pods, gang, tier)


def gangs(nodes: int = 100, pods: int = 1000, gang: int = 10, queues: int = 1) -> Workload:
    """Return gangs of equal pods in 16 shapes, on nodes of two sizes."""
    made = Workload([_node(i, 32 + 32 * (i % 2)) for i in range(nodes)], _queues(queues))
    jobs = _Jobs(made)
    for j in range(pods // gang):
        queue = "default" if queues == 1 else f"q{j % queues:02d}"
        jobs.add(f"job-{j:05d}", j, queue, gang, gang, (1 + j % 4, 2 * (1 + (j // 4) % 4), (j // 2) % 2))
    return made


def topo(nodes: int = 1000, pods: int = 4000, gang: int = 20, tier: int = 0) -> Workload:
    """Return gangs that must stay within a HyperNode of the tier; 0: tiers 1, 2 and 3 in turn."""
    made = Workload([_node(i, 64) for i in range(nodes)], _queues(1), hypernodes=list(_hypernodes(nodes)))
    jobs = _Jobs(made)
    for j in range(pods // gang):
        topology = NetworkTopology("hard", tier or 1 + j % 3)
        jobs.add(f"job-{j:05d}", j, "default", gang, gang, (4, 16, 1), topology=topology)
    return made


def evict(kind: str = "reclaim", nodes: int = 1000, pending: int = 500, gang: int = 10, tier: int = 0) -> Workload:
    """A cluster exactly full of pods of low priority, and gangs of high priority, in the same queue or in another.

    ``gangreclaim``: in another, and each gang within a HyperNode of the tier (0: tier 2). ``starving``: in the same
    queue with the priorities swapped, so that no pod can be evicted for the gangs, which are admitted.
    """
    alone, low, high = kind in ("preempt", "starving"), ("low", 10), ("high", 1000)
    mine, theirs = ("default", "default") if alone else ("qa", "qb")
    made = Workload(
        [_node(i, 64) for i in range(nodes)],
        [Queue("default")] if alone else [Queue("qa"), Queue("qb")],
        [PriorityClass("low", 10), PriorityClass("high", 1000)],
        list(_hypernodes(nodes)) if kind == "gangreclaim" else [],
    )
    jobs, running = _Jobs(made), 8 * nodes // 10
    topology = NetworkTopology("hard", tier or 2) if kind == "gangreclaim" else None
    for j in range(running):
        place = _placing(10 * j, nodes)
        jobs.add(f"run-{j:05d}", j, mine, 10, 1, (8, 32, 1), high if kind == "starving" else low, place)
    for j in range(pending // gang):
        name, asks, level = f"pend-{j:05d}", (8, 32, 1), low if kind == "starving" else high
        jobs.add(name, running + j, theirs, gang, gang, asks, level, topology=topology, admitted=kind == "starving")
    return made


def tree(nodes: int = 100, pods: int = 1000, gang: int = 10, queues: int = 1000) -> Workload:
    """Return gangs in the leaves of a tree in which each queue has four below it: 1,000 queues are 6 levels below the
    root. Each leaf deserves an equal share of the cluster, and every other queue the sum of those below it."""
    made = Workload([_node(i, 64) for i in range(nodes)])
    first_leaf = (queues + 2) // 4
    deserved = [8000 * nodes // (queues - first_leaf)] * queues  # milli-GPUs
    for i in range(queues - 1, -1, -1):
        if 4 * i + 1 < queues:
            deserved[i] = sum(deserved[4 * i + 1 : 4 * i + 5])
    for i in range(queues):
        room = Resource(8.0 * deserved[i], 32.0 * _MI * deserved[i], {GPU: float(deserved[i])})
        made.queues.append(Queue(f"q{i:04d}", parent=f"q{(i - 1) // 4:04d}" if i else "root", deserved=room))
    made.queues.append(Queue("root"))
    jobs = _Jobs(made)
    for j in range(pods // gang):
        jobs.add(f"job-{j:05d}", j, f"q{first_leaf + j % (queues - first_leaf):04d}", gang, gang, (8, 32, 1))
    return made


def diverse(kind: str = "equal", nodes: int = 1000, pods: int = 5000, gang: int = 10) -> Workload:
    """Admitted gangs that differ as ``kind`` says, on nodes in 8 zones and in racks of 20; ``equal`` ones do not.

    ``unique``: each pod has its own request. ``hopeless``: likewise, and it is more than a node has. By gang, ``anti``:
    no two on a node; ``affinity``: all in one rack; ``spread``: even over zones; ``preferred``: near pods of its app.
    """
    made = Workload([_node(i, 64, {"zone": f"z{i % 8}", "rack": f"r{i // 20}"}) for i in range(nodes)], _queues(1))
    specs: dict[PodSpec, PodSpec] = {}
    for j in range(pods // gang):
        name, creation = f"g{j:05d}", EPOCH + j
        status = PodGroupStatus("Inqueue")
        group = PodGroup(NAMESPACE, name, f"pg-{name}", "default", gang, creation=creation, status=status)
        made.groups.append(group)
        labels, terms = {"app": f"a{j % 50}", "job": f"g{j}"}, _terms(kind, j)
        annotations = {GROUP_NAME_ANNOTATION: name, TASK_SPEC_KEY: _ROLE}
        for k in range(gang):
            spec = _spec(_diverse_request(kind, j * gang + k), **terms)
            pod = f"{name}-{_ROLE}-{k}"
            spec = specs.setdefault(spec, spec)
            made.pods.append(Pod(NAMESPACE, pod, "pod-" + pod, spec, creation, labels, annotations))
    return made


def _diverse_request(kind: str, x: int) -> Resource:
    """Return the request of pod number ``x``."""
    match kind:
        case "unique":
            return Resource(100.0 + 37 * x % 2900, (100.0 + 53 * x % 3900) * _MI, None)
        case "hopeless":
            return Resource(65_000.0 + x, float(_GI), None)
    return _amounts(1, 1, 0)


def _terms(kind: str, j: int) -> dict[str, Any]:
    """Return fields of the spec that say where pods of gang ``j`` may run."""
    gang, app = _labelled("job", f"g{j}"), _labelled("app", f"a{j % 50}")
    match kind:
        case "anti":
            return {"affinity": Affinity(anti_required=(PodAffinityTerm(_HOSTNAME, gang, (NAMESPACE,)),))}
        case "affinity":
            return {"affinity": Affinity(pod_required=(PodAffinityTerm("rack", gang, (NAMESPACE,)),))}
        case "spread":
            return {"spread": (TopologySpreadConstraint(1, "zone", "DoNotSchedule", gang),)}
        case "preferred":
            return {"affinity": Affinity(pod_preferred=(PodAffinityTerm("zone", app, (NAMESPACE,), weight=50),))}
    return {}


def _labelled(key: str, value: str) -> LabelSelector:
    return LabelSelector((Requirement(key, "In", (value,)),))


def _placing(first: int, nodes: int) -> Callable[[int], str]:
    return lambda k: f"node-{(first + k) % nodes:05d}"


def _queues(count: int) -> list[Queue]:
    return [Queue("default")] if count == 1 else [Queue(f"q{i:02d}", weight=i + 1) for i in range(count)]


def _node(i: int, cpu: int, place: dict[str, str] | None = None) -> Node:
    """Return a node, labelled with its name and ``place``, or one of four zones."""
    name = f"node-{i:05d}"
    room = _room(cpu)
    labels = {_HOSTNAME: name} | (place or {"topology.kubernetes.io/zone": f"zone-{i % 4}"})
    return Node(name, room, room, uid=name, labels=labels)


def _room(cpu: int) -> Resource:
    return Resource(1000.0 * cpu, 256.0 * _GI, {GPU: 8000.0, PODS: float(PODS_PER_NODE)}, PODS_PER_NODE)


def _amounts(cpu: int, memory_gi: int, gpu: int) -> Resource:
    return Resource(1000.0 * cpu, float(memory_gi * _GI), {GPU: 1000.0 * gpu} if gpu else None)


def _spec(request: Resource, **more: Any) -> PodSpec:
    """Return a pod of one container. ``more``: fields of PodSpec."""
    return PodSpec(
        request=request.add_scalar(PODS, 1.0),
        nonzero_milli_cpu=request.milli_cpu,
        nonzero_memory=request.memory,
        images=("busybox",),
        **more,
    )


def _hypernodes(nodes: int) -> Iterator[HyperNode]:
    for tier, count, size, child, kind in (
        (1, nodes // 10, 10, "node-{:05d}", "Node"),
        (2, nodes // 100, 10, "t1-{:03d}", "HyperNode"),
        (3, nodes // 500, 5, "t2-{:02d}", "HyperNode"),
    ):
        width = {1: "03d", 2: "02d", 3: "d"}[tier]
        for i in range(count):
            members = tuple(HyperNodeMember(kind, exact=child.format(size * i + k)) for k in range(size))
            yield HyperNode(f"t{tier}-{i:{width}}", tier, members)


class _Jobs:
    """Adds PodGroups and pods to a workload. Pods of one shape share their spec."""

    def __init__(self, made: Workload) -> None:
        self._made = made
        self._specs: dict[tuple[int, int, int, str], PodSpec] = {}

    def add(
        self,
        name: str,
        j: int,
        queue: str,
        size: int,
        min_member: int,
        asks: tuple[int, int, int],  # cores, GiB, GPUs
        priority: tuple[str, int] = ("", 0),
        place: Callable[[int], str] | None = None,
        topology: NetworkTopology | None = None,
        admitted: bool = False,
    ) -> None:
        """Add a gang, running where ``place`` says, or waiting. Once ``admitted``, it asks for no minimum any more."""
        creation = EPOCH + j
        cpu, memory, gpu = asks
        waiting = PodGroupStatus("Inqueue" if admitted else "Pending")
        status = PodGroupStatus("Running", running=size) if place else waiting
        minimum = _amounts(cpu * min_member, memory * min_member, gpu * min_member)
        self._made.groups.append(
            PodGroup(
                NAMESPACE,
                name,
                f"pg-{name}",
                queue,
                min_member,
                priority_class_name=priority[0],
                topology=topology,
                min_resources=None if admitted else minimum,
                creation=creation,
                status=status,
            )
        )
        labels = {"volcano.sh/job-name": name, TASK_SPEC_KEY: _ROLE}
        annotations = {GROUP_NAME_ANNOTATION: name, TASK_SPEC_KEY: _ROLE}
        spec, pods = self._spec(asks, priority), self._made.pods
        stem = f"{name}-{_ROLE}-"
        for k in range(size):
            pod = stem + str(k)
            if place is None:
                pods.append(Pod(NAMESPACE, pod, "pod-" + pod, spec, creation, labels, annotations))
            else:
                pods.append(
                    Pod(
                        NAMESPACE,
                        pod,
                        "pod-" + pod,
                        spec,
                        creation,
                        labels,
                        annotations,
                        node_name=place(k),
                        phase="Running",
                    )
                )

    def _spec(self, asks: tuple[int, int, int], priority: tuple[str, int]) -> PodSpec:
        key = (*asks, priority[0])
        spec = self._specs.get(key)
        if spec is None:
            value = priority[1] if priority[0] else None
            spec = self._specs[key] = _spec(_amounts(*asks), priority=value, priority_class_name=priority[0])
        return spec
