"""Changes to a cluster as users write them: ``queue/vision.capability.cpu=120``, ``4x8gpu``, ``job/ml/a``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from types import MappingProxyType

from msgspec.structs import replace

from pumice.answers.explanation import NoSuchJob, find_job
from pumice.answers.lifts import with_more
from pumice.answers.world import Draft
from pumice.model.devices.claims import ResourceClaim
from pumice.model.devices.gpu import GPU_RESOURCE, without_groups
from pumice.model.events import Object, key_of
from pumice.model.node import Node
from pumice.model.plain_words import first_names
from pumice.model.pod import ENDED, Pod
from pumice.model.quantity import QuantityError
from pumice.model.queue import Queue, QueueSharing
from pumice.model.resources import CPU, MEMORY, Resource
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus

NODES_MAX = 100_000
_COUNT_MAX = 2**31 - 1
_NAMED_MAX = 4
_NODES = re.compile(r"(?P<count>\d{1,7})x(?P<what>\S+)")
_SIZE = re.compile(r"(?P<value>\d{1,9}(?:\.\d{1,3})?)(?P<unit>gpu|cpu|gi)", re.IGNORECASE)
#: Of a node that is described by its GPUs or cores alone.
_CPU_A_GPU, _GI_A_CPU, _PODS = 16, 8, 110


class ChangeError(ValueError):
    """A change cannot be made: what was found, what was wanted."""


def add_nodes(draft: Draft, text: str) -> None:
    """Add nodes: ``4xNAME`` are like a node that is there, ``4x8gpu`` or ``2x8gpu,64cpu,512gi`` have a size. Those of a
    size are like the first node with as many GPUs or cores, if there is one. Raises: ChangeError."""
    found = _NODES.fullmatch(text)
    if found is None or not 0 < int(found["count"]) <= NODES_MAX:
        raise ChangeError("wanted COUNTxNAME or COUNTxSIZE, such as 4xgpu-node-1 or 4x8gpu,64cpu")
    named = draft.get(Node, found["what"])
    like = named if isinstance(named, Node) else _of_size(draft, found["what"])
    taken = {node.name for node in draft.nodes()}
    made, number = 0, 0
    while made < int(found["count"]):
        number += 1
        name = f"{like.name}-new-{number}"
        if name in taken:
            continue
        labels = {**like.labels, "kubernetes.io/hostname": name}
        draft.put(replace(like, name=name, uid=name, labels=labels, unschedulable=False))
        made += 1


def _of_size(draft: Draft, text: str) -> Node:
    parts = [_SIZE.fullmatch(part) for part in text.split(",")]
    if not all(parts):
        hint = _instead(text, [node.name for node in draft.nodes()])
        raise ChangeError(f"no node is named {text!r}, and it is no size such as 8gpu,64cpu{hint}")
    sizes = {part["unit"].lower(): float(part["value"]) for part in parts if part is not None}
    wanted = {GPU_RESOURCE: sizes.get("gpu"), CPU: sizes.get("cpu")}
    for node in draft.nodes():
        has = {name: value for name, value in wanted.items() if value is not None}
        if has and "gi" not in sizes and all(node.allocatable.get(n) == 1000.0 * v for n, v in has.items()):
            return replace(node, taints=())
    cpu = sizes.get("cpu", sizes.get("gpu", 0.0) * _CPU_A_GPU)
    memory = sizes.get("gi", cpu * _GI_A_CPU) * 2**30
    scalars = {"pods": float(_PODS)} | ({GPU_RESOURCE: 1000.0 * sizes["gpu"]} if sizes.get("gpu") else {})
    room = Resource(1000.0 * cpu, memory, scalars, _PODS)
    return Node("node", room, room)


def drain(draft: Draft, text: str) -> None:
    """Cordon a node, or the nodes with a label ``KEY=VALUE``, and let the pods that run there wait again.

    Raises: ChangeError."""
    key, equals, value = text.partition("=")
    nodes = [node for node in draft.nodes() if (node.labels.get(key) == value if equals else node.name == text)]
    if not nodes:
        if equals:
            raise ChangeError(f"no node has the label {text}")
        raise ChangeError(f"there is no node {text!r}{_instead(text, [node.name for node in draft.nodes()])}")
    names = {node.name for node in nodes}
    for node in nodes:
        draft.put(replace(node, unschedulable=True))
    for obj in list(draft.all(Pod)):
        if isinstance(obj, Pod) and obj.node_name in names:
            if obj.group_key and obj.phase not in ENDED:
                _start_anew(draft, obj)
            else:
                draft.remove(Pod, obj.key)


def _start_anew(draft: Draft, pod: Pod) -> None:
    """Let a pod wait as the one does that its controller creates in its place: without the node, the shared devices
    and the claims of the old one."""
    # With the UID of the old one the store would take it for news from before the pod's bind.
    new = pod.made_again(f"{pod.uid}~1", draft.world.now)
    draft.put(replace(new, labels=without_groups(pod.labels)))
    for name in pod.made_claims:
        claim = draft.get(ResourceClaim, f"{pod.namespace}/{name}")
        if isinstance(claim, ResourceClaim):
            draft.put(replace(claim, allocation=None, reserved_for=()))


def remove(draft: Draft, text: str) -> None:
    """Remove ``job/NAME`` with its pods, ``node/NAME`` with the pods on it, ``queue/NAME`` or ``pod/NAME``.

    Raises: ChangeError."""
    kind, _, name = text.partition("/")
    if kind == "job" and name:
        key = _job(draft, name)
        draft.remove(PodGroup, key)
        for pod in draft.pods(key):
            draft.remove(Pod, pod.key)
        return
    kinds: dict[str, type[Object]] = {"node": Node, "queue": Queue, "pod": Pod}
    if kind not in kinds or not name:
        raise ChangeError("wanted job/NAME, node/NAME, queue/NAME or pod/NAMESPACE/NAME")
    _wanted(draft, kinds[kind], kind, name)
    draft.remove(kinds[kind], name)
    for obj in list(draft.all(Pod)) if kind == "node" else ():
        if isinstance(obj, Pod) and obj.node_name == name:
            draft.remove(Pod, obj.key)


def put(draft: Draft, objects: Iterable[Object], instead_of: Iterable[Object] = ()) -> None:
    """Add objects, or change those that are there already: what only their status says stays. ``instead_of``: objects
    that go if they are not among them."""
    given = list(objects)
    kept = {(type(each), key_of(each)) for each in given}
    for each in list(instead_of):
        if (type(each), key_of(each)) not in kept:
            draft.remove(type(each), key_of(each))
    for obj in given:
        match obj, draft.get(type(obj), key_of(obj)):
            case Pod(node_name=""), Pod(node_name=node, phase=phase, start_time=since) if node:
                draft.put(replace(obj, node_name=node, phase=phase, start_time=since))
            case PodGroup(status=status), PodGroup(status=before) if status == PodGroupStatus():
                draft.put(replace(obj, status=before))
            case _:
                draft.put(obj)


def assign(draft: Draft, text: str) -> None:
    """Set a field: ``queue/NAME.FIELD=VALUE``, ``job/NAME.FIELD=VALUE`` or ``node/NAME.FIELD=VALUE``.

    Raises: ChangeError."""
    path, equals, value = text.partition("=")
    kind, _, rest = path.partition("/")
    if not equals or kind not in _FIELDS:
        raise ChangeError("wanted queue/NAME.FIELD=VALUE, job/NAME.FIELD=VALUE or node/NAME.FIELD=VALUE")
    for field, change in _FIELDS[kind].items():
        # Names may have dots in them, so that the field is looked for and not the first dot.
        name, dot, inner = rest.partition(f".{field}")
        if dot and name and (not inner or inner.startswith(".")):
            change(draft, name, inner[1:], value)
            return
    wanted = ", ".join(_FIELDS[kind])
    near = next((found for word in rest.split(".") for found in get_close_matches(word, _FIELDS[kind], 1, 0.8)), "")
    raise ChangeError(f"wanted a field of {kind}: {wanted}{f'; did you mean {near}?' if near else ''}")


# -- the fields


def _set_amount(field: str) -> Callable[[Draft, str, str, str], None]:
    def apply(draft: Draft, name: str, resource: str, value: str) -> None:
        queue = _queue(draft, name)
        before = getattr(queue, field)
        draft.put(replace(queue, **{field: _with(before or Resource(), resource, value, field)}))

    return apply


def _set_room(draft: Draft, name: str, resource: str, value: str) -> None:
    node = _wanted(draft, Node, "node", name)
    if isinstance(node, Node):
        room = _with(node.allocatable, resource, value, "allocatable")
        draft.put(replace(node, allocatable=room, capacity=room.set_max(node.capacity)))


def _set_cordon(draft: Draft, name: str, inner: str, value: str) -> None:
    node = _wanted(draft, Node, "node", name)
    if value not in ("true", "false"):
        raise ChangeError("wanted true or false")
    if isinstance(node, Node):
        draft.put(replace(node, unschedulable=value == "true"))


def _set_state(draft: Draft, name: str, inner: str, value: str) -> None:
    if value not in ("Open", "Closed"):
        raise ChangeError("wanted Open or Closed")
    draft.put(replace(_queue(draft, name), state=value))


def _set_number(field: str, least: int) -> Callable[[Draft, str, str, str], None]:
    def apply(draft: Draft, name: str, inner: str, value: str) -> None:
        draft.put(replace(_queue(draft, name), **{field: _count(value, least)}))

    return apply


def _set_minimum(draft: Draft, name: str, inner: str, value: str) -> None:
    group = _group(draft, name)
    least, wanted = _count(value, 1), group.min_resources
    if wanted is not None and group.min_member:
        # What the minimum asks for goes with it, as the controllers of jobs write it.
        wanted = wanted.multi(least / group.min_member)
    draft.put(replace(group, min_member=least, min_resources=wanted))


def _set_queue(draft: Draft, name: str, inner: str, value: str) -> None:
    _queue(draft, value)
    draft.put(replace(_group(draft, name), queue=value))


def _set_priority(draft: Draft, name: str, inner: str, value: str) -> None:
    draft.put(replace(_group(draft, name), priority_class_name=value))


def _set_sharing(draft: Draft, name: str, inner: str, value: str) -> None:
    """``resources.gpu.limit``, in the units of KAI: GPUs, thousandths of cores, MB; -1 for no limit."""
    part, _, field = inner.partition(".")
    if part not in ("gpu", "cpu", "memory") or field not in ("limit", "quota"):
        raise ChangeError("wanted resources.gpu.limit, or quota, of gpu, cpu or memory")
    queue, number = _queue(draft, name), _number(value)
    amount = None if number == -1 else number * {"gpu": 1000.0, "cpu": 1.0, "memory": 1e6}[part]
    if amount is not None and amount < 0:
        raise ChangeError("wanted -1, 0 or more")
    share = queue.sharing or QueueSharing()
    changed = replace(getattr(share, part), **{field: amount})
    draft.put(replace(queue, sharing=replace(share, **{part: changed})))


_FIELDS: MappingProxyType[str, dict[str, Callable[[Draft, str, str, str], None]]] = MappingProxyType(
    {
        "queue": {
            "capability": _set_amount("capability"),
            "deserved": _set_amount("deserved"),
            "guarantee": _set_amount("guarantee"),
            "resources": _set_sharing,
            "weight": _set_number("weight", 1),
            "priority": _set_number("priority", -_COUNT_MAX),
            "state": _set_state,
        },
        "job": {"minMember": _set_minimum, "queue": _set_queue, "priorityClassName": _set_priority},
        "node": {"allocatable": _set_room, "unschedulable": _set_cordon},
    }
)


def _with(found: Resource, resource: str, value: str, field: str) -> Resource:
    """Return amounts with one of them set."""
    if not resource:
        raise ChangeError(f"wanted {field}.RESOURCE=AMOUNT, such as {field}.cpu=8")
    try:
        amount = Resource.from_list({resource: value})
    except QuantityError as error:
        raise ChangeError(str(error)) from None
    if amount.get(resource) < 0 or (resource not in (CPU, MEMORY) and resource not in (amount.scalars or ())):
        raise ChangeError("wanted an amount of a resource, 0 or more")
    return with_more(found, resource, amount.get(resource) - found.get(resource))


def _number(value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        raise ChangeError("wanted a number") from None
    if not abs(found) < 1e15:
        raise ChangeError("wanted a number below 1e15")
    return found


def _count(value: str, least: int) -> int:
    if not re.fullmatch(r"-?\d{1,10}", value) or not least <= int(value) <= _COUNT_MAX:
        raise ChangeError(f"wanted a whole number from {least} to {_COUNT_MAX}")
    return int(value)


# -- the objects that are named


def _instead(name: str, there: list[str]) -> str:
    """Return what may be meant by a name that is not there: the nearest, or some of those that are there."""
    near = get_close_matches(name, there, 1)
    if near or not there:
        return f"; did you mean {near[0]}?" if near else ""
    return f"; there {'is' if len(there) == 1 else 'are'} {first_names(there, _NAMED_MAX)}"


def _wanted(draft: Draft, kind: type[Object], word: str, name: str) -> Object:
    found = draft.get(kind, name)
    if found is None:
        raise ChangeError(f"there is no {word} {name!r}{_instead(name, [key_of(obj) for obj in draft.all(kind)])}")
    return found


def _queue(draft: Draft, name: str) -> Queue:
    found = _wanted(draft, Queue, "queue", name)
    assert isinstance(found, Queue)
    return found


def _job(draft: Draft, name: str) -> str:
    try:
        return find_job(draft.world, name)
    except NoSuchJob as error:
        raise ChangeError(str(error)) from None


def _group(draft: Draft, name: str) -> PodGroup:
    found = draft.group(_job(draft, name))
    if found is None:
        raise ChangeError(f"job {name!r} has no PodGroup")
    return found
