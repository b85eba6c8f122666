"""Random clusters: small enough to think about, mixed enough to find cases that were not thought of."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from msgspec import Struct

from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import QUEUE_GATE, Pod
from pumice.model.queue import PriorityClass, Queue
from pumice.model.workloads.podgroup import PodGroup
from pumice.testing.build import GPU, hypernode, node, pod, podgroup, queue, resource

ROLES = ("", "ps", "worker")
GATES = ((), (), (), (), (), ("example.com/wait",), (QUEUE_GATE,), (QUEUE_GATE, "example.com/wait"))
PRIORITIES = {"low": 1, "high": 1000}


class Shape(Struct, frozen=True):
    """What a world may contain."""

    nodes_max: int = 6
    jobs_max: int = 6
    tasks_max: int = 6
    equal_gangs: bool = False
    topology: bool = False
    sub_groups: bool = False
    limits: bool = True


PLAIN = Shape()


@st.composite
def nodes(draw: st.DrawFn, shape: Shape) -> list[Node]:
    count = draw(st.integers(1, shape.nodes_max))
    sizes = draw(st.lists(st.sampled_from([(1, 2), (2, 4), (4, 8), (8, 8), (8, 32)]), min_size=1, max_size=3))
    return [
        node(
            f"n{i}",
            cpu,
            f"{memory}Gi",
            gpu=draw(st.sampled_from([0, 0, 2, 4])),
            pods=draw(st.sampled_from([2, 4, 110])),
            creation=float(draw(st.integers(0, 2))),
            labels={"zone": f"z{i % 2}"},
        )
        for i in range(count)
        for cpu, memory in [draw(st.sampled_from(sizes))]
    ]


@st.composite
def queues(draw: st.DrawFn, shape: Shape) -> list[Queue]:
    found = []
    for i in range(draw(st.integers(1, 3))):
        limit = draw(st.sampled_from([None, resource(4, "8Gi"), resource(6, "16Gi", 2)])) if shape.limits else None
        share = draw(st.sampled_from([None, None, resource(1, "1Gi")])) if shape.limits else None
        weight = draw(st.integers(1, 4))
        found.append(queue(f"q{i}", weight, capability=limit, guarantee=share, priority=draw(st.integers(0, 1))))
    return found


@dataclass(slots=True)
class Room:
    """What is left of a node while a world puts running pods on it."""

    name: str
    cpu: float
    memory: float
    gpu: float
    pods: float


@st.composite
def gang(draw: st.DrawFn, name: str, queue_names: list[str], rooms: list[Room], shape: Shape) -> list[Object]:
    size = draw(st.integers(1, shape.tasks_max))
    by_role = draw(st.booleans()) and not shape.equal_gangs
    asks = st.sampled_from([(1, 1, 0), (2, 1, 0), (1, 2, 1), (3, 4, 0)] + ([] if shape.equal_gangs else [(0, 0, 0)]))
    one = draw(asks)
    group = podgroup(
        name,
        draw(st.integers(0 if not shape.equal_gangs else 1, size + (0 if shape.equal_gangs else 1))),
        draw(st.sampled_from(queue_names)),
        creation=float(draw(st.integers(0, 2))),
        priority_class=draw(st.sampled_from(["", "low", "high"])),
        phase=draw(st.sampled_from(["Pending", "Inqueue", "Inqueue"])),
        min_resources=draw(st.sampled_from([None, resource(*one)])) if shape.limits else None,
        tier=draw(st.sampled_from([None, 1, 2])) if shape.topology else None,
        soft=shape.topology and draw(st.booleans()),
        roles={"worker": draw(st.integers(0, 2))} if by_role else None,
    )
    found: list[Object] = [group]
    for i in range(size):
        cpu, memory, gpu = draw(asks) if by_role else one
        where = "" if shape.equal_gangs or draw(st.integers(0, 2)) else _take(rooms, cpu, memory, gpu)
        found.append(
            pod(
                f"{name}-t-{i}" if draw(st.booleans()) else f"{name}-{i}",
                name,
                cpu,
                f"{memory}Gi",
                gpu,
                on=where,
                role=draw(st.sampled_from(ROLES)) if by_role else "",
                creation=float(draw(st.integers(0, 2))),
                deletion=1.0 if where and draw(st.booleans()) else None,
                gates=() if where or shape.equal_gangs else draw(st.sampled_from(GATES)),
            )
        )
    return found


def _take(rooms: list[Room], cpu: float, memory: float, gpu: float) -> str:
    """The first node with room for a running pod, empty without."""
    for room in rooms:
        if room.cpu >= cpu and room.memory >= memory and room.gpu >= gpu and room.pods >= 1:
            room.cpu, room.memory, room.gpu, room.pods = (
                room.cpu - cpu,
                room.memory - memory,
                room.gpu - gpu,
                room.pods - 1,
            )
            return room.name
    return ""


@st.composite
def worlds(draw: st.DrawFn, shape: Shape = PLAIN) -> list[Object]:
    """Nodes, queues, priority classes, gangs with their pods, and hypernodes of two nodes each under spines of two."""
    machines = draw(nodes(shape))
    shares = draw(queues(shape))
    rooms = [_room_of(n) for n in machines]
    found: list[Object] = [*machines, *shares, *(PriorityClass(n, v) for n, v in PRIORITIES.items())]
    for i in range(draw(st.integers(1, shape.jobs_max))):
        found += draw(gang(f"g{i}", [q.name for q in shares], rooms, shape))
    if shape.topology:
        names = [n.name for n in machines]
        leaves = [hypernode(f"s{i}", 1, names[2 * i : 2 * i + 2]) for i in range((len(names) + 1) // 2)]
        found += leaves
        found += [
            hypernode(f"t{i}", 2, hypernodes=[leaf.name for leaf in leaves[2 * i : 2 * i + 2]])
            for i in range((len(leaves) + 1) // 2)
        ]
    return found


def _room_of(machine: Node) -> Room:
    has = machine.allocatable
    return Room(machine.name, has.milli_cpu / 1000, has.memory / 2**30, has.get(GPU) / 1000, has.get("pods"))


def pods_of(objects: list[Object]) -> list[Pod]:
    return [o for o in objects if isinstance(o, Pod)]


def groups_of(objects: list[Object]) -> list[PodGroup]:
    return [o for o in objects if isinstance(o, PodGroup)]
