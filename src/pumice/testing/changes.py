"""One change of a small cluster, as little as can happen at once, so that it can be named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields, replace

from pumice.model.devices.numa import BEST_EFFORT, SINGLE, NodeResourceTopology, Numatopology
from pumice.model.events import Event, Gone, Object, Seen
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import NodeGroupAffinity, PriorityClass, Queue, ResourceQuota
from pumice.model.resources import Resource
from pumice.model.topology import HyperNode, Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.workloads.podgroup import SLA_ANNOTATIONS, PodGroup
from pumice.testing.build import pod, resource
from pumice.testing.clusters import DISK, Alter, apart, key_of

SECONDS = (1.0, 90.0, 3700.0, 864_000.0)

Objects = dict[tuple[type[Object], str], Object]


class Change(Struct, frozen=True):
    """A change. ``text``: what happened. ``seconds``: how long it took, above 0 only for the clock. ``carries_out``:
    the last cycle's decisions were carried out."""

    text: str
    event: Event | None = None
    seconds: float = 0.0
    carries_out: bool = False


def next_change(dice: Random, objects: Objects, alter: Alter | None = None) -> Change:
    """Return a possible change of these objects: of the clock, of one object, or none at all."""
    if (seldom := _seldom(apart(dice), objects)) is not None:
        return seldom
    roll = dice.random()
    if roll < 0.05 or not objects:
        return Change("nothing")
    if roll < 0.2:
        seconds = dice.choice(SECONDS)
        return Change(f"the clock, by {seconds:g} s", None, seconds)
    if roll < 0.35:
        return Change("what the cycle decided was carried out", carries_out=True)
    kinds = sorted({kind for kind, _ in objects} - set(_SELDOM), key=lambda kind: kind.__name__)
    kind = dice.choice([*kinds, *(each for each in (Pod, Queue, PodGroup) if each in kinds)])
    before = objects[dice.choice(sorted((key for key in objects if key[0] is kind), key=lambda key: key[1]))]
    if isinstance(before, Pod) and dice.random() < 0.3:
        return _come_or_go(dice, objects, before)
    altered = alter is not None and dice.random() < 0.4
    after = alter(before, dice) if alter is not None and altered else _CHANGED[kind](dice, before, objects)
    return Change(difference(before, after) if after != before else "nothing", Seen(after))


def _seldom(dice: Random, objects: Objects) -> Change | None:
    """Return a change of what few plugins read, from time to time."""
    keys = sorted((key for key in objects if key[0] in _SELDOM), key=lambda key: (key[0].__name__, key[1]))
    if not keys or dice.random() < 0.9:
        return None
    key = dice.choice(keys)
    before = objects[key]
    after = _SELDOM[key[0]](dice, before, objects)
    return Change(difference(before, after) if after != before else "nothing", Seen(after))


def apply(objects: Objects, event: Event | None) -> None:
    """Update the objects by an event."""
    if isinstance(event, Seen):
        objects[key_of(event.obj)] = event.obj
    elif isinstance(event, Gone):
        objects.pop((event.kind, event.key), None)


def difference(before: Object, after: Object) -> str:
    """Return ``Queue q0: weight 1 -> 3``."""
    kind, key = key_of(before)
    return f"{kind.__name__} {key}: {', '.join(_differences(before, after))}"


def _differences(before: Any, after: Any) -> Iterator[str]:
    for name in before.__struct_fields__:
        left, right = getattr(before, name), getattr(after, name)
        if left == right:
            continue
        if isinstance(left, Struct) and type(left) is type(right) and not isinstance(left, Resource):
            yield from _differences(left, right)
        else:
            yield f"{name} {shown(left)} -> {shown(right)}"


