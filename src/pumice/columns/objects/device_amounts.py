"""How much of an extended resource nodes offer by devices that can be claimed, instead of by a device plugin.

Such an amount counts on the node as any other. Which devices a pod is given is another question, that claims answer:
devices may be held by other claims, so a node can have less than it offers. Source: KEP-5004.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType

from pumice.algorithms.cel import Face, SelectorError, face_of, selects
from pumice.model.devices.capacity import shares_without_request
from pumice.model.devices.claims import Device, DeviceClass, ResourceSlice, slices_that_count
from pumice.model.devices.extended import backing_classes
from pumice.model.node import Node

_MILLI = 1000.0

#: By node, the amount of each resource, in thousandths.
Amounts = Mapping[str, Mapping[str, float]]
NOTHING: Amounts = MappingProxyType({})


def amounts_by_devices(
    nodes: Iterable[Node],
    slices: Iterable[ResourceSlice],
    classes: Iterable[DeviceClass],
    resources: Collection[str],
) -> Amounts:
    """Return how much of these resources nodes offer by devices. A resource that a node has by itself is left out, and
    so are devices that several nodes can reach."""
    backing = {name: each for name, each in backing_classes(classes).items() if name in resources}
    # Without such a class, which is the rule, no slice is looked at.
    if not backing:
        return {}
    known = {node.name: node.allocatable.scalars or {} for node in nodes}
    of_node: dict[str, list[ResourceSlice]] = defaultdict(list)
    for each in slices_that_count(slices):
        of_node[each.node_name].append(each)
    found: dict[str, dict[str, float]] = {}
    for name, own in known.items():
        offered = {
            resource: _MILLI * most_at_once(of_node[name], partial(_is_of, of))
            for resource, of in backing.items()
            if name in of_node and not own.get(resource)
        }
        # Most nodes of a mixed cluster have device plugins, and need no entry.
        if any(offered.values()):
            found[name] = {resource: amount for resource, amount in offered.items() if amount}
    return found


def most_at_once(slices: Iterable[ResourceSlice], counts: Callable[[str, Device], bool]) -> int:
    """Return an upper bound of how many devices can be given at once. ``counts``: whether a device of a driver counts.

    Partitions of one device consume its counters together, so they count as many as its counters are enough for.
    """
    found = 0
    pools: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        pools[each.driver, each.pool].append(each)
    for (driver, _), of_pool in pools.items():
        totals = {(use.counter_set, use.counter): use.amount for each in of_pool for use in each.counters}
        # By set of counters: how many devices consume it, and the least that one of them consumes of each counter.
        users: dict[str, int] = defaultdict(int)
        least: dict[tuple[str, str], float] = {}
        for device in (device for each in of_pool for device in each.devices if counts(driver, device)):
            if not device.consumes:
                found += shares_without_request(device)
                continue
            # Of a device that consumes several sets the first one bounds it, so that it counts once.
            users[device.consumes[0].counter_set] += 1
            for use in device.consumes:
                key = use.counter_set, use.counter
                least[key] = min(least.get(key, use.amount), use.amount)
        for counter_set, count in users.items():
            # By the least consumer of each counter, since an exact answer would be a search and a bound is enough.
            own = [(key, amount) for key, amount in least.items() if key[0] == counter_set and amount]
            found += int(min([count, *(totals.get(key, 0.0) // amount for key, amount in own)]))
    return found


def _is_of(of: DeviceClass, driver: str, device: Device) -> bool:
    """Return True if a device may belong to a class."""
    if device.unknown:
        return False
    attributes = {each.name: (each.kind, each.value) for each in device.attributes}
    face = face_of(driver, attributes, dict(device.capacity))
    return all(_may_select(selector, face) for selector in of.selectors)


def _may_select(selector: str, face: Face) -> bool:
    try:
        return selects(selector, face)
    except SelectorError:
        # The filter of claims says what is wrong with the selector. Here it must get the chance to.
        return True
