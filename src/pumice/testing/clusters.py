"""Generate small clusters from a seed: small enough to read, mixed enough to find unexpected cases.

Equal gangs come in twos and threes, nodes are few and of different sizes, some pods run already, some are leaving, some
request more than exists. Some clusters have hypernodes, some have pods with terms about each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.devices.numa import (
    BEST_EFFORT,
    RESTRICTED,
    SINGLE,
    Cpu,
    NodeResourceTopology,
    NumaAsk,
    Numatopology,
    NumaZone,
)
from pumice.model.events import Object
from pumice.model.node import Node, NodeImage, Taint
from pumice.model.pod import (
    QUEUE_GATE,
    Affinity,
    HostPort,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PreferredNodeTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)
from pumice.model.queue import GroupLimits, NodeGroupAffinity, PriorityClass, Queue, ResourceQuota
from pumice.model.resources import Resource
from pumice.model.usage import NodeUsage
from pumice.model.workloads.podgroup import SLA_ANNOTATIONS, PodGroup, SubGroupPolicy
from pumice.testing.build import GPU, NAMESPACE, hypernode, interned, node, pod, podgroup, queue, quota, resource
from pumice.volcano.plugins.nodegroup import GROUP_LABEL
from pumice.volcano.queues.share_tree import PATH, WEIGHTS
from pumice.volcano.topology.task_groups import AFFINITY_ANNOTATION, ANTI_AFFINITY_ANNOTATION, ORDER_ANNOTATION

#: Changes an object as it is generated, so that a cluster has what a plugin reads.
Alter = Callable[[Any, Random], Object]

ZONE, RACK, HOST, DISK = "zone", "rack", "kubernetes.io/hostname", "disk"
DEDICATED = "dedicated"
IMAGES = (NodeImage(("registry.example/large",), 900 << 20), NodeImage(("registry.example/small",), 60 << 20))
CLASSES = {"low": 1, "high": 1000}
GATES = (*((),) * 10, (QUEUE_GATE,), ("example.com/wait",))
_APP = LabelSelector((Requirement("app", "In", ("a",)),))


class Size(Struct, frozen=True):
    """The largest numbers in a cluster."""

    nodes: int = 5
    queues: int = 3
    jobs: int = 5
    pods: int = 4  # per job


class Ask(NamedTuple):
    """The request of a pod: cores, GiB, devices. A pod without requests is placed by backfill."""

    cpu: float
    memory: int
    gpu: int = 0


ASKS = (Ask(1, 1), Ask(1, 1), Ask(2, 1), Ask(2, 2), Ask(1, 2, 1), Ask(0.5, 4), Ask(0, 0))
HOPELESS = Ask(64, 1)
SMALL = Size()


@dataclass(slots=True)
class _Kind:
    """What equal gangs have in common: (request, role, terms) of each pod, and fields of the group."""

    pods: list[tuple[Ask, str, dict[str, Any]]]
    group: dict[str, Any]


def small_cluster(dice: Random, size: Size = SMALL, alter: Alter | None = None) -> list[Object]:
    """Return nodes, queues, priority classes, gangs with their pods, and some hypernodes."""
    machines = [_node(dice, i) for i in range(dice.randint(min(2, size.nodes), size.nodes))]
    shares = [_queue(dice, i) for i in range(dice.randint(1, size.queues))]
    topology, mindful = dice.random() < 0.4, dice.random() < 0.4
    found: list[Object] = [*machines, *shares, *(PriorityClass(name, value) for name, value in CLASSES.items())]
    rooms = [_Room(machine) for machine in machines]
    kinds: list[_Kind] = []
    for i in range(dice.randint(1, size.jobs)):
        if not kinds or dice.random() < 0.5:
            kinds.append(_kind(dice, size.pods, topology=topology, mindful=mindful))
        found += _gang(dice, f"g{i}", dice.choice(kinds), [share.name for share in shares], rooms)
    if dice.random() < 0.5:
        found += _others(dice, rooms)
    if topology:
        found += _hypernodes([machine.name for machine in machines])
    found = _with_more(apart(dice), found, machines)
    return found if alter is None else [alter(obj, dice) for obj in found]


def _node(dice: Random, i: int) -> Node:
    return node(
        f"n{i}",
        dice.choice((1, 4, 8, 8)),
        f"{dice.choice((4, 16, 32))}Gi",
        dice.choice((0, 2, 4)),
        dice.choice((2, *(110,) * 5)),
        creation=float(dice.randint(0, 1)),
        labels={ZONE: f"z{i % 2}", RACK: f"r{i // 2}", DISK: dice.choice(("ssd", "hdd"))},
        taints=[Taint(DEDICATED, "x", dice.choice(("NoSchedule", "PreferNoSchedule")))] if dice.random() < 0.2 else (),
        unschedulable=dice.random() < 0.05,
        images=tuple(image for image in IMAGES if dice.random() < 0.3),
    )


def _queue(dice: Random, i: int) -> Queue:
    path = dice.choice((f"root/q{i}", f"root/dev/q{i}"))
    return queue(
        f"q{i}",
        dice.randint(1, 4),
        priority=dice.choice((0, 0, 1)),
        capability=dice.choice((None, None, resource(4, "8Gi"), resource(6, "16Gi", 2))),
        guarantee=dice.choice((None, None, resource(1, "1Gi"))),
        state="Closed" if dice.random() < 0.05 else "Open",
        creation=float(dice.randint(0, 1)),
        annotations={PATH: path, WEIGHTS: "/".join(str(dice.randint(1, 3)) for _ in path.split("/"))},
    )


def apart(dice: Random) -> Random:
    """Return separate dice, which leave the others unchanged, so that what is added with them changes nothing else."""
    found = copy(dice)
    found.seed(found.getrandbits(64))
    return found


def _with_more(dice: Random, found: list[Object], machines: Sequence[Node]) -> list[Object]:
    """Add groups of nodes, a quota, measured load, and NUMA topologies, from time to time."""
    if dice.random() < 0.3:
        found = [_in_groups(dice, obj) for obj in found]
    if dice.random() < 0.3:
        hard = resource(dice.randint(1, 8), f"{dice.randint(1, 8)}Gi")
        found.append(quota("team", hard, resource(dice.randint(0, 4))))
    if dice.random() < 0.3:
        found += [_usage(dice, machine.name) for machine in machines]
    if dice.random() < 0.3:
        found = [_with_cpus_of_its_own(dice, obj) for obj in found]
        found += [_numa(dice, machine.name) for machine in machines if dice.random() < 0.8]
        found += [_zones(dice, machine) for machine in machines if dice.random() < 0.8]
    return found


def _in_groups(dice: Random, obj: Object) -> Object:
    """Return a node in a group, or a queue with rules about groups."""
    if isinstance(obj, Node):
        group = dice.choice(("a", "a", "b", ""))
        return replace(obj, labels={**obj.labels, GROUP_LABEL: group}) if group else obj
    if isinstance(obj, Queue):
        rules = (None, NodeGroupAffinity(("a", "b")), NodeGroupAffinity((), ("b", "a")), NodeGroupAffinity(("a",)))
        limits: GroupLimits = (("a", (("cpu", 3000.0),)),) if dice.random() < 0.5 else ()
        return replace(obj, affinity=dice.choice(rules), group_limits=limits)
    return obj


def _with_cpus_of_its_own(dice: Random, obj: Object) -> Object:
    """Return a pod that requests whole CPUs, with QoS class Guaranteed."""
    if not isinstance(obj, Pod) or obj.spec.request.milli_cpu % 1000 or not obj.spec.request.milli_cpu:
        return obj
    ask = NumaAsk(dice.choice(("", SINGLE)), (("main", obj.spec.request.milli_cpu),))
    return replace(obj, spec=interned(replace(obj.spec, qos="Guaranteed", numa=ask)))


def _numa(dice: Random, node_name: str) -> Numatopology:
    """Return a machine with two sockets."""
    cpus = tuple(Cpu(i, i // 2, i // 2, i) for i in range(4))
    free = dice.choice(((), (0, 1, 2, 3), (1, 2, 3), (1, 3)))
    return Numatopology(node_name, dice.choice(("static", "static", "none")), SINGLE, cpus, free)


def _zones(dice: Random, machine: Node) -> NodeResourceTopology:
    """Return the NUMA zones of a machine: two halves, or a half and less."""
    half = machine.allocatable.milli_cpu // 2
    each = tuple(
        NumaZone(f"node-{i}", Resource(cpu), Resource(cpu)) for i, cpu in enumerate((half, dice.choice((half, 1000.0))))
    )
    return NodeResourceTopology(
        machine.name, dice.choice((SINGLE, SINGLE, RESTRICTED, BEST_EFFORT)), dice.random() < 0.5, each
    )


def _usage(dice: Random, node_name: str) -> NodeUsage:
    """Return a measurement that is recent, old, or missing."""
    measured = dice.choice((0.0, 900.0, 1000.0, 1000.0))
    return NodeUsage(node_name, dice.choice((5.0, 60.0, 95.0)), dice.choice((5.0, 60.0, 95.0)), measured)


def _kind(dice: Random, pods_max: int, *, topology: bool, mindful: bool) -> _Kind:
    size = dice.randint(1, pods_max)
    ask, by_role = (HOPELESS if dice.random() < 0.1 else dice.choice(ASKS)), dice.random() < 0.3
    terms = _terms(dice) if mindful and dice.random() < 0.6 else {}
    members = [(dice.choice(ASKS) if by_role else ask, dice.choice(("ps", "worker")) if by_role else "", terms)] * size
    if by_role:
        members = [(dice.choice(ASKS), dice.choice(("ps", "worker")), terms) for _ in range(size)]
    group: dict[str, Any] = {
        "minimum": dice.choice((0, *(dice.randint(1, size),) * 6, *(size,) * 12, size + 1)),
        "roles": {"worker": dice.randint(0, 1)} if by_role else None,
        "min_resources": dice.choice((None, resource(ask.cpu, f"{ask.memory}Gi"))),
        "annotations": {SLA_ANNOTATIONS[0]: dice.choice(("1m", "1h"))} if dice.random() < 0.2 else {},
    }
    other = apart(dice)
    if by_role and other.random() < 0.5:
        key = other.choice((AFFINITY_ANNOTATION, ANTI_AFFINITY_ANNOTATION))
        wanted = {key: other.choice(("worker", "ps,worker", "ps")), ORDER_ANNOTATION: "worker"}
        group["annotations"] = {**group["annotations"], **wanted}
    if topology and dice.random() < 0.6:
        group |= {"tier": dice.choice((None, 1, 2)), "soft": dice.random() < 0.5}
        if dice.random() < 0.3:
            group["sub_groups"] = (SubGroupPolicy("half", sub_group_size=1, match_label_keys=("part",)),)
    return _Kind(members, group)


def _terms(dice: Random) -> dict[str, Any]:
    """Return one term about other pods, or about nodes."""
    near = (PodAffinityTerm(dice.choice((HOST, ZONE)), _APP, (NAMESPACE,), weight=10),)
    on_ssd = NodeSelectorTerm((Requirement(DISK, "In", ("ssd",)),))
    skew = TopologySpreadConstraint(1, ZONE, dice.choice(("DoNotSchedule", "ScheduleAnyway")), _APP)
    topologies: tuple[dict[str, Any], ...] = (
        {"affinity": Affinity(anti_required=near)},
        {"affinity": Affinity(anti_preferred=near)},
        {"affinity": Affinity(pod_required=near)},
        {"affinity": Affinity(pod_preferred=near)},
        {"affinity": Affinity(node_required=(on_ssd,))},
        {"affinity": Affinity(node_preferred=(PreferredNodeTerm(5, on_ssd),))},
        {"spread": (skew,)},
        {"host_ports": (HostPort(8080),)},
        {"tolerations": (Toleration(DEDICATED, "Exists"),)},
        {"images": IMAGES[0].names},
    )
    return dice.choice(topologies)


def _gang(dice: Random, name: str, kind: _Kind, queues: list[str], rooms: list[_Room]) -> list[Object]:
    """Return a group of the kind and its pods; of some gangs a few run already."""
    group = podgroup(
        name,
        queue=dice.choice(queues),
        creation=float(dice.randint(0, 2)),
        priority_class=dice.choice(("", "", "low", "high")),
        phase=dice.choice(("Pending", "Inqueue", "Inqueue")),
        **kind.group,
    )
    runs, found = dice.random() < 0.4, []
    for i, (ask, role, terms) in enumerate(kind.pods):
        where = _take(rooms, ask) if runs and dice.random() < 0.7 else ""
        found.append(
            pod(
                f"{name}-{i}",
                name,
                ask.cpu,
                f"{ask.memory}Gi" if ask.memory else 0,
                ask.gpu,
                on=where,
                role=role,
                labels={"app": dice.choice("ab"), "part": str(i % 2)},
                creation=group.creation,
                deletion=1.0 if where and dice.random() < 0.4 else None,
                gates=() if where else dice.choice(GATES),
                priority=dice.choice((None, None, 5)),
                **terms,
            )
        )
    if runs:
        group = replace(group, status=replace(group.status, phase="Running"))
    return [group, *found]


def _others(dice: Random, rooms: list[_Room]) -> list[Object]:
    """Return running pods that may not be moved: without a group, or of the system."""
    ask = Ask(0.5, 1)
    bare = pod("bare-0", "", ask.cpu, f"{ask.memory}Gi", on=_take(rooms, ask), labels={"app": "a"})
    system = pod("dns-0", "", ask.cpu, f"{ask.memory}Gi", on=_take(rooms, ask), namespace="kube-system")
    critical = dice.choice(("", "system-cluster-critical"))
    system = replace(system, spec=replace(system.spec, priority_class_name=critical))
    return [each for each in (bare, system) if each.node_name]


class _Room:
    """What is left of a node while running pods are put on it."""

    def __init__(self, machine: Node) -> None:
        has = machine.allocatable
        self.name = machine.name
        self.left = [has.milli_cpu / 1000, has.memory / 2**30, has.get(GPU) / 1000, has.get("pods")]

    def take(self, ask: Ask) -> bool:
        wanted = [ask.cpu, ask.memory, ask.gpu, 1]
        if any(left < each for left, each in zip(self.left, wanted, strict=True)):
            return False
        self.left = [left - each for left, each in zip(self.left, wanted, strict=True)]
        return True


def _take(rooms: Iterable[_Room], ask: Ask) -> str:
    """Return the first node with room, which then has less, or ""."""
    return next((room.name for room in rooms if room.take(ask)), "")


def _hypernodes(names: list[str]) -> list[Object]:
    """Return hypernodes: two nodes per leaf, two leaves per spine."""
    leaves = [hypernode(f"s{i}", 1, names[2 * i : 2 * i + 2]) for i in range((len(names) + 1) // 2)]
    spines = range((len(leaves) + 1) // 2)
    return [
        *leaves,
        *(hypernode(f"t{i}", 2, hypernodes=[leaf.name for leaf in leaves[2 * i : 2 * i + 2]]) for i in spines),
    ]


def key_of(obj: Object) -> tuple[type[Object], str]:
    """Return kind, and ``namespace/name`` or name."""
    return type(obj), obj.key if isinstance(obj, Pod | PodGroup | ResourceQuota) else obj.name
