"""The time that figures are about: without a warm-up, in which the cluster fills, and without a cool-down."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from pumice.sim.workloads.work import Work


class WindowError(ValueError):
    """A warm-up and a cool-down leave nothing to measure."""


class Window(Struct, frozen=True):
    """From ``begin`` to ``end`` by the simulation's clock.

    Jobs count that arrive in it, and are followed beyond its end. Means over time are over the part that was simulated.
    """

    begin: float = -math.inf
    end: float = math.inf

    def overlap(self, since: float, until: float) -> float:
        """Return the seconds of the window between two times."""
        return max(min(until, self.end) - max(since, self.begin), 0.0)

    def __contains__(self, moment: float) -> bool:
        return self.begin <= moment <= self.end


ALWAYS = Window()


def window_of(
    works: Iterable[Work], *, start: float, until: float | None, warm_up_s: float | None, cool_down_s: float | None
) -> Window:
    """Return the window from ``warm_up_s`` after the start to ``cool_down_s`` before the last arrival, or before
    ``until`` if that is earlier: after it the cluster only empties. None leaves that side open.

    Raises: WindowError if nothing is left.
    """
    last = max((work.arrival_s for work in works), default=0.0)
    if until is not None:
        last = min(last, until)
    begin = -math.inf if warm_up_s is None else start + warm_up_s
    end = math.inf if cool_down_s is None else start + last - cool_down_s
    if max(begin, start) >= min(end, start + last):
        given = {"warm-up": warm_up_s, "cool-down": cool_down_s}
        named = " and ".join(f"a {name} of {length:,.10g} s" for name, length in given.items() if length is not None)
        raise WindowError(f"found {named}, which leaves no time to measure: the last job arrives at {last:,.10g} s")
    return Window(begin, end)
