"""Devices that no claim holds, and how many of them each node has.

A device that is given changes the count of its node alone, so counts are carried on and not made again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.dtypes import F64, I64, Bool
from pumice.model.devices.claims import DeviceOption
from pumice.placing.claims.offers import Offers


class FreeDevices:
    """Devices that no claim holds ``now``, and those that no claim will hold when all leaving pods are gone. Shapes
    (D,). ``left`` and ``left_soon``: of what devices consume (K,).

    It is a value, which is replaced when a device moves.
    """

    __slots__ = ("_counts", "_offers", "left", "left_soon", "now", "soon")

    def __init__(self, offers: Offers, now: Bool, soon: Bool, left: F64, left_soon: F64) -> None:
        self._offers, self.now, self.soon, self.left, self.left_soon = offers, now, soon, left, left_soon
        self._counts: dict[tuple[DeviceOption, bool], I64] = {}

    @property
    def is_settled(self) -> bool:
        """True if nothing is being left and nothing is consumed: a device that is given is no longer free, and nothing
        else changes."""
        return self.now is self.soon and not self._offers.consumption

    def on_nodes(self, option: DeviceOption, *, soon: bool) -> I64:
        """Return how many devices each node has for an option that some device can match. Shape (N,). Read-only."""
        devices = self.soon if soon else self.now
        # While nothing is being left, both questions have one answer.
        key = option, devices is not self.now
        found = self._counts.get(key)
        if found is None:
            found = self._counts[key] = self._counted(_matching(self._offers, option) & devices)
        return found

    def _counted(self, usable: Bool) -> I64:
        """Return how many of some devices each node has. Shape (N,)."""
        offers = self._offers
        there = offers.node[usable]
        found: I64 = np.bincount(there[there >= 0], minlength=offers.node_count)
        # Devices that several nodes can use are few, and are added one by one.
        for device, near in offers.near.items():
            if usable[device]:
                found = found + near
        return found

    def without(self, now: Bool, given: Sequence[int]) -> FreeDevices:
        """Return what is free after devices were ``given``, which leaves ``now``. Requires ``is_settled``."""
        found = FreeDevices(self._offers, now, now, self.left, self.left_soon)
        # One that several nodes can use is one less on each of them, so all are counted anew.
        if not self._offers.near:
            nodes = self._offers.node[given]
            # Copies, because the counts before may be in use.
            for key, count in self._counts.items():
                found._counts[key] = count.copy()
                np.subtract.at(found._counts[key], nodes, _matching(self._offers, key[0])[given])
        return found


def _matching(offers: Offers, option: DeviceOption) -> Bool:
    """Return the devices that satisfy an option. Shape (D,)."""
    found = offers.matching(option)
    assert not isinstance(found, str), "no device can match the option"
    return found
