"""The main loop of a simulation: it moves the clock from event to event, and runs a cycle when something has changed.

A cycle runs at most once per schedule period; a change within the period waits for its end. Of the scheduler's own
writes, only the phase of a PodGroup is a change. Source: Volcano runs a cycle each ``--schedule-period`` (1 s). Cycles
that could not decide differently are left out here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from pumice.model.decisions import Decision
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.measures.history import History
from pumice.sim.workloads.work import Work

#: Cycles that decide something while no job arrives or ends. With more, the scheduler goes in circles.
CIRCLES_MAX = 1_000

#: Cycles that only a plugin's clock woke, with nothing left to happen and nothing decided. Hours that open and close
#: would wake it forever, and jobs that so many of them did not help will not be helped.
CLOCK_ONLY_MAX = 100


class CycleReport(Struct, frozen=True):
    """What a cycle did. ``decisions``: those that were carried out. ``wake_at``: run again at this time even if nothing
    happens (for a policy that waits for a time)."""

    decisions: Sequence[Decision] = ()
    wake_at: float | None = None


#: Runs one scheduling cycle at a time: drains the cluster, decides, and carries out.
CycleFn = Callable[[float], CycleReport]


class Progress(NamedTuple):
    """How far a simulation is, for the observer after each cycle."""

    now: float
    cycles: int
    jobs: int
    ended: int
    waiting: int
    running: int


class Ending(StrEnum):
    """Why a simulation stopped."""

    DONE = "done"  # nothing is left to happen
    STUCK = "stuck"  # the same, and jobs wait for ever
    UNTIL = "until"
    INTERRUPTED = "interrupted"
    CIRCLES = "circles"  # the scheduler decides for ever and gets nowhere


class SimResult(Struct, frozen=True):
    """The end of a simulation. ``pending`` jobs never ran, ``unfinished`` ones ran and have not ended, ``to_come`` have
    not arrived; all in order of arrival. ``waiting``: all that have arrived and do not run, including those that were
    broken up. ``gone``: those of them that ran and whose evicted pods are not created again."""

    ending: Ending
    start: float
    now: float
    cycles: int
    jobs: int
    completed: int
    pending: tuple[str, ...]
    unfinished: tuple[str, ...]
    waiting: tuple[str, ...]
    gone: tuple[str, ...]
    to_come: tuple[Work, ...]
    binds: int
    evictions: int
    events: int
    history: History
    problems: tuple[str, ...]

    @property
    def simulated_s(self) -> float:
        return self.now - self.start

    @property
    def running(self) -> tuple[str, ...]:
        """Jobs whose gang runs at the end."""
        waiting = frozenset(self.waiting)
        return tuple(key for key in self.unfinished if key not in waiting)

    @property
    def broken(self) -> tuple[str, ...]:
        """Jobs that ran, were broken up, and wait to run again."""
        others = frozenset((*self.running, *self.gone))
        return tuple(key for key in self.unfinished if key not in others)


class Simulation:
    """A cluster, its controller and a scheduler on one clock.

    ``after_event`` and ``after_cycle`` are for checks (``sim.laws``): called after every event, and after every cycle
    with its decisions. ``circles_max``: cycles that decide something while no job arrives or ends. ``awaited``: jobs
    after whose last start it ends.
    """

    def __init__(
        self,
        cluster: SimCluster,
        controller: Controller,
        cycle_fn: CycleFn,
        *,
        period_s: float = 1.0,
        history: History | None = None,
        after_event: Callable[[], object] | None = None,
        after_cycle: Callable[[Sequence[Decision]], object] | None = None,
        circles_max: int = CIRCLES_MAX,
        awaited: Collection[str] = (),
    ) -> None:
        if not period_s > 0:
            raise ValueError(f"schedule period: found {period_s}, wanted more than 0 seconds")
        self.cluster = cluster
        self.controller = controller
        self.engine = cluster.engine
        self.cycle_fn = cycle_fn
        self.period_s = period_s
        self.history = history if history is not None else History(cluster, controller)
        self.start = self.engine.now
        self.cycles = 0
        self.circles_max = circles_max
        self._after_event = after_event
        self._after_cycle = after_cycle
        self._earliest = self.start  # no cycle before
        self._again = False  # the last cycle decided something, was refused something, or wrote a phase
        self._wake_at: float | None = None
        self._moved = (0, 0)
        self._vain_cycles = 0
        self._clock_only_cycles = 0
        self._awaited = set(awaited)
        if awaited:
            controller.hooks.started.append(lambda run: self._awaited.discard(run.key))
        self._ends_early = bool(awaited)

    def run(self, until: float | None = None, observe: Callable[[Progress], object] | None = None) -> SimResult:
        """Run until nothing is left to happen, or for ``until`` seconds. Ctrl-C ends it with the results so far."""
        horizon = None if until is None else self.start + until
        try:
            ending = self._run(horizon, observe)
        except KeyboardInterrupt:
            ending = Ending.INTERRUPTED
        self.history.tick()
        if ending == Ending.DONE and any(run.ended is None and not run.whole for run in self.controller.live.values()):
            ending = Ending.STUCK
        return self._result(ending)

    def progress(self) -> Progress:
        """Return the present progress."""
        history, controller = self.history, self.controller
        return Progress(
            self.engine.now,
            self.cycles,
            controller.submitted_count,
            controller.ended_count,
            int(history.waiting.value),
            int(history.running.value),
        )

    def _run(self, horizon: float | None, observe: Callable[[Progress], object] | None) -> Ending:
        while (moment := self._next_moment()) is not None:
            if horizon is not None and moment > horizon:
                self.history.tick()
                self.engine.advance(horizon)
                return Ending.UNTIL
            if moment > self.engine.now:
                self.history.tick()
            self.engine.advance(moment, self._after_event)
            if self._ends_early and not self._awaited:
                return Ending.UNTIL
            if self._next_cycle() == moment:
                self._cycle(moment)
                if observe is not None:
                    observe(self.progress())
                if self._decides_in_circles():
                    return Ending.CIRCLES
                if self._waits_for_the_clock():
                    return Ending.DONE
        return Ending.DONE

    def _next_moment(self) -> float | None:
        event, cycle = self.engine.next_time(), self._next_cycle()
        if event is None or cycle is None:
            return event if cycle is None else cycle
        return min(event, cycle)

    def _next_cycle(self) -> float | None:
        """Return when a cycle is due, or None if there is no reason for one."""
        if self.cluster.has_news or self._again:
            return max(self.engine.now, self._earliest)
        return None if self._wake_at is None else max(self._wake_at, self._earliest)

    def _cycle(self, now: float) -> None:
        refusals, phases = self.cluster.refusals, self.cluster.phases_written
        report = self.cycle_fn(now)
        self.cycles += 1
        self._earliest = now + self.period_s
        self._again = (
            len(report.decisions) > 0
            or self.cluster.refusals > refusals
            or (self.cluster.phases_written > phases and self._any_job_waits())
        )
        self._wake_at = report.wake_at
        if self._after_cycle is not None:
            self._after_cycle(report.decisions)

    def _any_job_waits(self) -> bool:
        """Return True if a phase may matter: admission counts what was promised to a gang until its phase says that it
        runs."""
        return len(self.controller.live) > self.history.running.value

    def _decides_in_circles(self) -> bool:
        """Return True if very many cycles have decided something since a job last arrived or ended."""
        moved = (self.controller.arrived_count, self.controller.ended_count)
        self._vain_cycles = self._vain_cycles + self._again if moved == self._moved else 0
        self._moved = moved
        return self._vain_cycles > self.circles_max

    def _waits_for_the_clock(self) -> bool:
        """Return True if very many cycles in a row only looked at the time."""
        idle = not self._again and not self.cluster.has_news and self.engine.next_time() is None
        self._clock_only_cycles = self._clock_only_cycles + 1 if idle else 0
        return self._clock_only_cycles > CLOCK_ONLY_MAX

    def _result(self, ending: Ending) -> SimResult:
        controller, cluster = self.controller, self.cluster
        live = [run for run in controller.live.values() if run.ended is None]
        return SimResult(
            ending=ending,
            start=self.start,
            now=self.engine.now,
            cycles=self.cycles,
            jobs=controller.submitted_count,
            completed=controller.ended_count,
            pending=tuple(run.key for run in live if run.started is None),
            unfinished=tuple(run.key for run in live if run.started is not None),
            waiting=tuple(run.key for run in live if not run.whole),
            gone=tuple(run.key for run in live if run.started is not None and not run.whole and not run.recreates),
            to_come=tuple(sorted(controller.to_come.values(), key=lambda work: work.arrival_s)),
            binds=cluster.binds_done,
            evictions=cluster.evictions_done,
            events=self.engine.events_run,
            history=self.history,
            problems=tuple(controller.problems),
        )
