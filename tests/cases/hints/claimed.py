"""The changes that give claims of pods what they ask for, made on the objects of a random world."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from pumice.model.blockers.changes import AttachMore, Change, ClaimApart, OfferDevices, OfferVolume
from pumice.model.devices.claims import ResourceClaim, ResourceSlice
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import NodeSelectorTerm, Pod, Requirement
from pumice.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim
from tests.properties.answers.claimed_worlds import device_that_all_select


def offered(objects: Sequence[Object], change: Change) -> Iterator[list[Object]]:
    """Yield the objects after a change, for each node on which it may be made; on all nodes if it is for several."""
    nodes, found = [each for each in objects if isinstance(each, Node)], list(objects)
    if not isinstance(change, OfferDevices | OfferVolume | AttachMore) or not change.nodes:
        for node in nodes:
            yield from offered_on(node, objects, change)
        return
    for node in nodes:
        (found,) = offered_on(node, found, change)
    yield found


def offered_on(node: Node, objects: Sequence[Object], change: Change) -> Iterator[list[Object]]:
    """Yield the objects after a change on a node."""
    name = f"more-{node.name}-{len(objects)}"
    here = NodeSelectorTerm((Requirement("kubernetes.io/hostname", "In", (node.name,)),))
    match change:
        case OfferDevices(device_class, count):
            devices = tuple(device_that_all_select(f"d{i}") for i in range(count))
            yield [*objects, ResourceSlice(name, device_class, name, node.name, (), devices)]
        case OfferVolume(storage_class, size, count):
            like = PersistentVolume("", storage_class, modes=("ReadWriteOnce",), size=size, nodes=(here,))
            yield [*objects, *(replace(like, name=f"{name}-{i}") for i in range(count))]
        case AttachMore(driver, count):
            yield [
                _attaching(each, driver, count) if isinstance(each, CSINode) and each.name == node.name else each
                for each in objects
            ]


def _attaching(node: CSINode, driver: str, count: int) -> CSINode:
    limits = tuple((name, most + count if name == driver else most) for name, most in node.limits)
    return replace(node, limits=limits)


def claimed_apart(objects: Sequence[Object], change: ClaimApart, job: str) -> list[Object]:
    """Return the objects in which each pod of a job has a claim of its own in place of one that they share."""
    found = list[Object]()
    shared = next(each for each in objects if type(each).__name__ == change.kind and _is_named(each, job, change.name))
    for each in objects:
        if not isinstance(each, Pod) or each.group_key != job:
            found.append(each)
            continue
        name, spec = f"{change.name}-of-{each.name}", each.spec
        for field in ("claim_names", "resource_claims"):
            names = tuple(name if used == change.name else used for used in getattr(spec, field))
            spec = replace(spec, **{field: names})
        found += [replace(each, spec=spec), _fresh(shared, name)]
    return found


def _is_named(claim: Object, job: str, name: str) -> bool:
    return getattr(claim, "key", "") == f"{job.partition('/')[0]}/{name}"


def _fresh(claim: Object, name: str) -> Object:
    """Return a claim of another name that asks for the same and has nothing yet."""
    if isinstance(claim, PersistentVolumeClaim):
        return replace(claim, name=name, uid=name, volume="", bound=False, node="")
    assert isinstance(claim, ResourceClaim)
    return replace(claim, name=name, uid=name, allocation=None, reserved_for=())
