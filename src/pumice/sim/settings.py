"""Settings and observers of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from pumice.runtime.record.recorder import Recorder
from pumice.sim.measures.window import ALWAYS, Window
from pumice.sim.shell import Began
from pumice.sim.world import CIRCLES_MAX, Progress

if TYPE_CHECKING:
    from pumice.sim.faults import FaultPlan


class SimSettings(Struct, frozen=True):
    """Settings that decide how a scene continues, whatever the policy. Times are in seconds.

    It runs from ``start`` by the simulation's clock, for at most ``until``, with at most one cycle per ``period_s``.
    ``window``: what figures are about. ``seed``: of ``faults``, and of moving every arrival by up to ``shake_s``.
    ``check_laws``: check the safety laws after every event, which is slow. ``circles_max``: end after this many cycles
    that decide something while no job arrives or ends. ``try_alone`` False: do not run each job that waits at the end
    on an empty cluster (a simulation each), and find none impossible. ``awaited``: end as soon as all of these jobs
    have started; empty: do not. ``estimates_hold``: every job ends by its estimate, so that reservations can be checked
    with the laws. ``asks_why`` False: do not ask in each cycle why jobs wait, which takes more than half of the time of
    a crowded simulation; then ``Run`` has no sums of it.
    """

    start: float = 0.0
    until: float | None = None
    period_s: float = 1.0
    window: Window = ALWAYS
    seed: int = 0
    shake_s: float = 0.0
    faults: FaultPlan | None = None
    check_laws: bool = False
    circles_max: int = CIRCLES_MAX
    try_alone: bool = True
    awaited: frozenset[str] = frozenset()
    estimates_hold: bool = False
    asks_why: bool = True


def _no_clock() -> float:
    """Measure no time."""
    return 0.0


class Observers(Struct, frozen=True):
    """Functions to call while a simulation runs. They change no decision.

    ``event``: with every event as a plain mapping. ``began``: with what each cycle begins with. ``progress``: after
    each cycle. ``clock``: returns real seconds, for ``Run.wall_s`` only, because a simulation reads no clock itself.
    ``recorder``: given what every cycle is given.
    """

    progress: Callable[[Progress], object] | None = None
    event: Callable[[Mapping[str, object]], object] | None = None
    began: Began | None = None
    clock: Callable[[], float] = _no_clock
    recorder: Recorder | None = None


#: From 0 to the end, one cycle per second, no faults.
PLAIN = SimSettings()
NO_OBSERVERS = Observers()
