"""Measure a cycle: time by phase, CPU, memory; then the next cycle, and one in which nothing changes."""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Iterable
from time import perf_counter, process_time
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Bind, Decision, Evict
from pumice.model.events import Gone, Object, Seen
from pumice.model.pod import Pod
from pumice.model.workloads.gang import gang_at
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.digest import Digest
from pumice.runtime.loop import ListPlanner
from pumice.runtime.memory import leave_old_objects_alone, old_objects_left_alone
from pumice.state.store import Store

SETTLING_CYCLES = 3
QUIET_CYCLES = 7  # odd, so that one of them is the median


class Figures(Struct, frozen=True):
    """``bound``, ``evicted``, ``pipelined``: pods. ``moved``: those that were evicted with another place reserved.
    ``phases``: CPU seconds by phase. CPU time of later cycles: ``next_ms``, the very next one, after the decisions of
    the first have been carried out; ``quiet_ms``, one without changes, the median of several."""

    bound: int
    evicted: int
    pipelined: int
    moved: int
    wall_s: float
    cpu_s: float
    peak_rss_mb: float
    phases: dict[str, float]
    next_ms: float
    quiet_ms: float
    digest: str

    def to_json(self) -> dict[str, Any]:
        return {
            "bound": self.bound,
            "evicted": self.evicted,
            "pipelined": self.pipelined,
            "moved": self.moved,
            "wall_s": round(self.wall_s, 4),
            "cpu_s": round(self.cpu_s, 4),
            "peak_rss_mb": round(self.peak_rss_mb, 1),
            "phases": {name: round(seconds, 5) for name, seconds in self.phases.items()},
            "next_cycle_ms": round(self.next_ms, 3),
            "second_cycle_ms": round(self.quiet_ms, 3),
            "digest": self.digest,
        }


class _Stopwatch:
    """Is called with the name of each phase as it begins."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._phase = ""
        self._since = 0.0

    def __call__(self, phase: str) -> None:
        now, phase = process_time(), phase.partition(" ")[0]
        phase = {"opened": "open", "closed": "close"}.get(phase, phase)
        if self._phase:
            self.phases[self._phase] = self.phases.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now


def measure_cycle(
    objects: Iterable[Object], policy: Policy, scheduler_names: Iterable[str] = ("volcano",), *, quiet: bool = True
) -> Figures:
    """Measure one cycle on these objects, at the time of the newest. Peak memory is that of the process, up to the end
    of the cycle. ``quiet`` False: of later cycles only the next one is measured."""
    store = Store(scheduler_names=scheduler_names)
    pods: dict[str, Pod] = {}
    groups: dict[str, PodGroup] = {}
    newest = 0.0
    for obj in objects:
        store.apply(Seen(obj))
        if isinstance(obj, Pod):
            pods[obj.key] = obj
        elif isinstance(obj, PodGroup):
            groups[obj.key] = obj
            newest = max(newest, obj.creation)
    store.take_in()
    with old_objects_left_alone():  # as a live scheduler does after its start
        return _measured(store, policy, newest, pods, groups, quiet)


def _measured(
    store: Store, policy: Policy, newest: float, pods: dict[str, Pod], groups: dict[str, PodGroup], quiet: bool
) -> Figures:
    watch = _Stopwatch()
    planner = ListPlanner()
    wall, cpu = perf_counter(), process_time()
    watch("snapshot")
    memo = Memo()
    outcome = run_cycle(store.snapshot(), policy, newest, planner, watch, memo)
    watch("")
    wall, cpu = perf_counter() - wall, process_time() - cpu
    peak = _peak_rss_mb()
    digest = Digest()
    digest.add(newest, planner.taken)
    bound, evicted = (sum(isinstance(decision, kind) for decision in planner.taken) for kind in (Bind, Evict))
    pipelined = len(waiting := outcome.pipelined)
    moved = sum(isinstance(decision, Evict) and decision.pod in waiting for decision in planner.taken)
    carry_out(store, outcome, planner.taken, pods, groups)
    del outcome
    later = _later_ms if quiet else _next_ms
    next_ms, quiet_ms = later(store, policy, newest + 1, groups, memo)
    return Figures(bound, evicted, pipelined, moved, wall, cpu, peak, watch.phases, next_ms, quiet_ms, digest.hex)


def carry_out(
    store: Store, outcome: Outcome, decisions: list[Decision], pods: dict[str, Pod], groups: dict[str, PodGroup]
) -> None:
    """Carry out all decisions: statuses are written, bound pods run, evicted ones are gone."""
    _write(store, outcome, groups)
    for decision in decisions:
        if isinstance(decision, Evict):
            store.apply(Gone(Pod, decision.pod))
        elif isinstance(decision, Bind):
            store.apply(Seen(replace(pods[decision.pod], node_name=decision.node, phase="Running")))
    store.take_in()


def _write(store: Store, outcome: Outcome, groups: dict[str, PodGroup]) -> None:
    store.remember(outcome.writes)
    for update in outcome.groups:
        group = groups[update.job]
        groups[update.job] = replace(group, status=update.status, gang=gang_at(group.gang, update.times))
        store.apply(Seen(groups[update.job]))
    for name, allocated in outcome.queues.items():
        store.apply(Seen(replace(store.queues[name], allocated=allocated, usage=outcome.writes.usages.get(name))))


def _later_ms(store: Store, policy: Policy, now: float, groups: dict[str, PodGroup], memo: Memo) -> tuple[float, float]:
    """Return the CPU time of the next cycle, and the median of several in which nothing is left to write."""
    first, *_ = [_cycle_ms(store, policy, now, groups, memo) for _ in range(SETTLING_CYCLES)]
    leave_old_objects_alone()
    quiet = sorted(_cycle_ms(store, policy, now, groups, memo) for _ in range(QUIET_CYCLES))
    return first, quiet[QUIET_CYCLES // 2]


def _next_ms(store: Store, policy: Policy, now: float, groups: dict[str, PodGroup], memo: Memo) -> tuple[float, float]:
    """Return the CPU time of the next cycle, and no other."""
    return _cycle_ms(store, policy, now, groups, memo), math.nan


def _cycle_ms(store: Store, policy: Policy, now: float, groups: dict[str, PodGroup], memo: Memo) -> float:
    """Return the CPU time of a further cycle, and write its statuses."""
    began = process_time()
    outcome = run_cycle(store.snapshot(), policy, now, ListPlanner(), memo=memo)
    took = 1000 * (process_time() - began)
    _write(store, outcome, groups)
    return took


def _peak_rss_mb() -> float:
    """Return the peak memory of this process. Units: kilobytes on Linux, bytes on macOS."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024
