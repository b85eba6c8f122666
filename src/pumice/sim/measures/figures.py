"""Exact sums over the measured time. Pictures are thinned (``sim.measures.series``); figures come from here."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.model.queue import Queue
from pumice.sim.measures.crowd import Crowd
from pumice.sim.measures.fairness import Fairness
from pumice.sim.measures.window import Window


class Amount:
    """An amount over time. ``area``: its integral. ``crowded_area``: the integral while a job had waited too long.
    ``peak``: the largest value that held for any time."""

    __slots__ = ("area", "crowded_area", "peak", "value")

    def __init__(self) -> None:
        self.value = self.area = self.crowded_area = self.peak = 0.0

    def pass_time(self, seconds: float, crowded_s: float) -> None:
        value = self.value
        self.area += value * seconds
        self.crowded_area += value * crowded_s
        self.peak = max(self.peak, value)


class Figures:
    """Capacity and use by resource, and shares of queues. The owner changes them and says when time passes."""

    def __init__(self, start: float, queues: Mapping[str, Queue], window: Window, prompt_s: float) -> None:
        self.window = window
        self.at = start
        self.seconds = 0.0  # of the window that have passed
        self.crowded_s = 0.0  # of these, while a job had waited longer than ``prompt_s``
        self.capacity: dict[str, Amount] = {}  # by resource
        self.used: dict[str, Amount] = {}  # by resource
        self.fairness = Fairness(queues)
        self.crowd = Crowd(start, prompt_s, window)

    def pass_time(self, now: float) -> None:
        """Advance to ``now``. Everything that changed since the last call was recorded at its time."""
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
    """Return the amount of a resource, 0 at first."""
    found = table.get(resource)
    if found is None:
        found = table[resource] = Amount()
    return found
