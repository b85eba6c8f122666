"""Counters that devices of a pool consume together: the memory of a GPU, say, that is offered whole and in partitions.

A device can be given only if each counter that it consumes has enough left. What is left follows from the devices that
are held, so nothing beside the free devices is kept. Source: KEP-4815 (partitionable devices).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from pumice.columns.dtypes import F64, I32, Bool
from pumice.model.devices.claims import CounterUse, ResourceSlice

#: What one device consumes: pairs of a counter and an amount.
Consumed = tuple[tuple[int, float], ...]

_Uses = tuple[str, str, tuple[CounterUse, ...]]

# Less than any device consumes: a counter that no slice of the pool defines is never enough.
_UNDEFINED = -1.0


class Counters:
    """The counters of all pools, K in number. ``of_device``: what each device consumes, by row.

    Made of slices, and of driver, pool and uses of each device.
    """

    def __init__(self, slices: Iterable[ResourceSlice], devices: Iterable[_Uses]) -> None:
        number: dict[tuple[str, str, str, str], int] = {}
        totals: list[float] = []
        for each in slices:
            for use in each.counters:
                key = each.driver, each.pool, use.counter_set, use.counter
                # If two slices define the same counter, the first one counts, as with devices.
                if key not in number:
                    number[key] = len(totals)
                    totals.append(use.amount)
        self.of_device: list[Consumed] = []
        for driver, pool, uses in devices:
            consumed = []
            for use in uses:
                key = driver, pool, use.counter_set, use.counter
                if key not in number:
                    number[key] = len(totals)
                    totals.append(_UNDEFINED)
                consumed.append((number[key], use.amount))
            self.of_device.append(tuple(consumed))
        # As arrays beside the tuples: what is left is asked for anew whenever a device moves, over all pools.
        self._totals: F64 = np.array(totals, dtype=np.float64)
        entries = [(row, each, amount) for row, consumed in enumerate(self.of_device) for each, amount in consumed]
        self._rows: I32 = np.array([row for row, _, _ in entries], dtype=np.int32)
        self._which: I32 = np.array([each for _, each, _ in entries], dtype=np.int32)
        self._amounts: F64 = np.array([amount for _, _, amount in entries], dtype=np.float64)

    def __len__(self) -> int:
        return len(self._totals)

    def __bool__(self) -> bool:
        """Return True if any device consumes counters."""
        return len(self._rows) > 0

    @cached_property
    def users(self) -> Bool:
        """The devices that consume counters. Shape (D,)."""
        return np.array([bool(each) for each in self.of_device], dtype=bool)

    def left(self, free: Bool) -> F64:
        """Return what is left of each counter if the devices that are not ``free`` (D,) are held. Shape (K,)."""
        taken = ~free[self._rows] if len(self._rows) else np.zeros(0, dtype=bool)
        return self._totals - np.bincount(self._which[taken], self._amounts[taken], len(self._totals))

    def looks(self, devices: Iterable[int], left: F64) -> bytes:
        """Return what a search on a node sees of counters: equal bytes, equal search. ``devices``: those of the node.

        Counters are named by their order on the node, so that equal nodes look equal.
        """
        # Exact amounts and no ranks, because answers of a search are kept under these bytes and looked up later, when
        # the rank may mean another amount.
        local: dict[int, int] = {}
        uses = []
        for device in devices:
            uses.append(tuple((local.setdefault(each, len(local)), amount) for each, amount in self.of_device[device]))
        return repr((uses, [float(left[each]) for each in local])).encode()
