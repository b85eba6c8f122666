"""Exact sums over the time that is measured. Pictures are thinned (``sim.series``); figures come from here."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.model.queue import Queue
from pumice.sim.measures.crowd import Crowd
from pumice.sim.measures.fairness import Fairness
from pumice.sim.measures.window import Window


class Amount:
    """One amount over time. ``area``: its integral; ``crowded_area``: that while somebody had waited too long;
    ``peak``: the largest that held for a time."""

    __slots__ = ("area", "crowded_area", "peak", "value")

    def __init__(self) -> None:
        self.value = self.area = self.crowded_area = self.peak = 0.0

    def pass_time(self, seconds: float, crowded_s: float) -> None:
        value = self.value
        self.area += value * seconds
        self.crowded_area += value * crowded_s
        self.peak = max(self.peak, value)


class Figures:
    """Capacity and use by resource, and the shares of queues; changed by their owner, who says when time passes."""

    def __init__(self, start: float, queues: Mapping[str, Queue], window: Window, patience_s: float) -> None:
        self.window = window
        self.patience_s = patience_s
        self.at = start
        self.seconds = 0.0  # of the window that have passed
        self.crowded_s = 0.0  # of these, with somebody who had waited longer than patience_s
        self.capacity: dict[str, Amount] = {}  # by resource
        self.used: dict[str, Amount] = {}  # by resource
        self.fairness = Fairness(queues)
        self.crowd = Crowd(start, patience_s, window)

    def pass_time(self, now: float) -> None:
        """It is ``now``, and nothing has changed since the last call but what was told at its moment."""
        seconds, crowded_s = self.window.overlap(self.at, now), self.crowd.seconds(now)
        self.at = now
        if seconds <= 0:
            return
        self.seconds += seconds
        self.crowded_s += crowded_s
        for table in (self.capacity, self.used):
            for amount in table.values():
                amount.pass_time(seconds, crowded_s)
        self.fairness.pass_time(seconds)


def amount_of(table: dict[str, Amount], resource: str) -> Amount:
    """The amount of a resource, 0 until somebody says otherwise."""
    found = table.get(resource)
    if found is None:
        found = table[resource] = Amount()
    return found
