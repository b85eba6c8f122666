"""Devices in ResourceSlices, as rows, and which of them satisfy a request.

There are D rows. Devices of one node are adjacent, in the order of their pools and slices, in which they are allocated.
Source: Kubernetes structured allocator (which slices of a pool count).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from pumice.algorithms.cel import Face, SelectorError, face_of, lookups_of, narrowed, selects_narrowed, steps_of
from pumice.algorithms.cel_tree import Lookup
from pumice.columns.dtypes import I32, Bool
from pumice.framework.cycle.session import Session
from pumice.model.devices.capacity import most_shares
from pumice.model.devices.claims import Device, DeviceClass, DeviceOption, DeviceTaint, ResourceSlice, slices_that_count
from pumice.model.devices.gpu import is_gpu
from pumice.model.node import Taint
from pumice.placing.claims.consumption import Consumption
from pumice.placing.claims.counters import Counters
from pumice.placing.derived import Derived, derived
from pumice.placing.filters.nodes import node_term, tolerates

_KEEPS_OFF = ("NoSchedule", "NoExecute")

#: What it costs to compile a selector, and how many devices are compared for the price of evaluating one.
_COMPILES, _NARROWED = 10, 4

#: Identity of a device: driver, pool, name.
DeviceId = tuple[str, str, str]


class Offers:
    """The devices that nodes offer.

    ``ids`` and ``row_of``: identities of devices. ``node`` (D,): the node that each is on, or -1 if several can use it;
    then ``near`` has these nodes (N,) by row. ``of_node``: rows by node, without those. ``attributes``: of each device
    by name, as (kind, text). ``consumption``: what giving them consumes. A device that can be given several times has a
    row for each share; ``row_of`` has the first. ``node_count``: how many nodes there are.
    """

    def __init__(self, facts: Derived, slices: list[ResourceSlice], classes: Mapping[str, DeviceClass]) -> None:
        self._classes = classes
        self.ids: list[DeviceId] = []
        self._devices: list[Device] = []
        nodes: list[int] = []
        first: list[int] = []
        self.near: dict[int, Bool] = {}
        row_of = facts.facts.row_of
        # By node first, so that the devices of a node are adjacent rows.
        counted = slices_that_count(slices)
        in_order = sorted(counted, key=lambda e: (row_of.get(e.node_name, -1), e.pool, e.name))
        for each in in_order:
            # Slices may outlive their node for a while.
            if each.node_name and each.node_name not in row_of:
                continue
            for device in each.devices:
                begins = len(self.ids)
                for row in range(begins, begins + most_shares(device)):
                    if not each.node_name:
                        self.near[row] = _selected(facts, each)
                    nodes.append(row_of.get(each.node_name, -1))
                    self.ids.append((each.driver, each.pool, device.name))
                    self._devices.append(device)
                    first.append(begins)
        uses = [(*name[:2], device.consumes) for name, device in zip(self.ids, self._devices, strict=True)]
        self.counters = Counters(counted, uses)
        self.consumption = Consumption(self.counters, self._devices, first)
        self.node: I32 = np.array(nodes, dtype=np.int32)
        self.row_of: dict[DeviceId, int] = {}
        # If two slices list the same device, the first one counts.
        for row, name in enumerate(self.ids):
            self.row_of.setdefault(name, row)
        self.of_node: dict[int, list[int]] = defaultdict(list)
        for row, node in enumerate(nodes):
            if node >= 0:
                self.of_node[node].append(row)
        self._matching: dict[DeviceOption, Bool | str] = {}
        self._narrowed: dict[frozenset[Lookup] | None, tuple[list[Face], I32]] = {}
        self._agreeing: dict[str, I32] = {}
        self.node_count = len(facts)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def gpus(self) -> Bool:
        """Devices of GPU drivers. Shape (D,)."""
        return np.array([is_gpu(driver) for driver, _, _ in self.ids], dtype=bool)

    @cached_property
    def attributes(self) -> list[dict[str, tuple[str, str]]]:
        return [
            {qualified(each.name, name[0]): (each.kind, each.value) for each in device.attributes}
            for name, device in zip(self.ids, self._devices, strict=True)
        ]

    @cached_property
    def placed(self) -> I32:
        """The devices that can be used on each node, in order, and -1 after the last one. Shape (N, most of a node)."""
        near = [list[int]() for _ in range(self.node_count)]
        for row, nodes in self.near.items():
            for node in nodes.nonzero()[0].tolist():
                near[node].append(row)
        of_node = [[*self.of_node.get(node, ()), *rows] for node, rows in enumerate(near)]
        # One table and no lists, so that a search over thousands of nodes takes what it needs of all of them in one
        # step.
        found = np.full((self.node_count, max(map(len, of_node), default=0)), -1, dtype=np.int32)
        for node, rows in enumerate(of_node):
            found[node, : len(rows)] = rows
        return found

    def agreeing(self, attribute: str) -> I32:
        """Return for each device in ``placed`` the position of the first one of its node that has the same value of an
        attribute, or -1 if it has none. Shape as ``placed``."""
        found = self._agreeing.get(attribute)
        if found is None:
            found = self._agreeing[attribute] = np.full_like(self.placed, -1)
            values = [self.value_of(attribute, row) for row in range(len(self))]
            # Nothing to look at, whatever a tenant calls an attribute.
            for node, rows in enumerate(self.placed.tolist() if any(each is not None for each in values) else ()):
                first: dict[tuple[str, str], int] = {}
                for at, row in enumerate(rows):
                    if row >= 0 and (value := values[row]) is not None:
                        found[node, at] = first.setdefault(value, at)
        return found

    def value_of(self, attribute: str, row: int) -> tuple[str, str] | None:
        """Return the value of an attribute of a device, or None."""
        return self.attributes[row].get(qualified(attribute, self.ids[row][0]))

    @cached_property
    def _faces(self) -> tuple[list[Face], I32]:
        """The distinct sets of attributes and capacity, and the index of each device's set. Shape (D,)."""
        # Thousands of devices have a few distinct sets, and a CEL expression is evaluated once for each set.
        known: dict[Face, int] = {}
        which = [
            known.setdefault(face_of(name[0], attributes, dict(device.capacity)), len(known))
            for name, attributes, device in zip(self.ids, self.attributes, self._devices, strict=True)
        ]
        return list(known), np.array(which, dtype=np.int32)

    def matching(self, option: DeviceOption) -> Bool | str:
        """Return the devices that satisfy an option of a request (D,), or why none ever can."""
        found = self._matching.get(option)
        if found is None:
            found = self._matching[option] = self._match(option)
        return found

    def _match(self, option: DeviceOption) -> Bool | str:
        """Return the devices that satisfy an option (D,), or why none ever can."""
        of_class = self._classes.get(option.device_class)
        if of_class is None:
            return f"device class {option.device_class} does not exist"
        # Without repetitions: a tenant may write one selector many times, and each costs an evaluation per kind of
        # device.
        selectors = dict.fromkeys((*of_class.selectors, *option.selectors))
        # Checked first, so that an invalid expression is reported and not mistaken for one that is false.
        try:
            lookups = [lookups_of(selector) for selector in selectors]
        except SelectorError as error:
            return str(error)
        # A device with fields that are not supported here may have conditions that would be broken, so it is never
        # given.
        usable = [not each.unknown and not _kept_off(each.taints, option) for each in self._devices]
        found = np.array(usable, dtype=bool)
        if option.capacity or self.consumption.width:
            first = self.consumption.first
            serves = {row: self._serves(row, option) for row in dict.fromkeys(first.tolist())}
            found &= np.array([serves[row] for row in first.tolist()], dtype=bool)
        for selector, looks_at in zip(selectors, lookups, strict=True):
            faces, which = self._faces_by(looks_at)
            if len(self):
                found &= np.array([_holds(selector, face) for face in faces], dtype=bool)[which]
        return found

    def _serves(self, row: int, option: DeviceOption) -> bool:
        """Return True if a device that nothing has been taken of has what an option asks of its capacities."""
        return self.consumption.amounts(row, option.capacity) is not None

    def looks(self, option: DeviceOption, counted: set[object]) -> tuple[int, int]:
        """Return the steps of finding the devices of an option: as if each evaluation of a selector took one, and those
        that costly ones take beside. ``counted``: what was counted before, and costs nothing again."""
        of_class = self._classes.get(option.device_class)
        steps = beside = 0
        for selector in (*of_class.selectors, *option.selectors) if of_class is not None else ():
            if selector in counted:
                continue
            counted.add(selector)
            steps += _COMPILES
            try:
                looks_at = lookups_of(selector)
            except SelectorError:
                continue
            if (len(self), looks_at) not in counted:
                counted.add((len(self), looks_at))
                steps += len(self._faces[0]) // _NARROWED
            faces = len(self._faces_by(looks_at)[0])
            steps += faces
            beside += faces * (steps_of(selector) - 1)
        return steps, beside

    def _faces_by(self, looks_at: frozenset[Lookup] | None) -> tuple[list[Face], I32]:
        """Return the devices as expressions see them that look at so much, and the index of each. Shape (D,)."""
        found = self._narrowed.get(looks_at)
        if found is None:
            faces, which = self._faces
            known: dict[Face, int] = {}
            of_face = [known.setdefault(narrowed(face, looks_at), len(known)) for face in faces]
            found = self._narrowed[looks_at] = list(known), np.array(of_face, dtype=np.int32)[which]
        return found


