"""The changes that lift a blocker, made on the objects of a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from pumice.model.blockers import CAPABILITY
from pumice.model.blockers.changes import (
    AddNode,
    AddPods,
    Change,
    FreeRoom,
    OpenQueue,
    RaiseLimit,
    RemoveGates,
    RemoveTaint,
)
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.resources import Resource
from pumice.model.topology import HyperNode
from pumice.placing.filters.nodes import CORDON
from pumice.reasons.selection import text_of

#: As good as nothing, in every unit: so much less than what lifts a blocker does not lift it.
LITTLE = 1.0


def lifted(
    objects: Sequence[Object], change: Change, less: float = 0.0, *, job: str = "ns/ask"
) -> Iterator[list[Object]]:
    """Yield the objects after a change, for each node on which it may be made. ``less``: the amount is smaller by so
    much. ``job``: the key of the job for which it is made."""
    members = {each.name: _members(each) for each in objects if isinstance(each, HyperNode)}
    match change:
        case FreeRoom(name, value, where):
            for node in _nodes(objects):
                if where in ("", node.name, *node.labels.values()) or node.name in members.get(where, ()):
                    room = _more(node.allocatable, name, value - less)
                    yield _with(objects, node, replace(node, allocatable=room, capacity=room))
        case AddNode((first,), labels, _, _):
            node = _nodes(objects)[0]
            room = _more(_set(node.allocatable, first.resource, 0.0), first.resource, first.value - less)
            yield [*objects, replace(_new(objects, labels), allocatable=room, capacity=room)]
        case AddNode((), labels, hypernode, count):
            found = list(objects)
            for _ in range(count):
                made = _large_enough(_new(found, labels), found, job)
                found = [*(_with_member(each, hypernode, made.name) for each in found), made]
            yield found
        case RaiseLimit(name, kind, resource, value) if kind == CAPABILITY:
            for each in objects:
                if isinstance(each, Queue) and each.name == name and each.capability is not None:
                    yield _with(objects, each, replace(each, capability=_more(each.capability, resource, value - less)))
        case OpenQueue(name):
            yield [
                replace(each, state="Open") if isinstance(each, Queue) and each.name == name else each
                for each in objects
            ]
        case RemoveTaint(taint, _):
            for node in _nodes(objects):
                kept = tuple(each for each in node.taints if text_of(each) != taint)
                off = node.unschedulable and taint != text_of(CORDON)
                yield _with(objects, node, replace(node, taints=kept, unschedulable=off))
        case RemoveGates(gates):
            yield [_ungated(each, gates) if isinstance(each, Pod) else each for each in objects]
        case AddPods(role, count):
            like = next(each for each in objects if isinstance(each, Pod) and each.group_key == job)
            names = [f"{like.name}-new-{i}" for i in range(count)]
            annotations = {**like.annotations, **({"volcano.sh/task-spec": role} if role else {})}
            yield [*objects, *(replace(like, name=n, uid=n, deletion=None, annotations=annotations) for n in names)]


def is_known(change: Change) -> bool:
    """Return True for a change that can be made here."""
    made = AddNode | AddPods | FreeRoom | OpenQueue | RemoveGates | RemoveTaint
    return isinstance(change, made) or (isinstance(change, RaiseLimit) and change.kind == CAPABILITY)


def has_amount(change: Change) -> bool:
    return isinstance(change, FreeRoom | RaiseLimit) or (isinstance(change, AddNode) and bool(change.room))


def _members(hypernode: HyperNode) -> list[str]:
    return [member.exact for member in hypernode.members if member.exact is not None]


def _with_member(obj: Object, hypernode: str, name: str) -> Object:
    """Return an object, the HyperNode of a name with one more node."""
    if not isinstance(obj, HyperNode) or obj.name != hypernode:
        return obj
    return replace(obj, members=(*obj.members, replace(obj.members[0], exact=name)))


def _nodes(objects: Sequence[Object]) -> list[Node]:
    return [each for each in objects if isinstance(each, Node)]


def _new(objects: Sequence[Object], labels: Sequence[str] = ()) -> Node:
    """Return a node like the first one, with a name that none has, and with these labels."""
    node, name = _nodes(objects)[0], f"new-{len(_nodes(objects))}"
    wanted = dict(each.split("=", 1) for each in labels)
    named = {**node.labels, "kubernetes.io/hostname": name, **wanted}
    return replace(node, name=name, uid=name, labels=named, unschedulable=False, taints=())


def _large_enough(node: Node, objects: Sequence[Object], job: str) -> Node:
    """Return a node with at least as much of each resource as a pod of the job asks for."""
    room = node.allocatable
    for pod in (each for each in objects if isinstance(each, Pod) and each.group_key == job):
        room = room.set_max(pod.spec.request)
        if pod.spec.gpu_share is not None:
            missing = 1000.0 * pod.spec.gpu_share.devices - room.get(GPU_RESOURCE)
            room = _more(room, GPU_RESOURCE, max(missing, 0.0))
    return replace(node, allocatable=room, capacity=room)


def _with(objects: Sequence[Object], old: Object, new: Object) -> list[Object]:
    return [new if each is old else each for each in objects]


def _ungated(pod: Pod, gates: tuple[str, ...]) -> Pod:
    return replace(pod, gates=tuple(gate for gate in pod.gates if gate not in gates))


def _more(room: Resource, name: str, value: float) -> Resource:
    return _changed(room, name, lambda before: before + value)


def _set(room: Resource, name: str, value: float) -> Resource:
    return _changed(room, name, lambda before: value)


def _changed(room: Resource, name: str, change: Callable[[float], float]) -> Resource:
    if name == "pods":
        scalars = {**(room.scalars or {}), "pods": change((room.scalars or {}).get("pods", 0.0))}
        return replace(room, max_task_num=int(change(room.max_task_num)), scalars=scalars)
    if name in ("cpu", "memory"):
        field = "milli_cpu" if name == "cpu" else name
        fields: dict[str, Any] = {field: change(getattr(room, field))}
        return replace(room, **fields)
    return replace(room, scalars={**(room.scalars or {}), name: change((room.scalars or {}).get(name, 0.0))})