def shown(value: Any) -> str:
    """Return a value of an object as a short text. Of a struct, only fields that differ from the default."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{key}: {shown(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(shown, value)) + "]"
        case Resource():
            return " ".join(f"{name}={amount}" for name, amount in value.to_list().items() if amount != "0")
        case Struct():
            return (
                f"{type(value).__name__}({', '.join(f'{name}={shown(each)}' for name, each in given(value).items())})"
            )
        case str():
            return value or '""'
    return repr(value)


def given(value: Any) -> dict[str, Any]:
    """Return the fields of a value that differ from the default."""
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.default is NODEFAULT or getattr(value, field.name) != field.default
    }


def _come_or_go(dice: Random, objects: Objects, one: Pod) -> Change:
    """Return a change by which a pod goes, or one like it arrives: in the same gang or in none, waiting or on a
    node."""
    if dice.random() < 0.4:
        return Change(f"Pod {one.key}: gone", Gone(Pod, one.key))
    nodes = sorted(key for kind, key in objects if kind is Node)
    where = dice.choice(nodes) if nodes and dice.random() < 0.7 else ""
    name = f"new-{dice.randint(0, 3)}"
    if (Pod, f"ns/{name}") in objects:
        return Change("nothing")
    group = one.group_key.partition("/")[2] if dice.random() < 0.5 else ""
    new = replace(pod(name, group, on=where, labels=one.labels), spec=one.spec)
    return Change(f"Pod {new.key}: new, {'on ' + where if where else 'waiting'}, in group {group or 'none'}", Seen(new))


def _pod(dice: Random, one: Pod, objects: Objects) -> Pod:
    nodes = sorted(key for kind, key in objects if kind is Node)
    changes: list[dict[str, Any]] = [
        {"labels": {**one.labels, "app": dice.choice("abc")}},
        {"annotations": {**one.annotations, "example.com/note": dice.choice("xyz")}},
    ]
    if one.node_name:
        changes += [{"deletion": None if one.deletion else 5.0}, {"phase": dice.choice(("Succeeded", "Failed"))}]
    elif not one.phase or one.phase == "Pending":
        changes += [
            {"gates": () if one.gates else ("example.com/wait",)},
            {"nominated_node": dice.choice(("", *nodes))},
            {"spec": replace(one.spec, priority=dice.choice((1, 9)))},
        ]
        if nodes:
            changes.append({"node_name": dice.choice(nodes), "phase": "Running", "gates": ()})
    return replace(one, **dice.choice(changes))


def _group(dice: Random, one: PodGroup, objects: Objects) -> PodGroup:
    changes: list[dict[str, Any]] = [
        {"min_member": dice.randint(0, 4)},
        {"queue": dice.choice([*sorted(key for kind, key in objects if kind is Queue), "nowhere"])},
        {"priority_class_name": dice.choice(("", "low", "high"))},
        {"creation": float(dice.randint(0, 3))},
        {"min_resources": dice.choice((None, resource(1), resource(3, "2Gi")))},
        {"annotations": {SLA_ANNOTATIONS[0]: dice.choice(("30s", "2h"))}},
        {"annotations": {"example.com/note": dice.choice("xyz")}},
        {"status": replace(one.status, phase=dice.choice(("Pending", "Inqueue", "Running")))},
    ]
    return replace(one, **dice.choice(changes))


def _node(dice: Random, one: Node, objects: Objects) -> Node:
    amount = one.allocatable
    changes: list[dict[str, Any]] = [
        {"labels": {**one.labels, DISK: dice.choice(("ssd", "hdd"))}},
        {"unschedulable": not one.unschedulable},
        {"allocatable": replace(amount, milli_cpu=amount.milli_cpu + dice.choice((1000, 2000)))},
        {"taints": ()},
    ]
    return replace(one, **dice.choice(changes))


def _queue(dice: Random, one: Queue, objects: Objects) -> Queue:
    changes: list[dict[str, Any]] = [
        {"weight": dice.randint(1, 5)},
        {"priority": dice.randint(0, 2)},
        {"state": "Closed" if one.state == "Open" else "Open"},
        {"capability": dice.choice((None, resource(2, "4Gi"), resource(5, "16Gi")))},
        {"guarantee": dice.choice((None, resource(1), resource(2)))},
        {"allocated": resource(dice.randint(0, 3))},
        {"annotations": {**one.annotations, "example.com/note": dice.choice("xyz")}},
        {"annotations": {key: value + "/1" for key, value in one.annotations.items()}},
    ]
    changed = replace(one, **dice.choice(changes))
    groups = (None, NodeGroupAffinity(("b",)), NodeGroupAffinity((), ("a",), ("b",)))
    other = apart(dice)
    return replace(changed, affinity=other.choice(groups)) if other.random() < 0.1 else changed


def _priority(dice: Random, one: PriorityClass, objects: Objects) -> PriorityClass:
    return replace(one, value=dice.randint(-5, 2000))


def _hypernode(dice: Random, one: HyperNode, objects: Objects) -> HyperNode:
    return replace(one, members=one.members[:-1] if len(one.members) > 1 else one.members)


def _topology(dice: Random, one: Topology, objects: Objects) -> Topology:
    return replace(one, levels=one.levels[::-1])


def _quota(dice: Random, one: ResourceQuota, objects: Objects) -> ResourceQuota:
    return replace(one, used=resource(dice.randint(0, 6), f"{dice.randint(0, 4)}Gi"))


def _usage(dice: Random, one: NodeUsage, objects: Objects) -> NodeUsage:
    return replace(one, cpu=dice.choice((5.0, 50.0, 95.0)), at=dice.choice((0.0, 900.0, 1000.0, 1100.0)))


def _history(dice: Random, one: QueueHistory, objects: Objects) -> QueueHistory:
    return replace(one, gpu=dice.choice((0.0, 0.2, 0.7)), cpu=dice.choice((0.0, 0.5)))


def _zones(dice: Random, one: NodeResourceTopology, objects: Objects) -> NodeResourceTopology:
    return replace(one, policy=BEST_EFFORT if one.policy == SINGLE else SINGLE, by_pod=not one.by_pod)


def _numa(dice: Random, one: Numatopology, objects: Objects) -> Numatopology:
    return replace(one, free=dice.choice((None, (0, 1), (0, 1, 2, 3), (2,))))


_CHANGED: Mapping[type[Object], Callable[[Random, Any, Objects], Object]] = {
    Pod: _pod,
    PodGroup: _group,
    Node: _node,
    Queue: _queue,
    PriorityClass: _priority,
    HyperNode: _hypernode,
}
_SELDOM: Mapping[type[Object], Callable[[Random, Any, Objects], Object]] = {
    ResourceQuota: _quota,
    NodeUsage: _usage,
    QueueHistory: _history,
    Numatopology: _numa,
    NodeResourceTopology: _zones,
    Topology: _topology,
}
