"""The changes that give claims of pods what they ask for, made on the objects of a random world."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from pumice.model.blockers.changes import AttachMore, Change, OfferDevices, OfferVolume
from pumice.model.devices.claims import ResourceSlice
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import NodeSelectorTerm, Requirement
from pumice.model.volumes import CSINode, PersistentVolume
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
