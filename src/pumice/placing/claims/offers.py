"""Devices that slices offer, as rows, and which of them a request may be given.

D rows, those of one node side by side in the order of their pools and slices, which is the order in which they are
given away. Source: Kubernetes structured allocator (which slices of a pool count).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from pumice.algorithms.cel import Face, SelectorError, check, face_of, selects
from pumice.columns.dtypes import I32, Bool
from pumice.framework.cycle.session import Session
from pumice.model.devices.claims import Device, DeviceClass, DeviceOption, DeviceTaint, ResourceSlice
from pumice.model.devices.gpu import is_gpu
from pumice.model.node import Taint
from pumice.placing.derived import Derived, derived
from pumice.placing.filters.nodes import node_term, tolerates

_KEEPS_OFF = ("NoSchedule", "NoExecute")

#: What names a device: driver, pool, name.
DeviceId = tuple[str, str, str]


class Offers:
    """``ids`` and ``row_of``: what names each device. ``node`` (D,): the node that it is on, -1 where several can use
    it: ``near`` then has, by row, those nodes (N,). ``of_node``: rows by node, without those.
    ``attributes``: of each by name, as (kind, text)."""

    def __init__(self, facts: Derived, slices: list[ResourceSlice], classes: Mapping[str, DeviceClass]) -> None:
        self._classes = classes
        self.ids: list[DeviceId] = []
        self._devices: list[Device] = []
        nodes: list[int] = []
        self.near: dict[int, Bool] = {}
        row_of = facts.facts.row_of
        in_order = sorted(_that_count(slices), key=lambda e: (row_of.get(e.node_name, -1), e.pool, e.name))
        for each in in_order:
            if each.node_name and each.node_name not in row_of:
                continue
            for device in each.devices:
                if not each.node_name:
                    self.near[len(self.ids)] = _selected(facts, each)
                nodes.append(row_of.get(each.node_name, -1))
                self.ids.append((each.driver, each.pool, device.name))
                self._devices.append(device)
        self.node: I32 = np.array(nodes, dtype=np.int32)
        self.row_of: dict[DeviceId, int] = {}
        for row, name in enumerate(self.ids):
            self.row_of.setdefault(name, row)
        self.of_node: dict[int, list[int]] = defaultdict(list)
        for row, node in enumerate(nodes):
            if node >= 0:
                self.of_node[node].append(row)
        self._matching: dict[DeviceOption, Bool | str] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def gpus(self) -> Bool:
        """Devices of drivers of GPUs (D,)."""
        return np.array([is_gpu(driver) for driver, _, _ in self.ids], dtype=bool)

    @cached_property
    def attributes(self) -> list[dict[str, tuple[str, str]]]:
        return [
            {qualified(each.name, name[0]): (each.kind, each.value) for each in device.attributes}
            for name, device in zip(self.ids, self._devices, strict=True)
        ]

    @cached_property
    def _faces(self) -> tuple[list[Face], I32]:
        """How devices look to selectors, each look once, and which of these each device has (D,)."""
        known: dict[Face, int] = {}
        which = [
            known.setdefault(face_of(name[0], attributes, dict(device.capacity)), len(known))
            for name, attributes, device in zip(self.ids, self.attributes, self._devices, strict=True)
        ]
        return list(known), np.array(which, dtype=np.int32)

    def matching(self, option: DeviceOption) -> Bool | str:
        """Devices that are as an option of a request wants them (D,), or why none ever can be."""
        found = self._matching.get(option)
        if found is None:
            found = self._matching[option] = self._match(option)
        return found

    def _match(self, option: DeviceOption) -> Bool | str:
        of_class = self._classes.get(option.device_class)
        if of_class is None:
            return f"device class {option.device_class} does not exist"
        try:
            for selector in (*of_class.selectors, *option.selectors):
                check(selector)
        except SelectorError as error:
            return str(error)
        faces, which = self._faces
        selected = np.array([_holds((*of_class.selectors, *option.selectors), face) for face in faces], dtype=bool)
        usable = [not each.unknown and not _kept_off(each.taints, option) for each in self._devices]
        return np.array(usable, dtype=bool) & selected[which] if len(self) else np.zeros(0, dtype=bool)


def offers_of(ssn: Session) -> Offers:
    """Those of a session, kept for as long as neither slices, classes nor nodes change."""
    tables = ssn.tables
    rests_on = (tables.slices.version, tables.device_classes.version, tables.nodes.facts.version)

    def build() -> Offers:
        classes = {each.name: each for each in tables.device_classes.objs}
        return Offers(derived(ssn), list(tables.slices.objs), classes)

    return ssn.memo.get(("offers of devices",), rests_on, build)


def qualified(attribute: str, driver: str) -> str:
    """The name of an attribute with its domain, which is the driver's where none is written."""
    return attribute if "/" in attribute else f"{driver}/{attribute}"


def _that_count(slices: list[ResourceSlice]) -> list[ResourceSlice]:
    """Of each pool the slices of its last generation, where all of them are there."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        pools[each.driver, each.pool].append(each)
    found = []
    for of_pool in pools.values():
        last = max(each.generation for each in of_pool)
        newest = [each for each in of_pool if each.generation == last]
        if len(newest) >= newest[0].slice_count:
            found += newest
    return found


def _selected(facts: Derived, each: ResourceSlice) -> Bool:
    found = np.full(len(facts), not each.nodes)
    for term in each.nodes:
        found |= node_term(facts, term)
    return found


def _holds(selectors: tuple[str, ...], face: Face) -> bool:
    """Whether all of them hold; what has no answer for a device does not hold for it."""
    try:
        return all(selects(selector, face) for selector in selectors)
    except SelectorError:
        return False


def _kept_off(taints: tuple[DeviceTaint, ...], option: DeviceOption) -> bool:
    return any(
        taint.effect in _KEEPS_OFF
        and not any(tolerates(each, Taint(taint.key, taint.value, taint.effect)) for each in option.tolerations)
        for taint in taints
    )