def offers_of(ssn: Session) -> Offers:
    """Return the devices on offer, cached while slices, classes and nodes are unchanged."""
    tables = ssn.tables
    rests_on = (tables.slices.version, tables.device_classes.version, tables.nodes.facts.version)

    def build() -> Offers:
        classes = {each.name: each for each in tables.device_classes.objs}
        return Offers(derived(ssn), list(tables.slices.objs), classes)

    return ssn.memo.get(("offers of devices",), rests_on, build)


def qualified(attribute: str, driver: str) -> str:
    """Return the name of an attribute with its domain, which is the driver's if none is written."""
    return attribute if "/" in attribute else f"{driver}/{attribute}"


def _selected(facts: Derived, each: ResourceSlice) -> Bool:
    """Return the nodes that can use the devices of a slice. Shape (N,)."""
    # A slice without node terms is for all nodes.
    found = np.full(len(facts), not each.nodes)
    for term in each.nodes:
        found |= node_term(facts, term)
    return found


def _holds(selector: str, face: Face) -> bool:
    """Return True if a selector is true of a narrowed device. One that fails for a device counts as false."""
    try:
        return selects_narrowed(selector, face)
    except SelectorError:
        return False


def _kept_off(taints: tuple[DeviceTaint, ...], option: DeviceOption) -> bool:
    """Return True if a taint of a device is not tolerated."""
    return any(
        taint.effect in _KEEPS_OFF
        and not any(tolerates(each, Taint(taint.key, taint.value, taint.effect)) for each in option.tolerations)
        for taint in taints
    )
