"""How a simulation goes, and who is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from pumice.sim.measures.window import ALWAYS, Window
from pumice.sim.shell import Began
from pumice.sim.world import CIRCLES_MAX, Progress

if TYPE_CHECKING:
    from pumice.sim.faults import FaultPlan


class SimSettings(Struct, frozen=True):
    """What decides how a scene goes on, whatever the policy; times in seconds.

    From ``start`` by the simulation's clock, for ``until`` at most; ``period_s``: at most one cycle in so long.
    ``window``: what figures are about. ``seed`` rolls the dice of ``faults``, and those that move every arrival by up
    to ``shake_s``. ``check_laws`` checks the safety laws after every event: slow. ``circles_max``: it ends after so
    many cycles that decide something while no job comes or ends. ``try_alone`` False does not run each job that waits
    at the end on an empty cluster, a simulation each, and finds none impossible.
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


def _no_clock() -> float:
    """Nobody wants to know how long it took."""
    return 0.0


class Observers(Struct, frozen=True):
    """Who is told what while a simulation runs; nothing of it changes a decision.

    ``event`` gets every event as a plain mapping, ``began`` what each cycle begins with, ``progress`` how far it is
    after it. ``clock`` gives real seconds, for ``Run.wall_s`` only: a simulation reads no clock of its own.
    """

    progress: Callable[[Progress], object] | None = None
    event: Callable[[Mapping[str, object]], object] | None = None
    began: Began | None = None
    clock: Callable[[], float] = _no_clock


#: From 0 to the end, once a second, without faults.
PLAIN = SimSettings()
NOBODY = Observers()
