"""What claims consume beside devices: counters of their pools, and capacities of devices that are shared.

A device that several claims share is as many rows as it can have shares, all equal. What is left of its capacities says
how many of them can be given. Source: KEP-4815 (partitionable devices), KEP-5075 (consumable capacity).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pumice.columns.dtypes import F64, I32, Bool
from pumice.model.devices.capacity import consumption
from pumice.model.devices.claims import Amounts, Device
from pumice.placing.claims.counters import Consumed, Counters


class Consumption:
    """Amounts of which the devices of claims consume, K in number: first ``counters``, then capacities of shared
    devices.

    ``first`` (D,): the first row of each device. ``shared`` (D,): rows that are shares. ``width``: the most capacities
    of a shared device; the amounts of a share are so many numbers, in the order of its device's capacities.
    """

    def __init__(self, counters: Counters, devices: Sequence[Device], first: Sequence[int]) -> None:
        self.counters, self._devices = counters, devices
        self.first: I32 = np.array(first, dtype=np.int32)
        self.shared: Bool = np.array([each.multiple for each in devices], dtype=bool)
        self.width = max((len(each.capacity) for each in devices if each.multiple), default=0)
        # The position of each capacity of a share among all, one after the last for those that it does not have.
        start = len(counters)
        totals: list[float] = []
        positions: dict[int, list[int]] = {}
        for row in np.flatnonzero(self.shared & (self.first == np.arange(len(devices)))).tolist():
            amounts = [amount for _, amount in devices[row].capacity]
            positions[row] = list(range(start + len(totals), start + len(totals) + len(amounts)))
            totals += amounts
        self._positions = positions
        self._totals: F64 = np.array(totals, dtype=np.float64)
        self._at: I32 = np.full((len(devices), self.width), len(totals), dtype=np.int32)
        for row in np.flatnonzero(self.shared).tolist():
            at = positions[int(self.first[row])]
            self._at[row, : len(at)] = np.array(at, dtype=np.int32) - start
        self._known: dict[tuple[int, Amounts], Amounts | None] = {}

    def __bool__(self) -> bool:
        """Return True if devices consume anything."""
        return bool(self.counters) or bool(self.shared.any())

    @property
    def users(self) -> Bool:
        """The devices that consume something. Shape (D,)."""
        return self.counters.users | self.shared

    def amounts(self, row: int, asked: Amounts) -> Amounts | None:
        """Return what a request consumes of a device's capacities, by name, or None if the device cannot serve it."""
        # By device: the same few requests are asked about for every search on its node.
        key = int(self.first[row]), asked
        if key not in self._known:
            self._known[key] = consumption(self._devices[row], asked)
        return self._known[key]

    def of(self, row: int, asked: Amounts) -> Consumed:
        """Return what giving a device to a request consumes."""
        if not self.shared[row]:
            return self.counters.of_device[row]
        amounts = self.amounts(row, asked) or ()
        return tuple(zip(self._positions[int(self.first[row])], (amount for _, amount in amounts), strict=False))

    def vector(self, row: int, amounts: Amounts | None) -> list[float]:
        """Return amounts of a share as numbers. Shape (width,). None: all that its device has."""
        known = dict(self._devices[row].capacity) if amounts is None else dict(amounts)
        found = [known.get(name, 0.0) for name, _ in self._devices[row].capacity]
        return found + [0.0] * (self.width - len(found))

    def left(self, free: Bool, taken: F64 | None = None) -> F64:
        """Return what is left of each amount if the devices that are not ``free`` (D,) are held. ``taken``
        (D, width): what each share consumes that is held, None for nothing. Shape (K,)."""
        counters, capacities = self.counters.left(free), self._totals
        # Most clusters share no devices, and their counters say all.
        if taken is not None and self.width:
            held = self.shared & ~free
            used = np.bincount(self._at[held].ravel(), taken[held].ravel(), len(capacities) + 1)
            capacities = capacities - used[:-1]
        return np.concatenate((counters, capacities))

    def looks(self, devices: Iterable[int], left: F64) -> bytes:
        """Return what a search on a node sees of amounts: equal bytes, equal search. ``devices``: those of the node."""
        rows = list(devices)
        found = self.counters.looks(rows, left)
        if not self.width:
            return found
        # Of each shared device once. Capacity and policies beside what is left: they decide what a request consumes.
        shares = [
            (self._devices[row].capacity, self._devices[row].policies, [float(left[at]) for at in self._positions[row]])
            for row in rows
            if row in self._positions
        ]
        return found + repr(shares).encode()
