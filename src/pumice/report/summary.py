"""A simulation in numbers: utilisation, waiting and completion times by queue, fairness, what waits and why.

Shared by the command line and the HTML report. Times are seconds, shares 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64
from pumice.model.resources import PODS
from pumice.report.units import per_unit, unit_of
from pumice.sim.history import History, JobRecord
from pumice.sim.run import Run, Waiting
from pumice.sim.series import StepSeries

PERCENTILES = (50, 90, 99)
#: A job needs so long where nothing stands in its way: one cycle admits it, one places its pods, a second apart, and
#: the first is at most a second away.
PROMPT_S = 2.0
FAIRNESS_OF = (
    "Jain's index of what each queue had over what it deserved, both summed over time: 1 is perfectly even, "
    "1/n is all for one of n queues"
)


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity is spread over ``count`` jobs. Units: seconds."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float

    def to_json(self) -> dict[str, float]:
        named = {"mean": self.mean, "p50": self.p50, "p90": self.p90, "p99": self.p99, "max": self.max}
        return {"count": self.count, **{name: round(value, 3) for name, value in named.items()}}


def spread(values: Iterable[float]) -> Spread | None:
    """None for no values."""
    found = np.fromiter(values, dtype=np.float64)
    if not len(found):
        return None
    p50, p90, p99 = np.percentile(found, PERCENTILES).tolist()
    return Spread(len(found), float(found.mean()), p50, p90, p99, float(found.max()))


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Of one resource. ``loaded``: the mean over the time in which jobs had waited longer than ``PROMPT_S``, None where
    none ever did.

    ``capacity`` is the largest there was, in ``unit``; ``peak`` and the means are shares of it.
    """

    resource: str
    unit: str
    capacity: float
    mean: float
    peak: float
    loaded: float | None

    def to_json(self) -> dict[str, object]:
        loaded = None if self.loaded is None else round(self.loaded, 6)
        return {
            "mean": round(self.mean, 6),
            "peak": round(self.peak, 6),
            "while_waiting": loaded,
            "capacity": self.capacity,
            "unit": self.unit,
        }


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """``share`` and ``deserved`` are means over time of the resource the queue has, or deserves, most of."""

    name: str
    jobs: int
    completed: int
    running: int
    pending: int
    wait: Spread | None
    completion: Spread | None
    share: float
    deserved: float

    @property
    def satisfied(self) -> float | None:
        """What it had over what it deserved; None for a queue that never deserved anything."""
        return self.share / self.deserved if self.deserved > 1e-9 else None

    def to_json(self) -> dict[str, object]:
        return {
            "jobs": self.jobs,
            "completed": self.completed,
            "running": self.running,
            "pending": self.pending,
            "wait_s": self.wait.to_json() if self.wait else None,
            "completion_s": self.completion.to_json() if self.completion else None,
            "share": round(self.share, 6),
            "deserved": round(self.deserved, 6),
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """``fairness`` is None with fewer than two queues that deserved anything."""

    run: Run
    utilisation: tuple[Utilisation, ...]
    queues: tuple[QueueSummary, ...]
    wait: Spread | None
    completion: Spread | None
    fairness: float | None

    @property
    def to_come(self) -> int:
        """Jobs that had not arrived."""
        result = self.run.result
        return result.jobs - result.completed - len(result.pending) - len(result.unfinished)

    def to_json(self, waiting_max: int = 1000) -> dict[str, Any]:
        """The stable shape of ``pumice simulate --json``, less what the command itself knows."""
        run, result = self.run, self.run.result
        total = sum(run.wait_causes.values())
        return {
            "digest": run.digest,
            "jobs": result.jobs,
            "completed": result.completed,
            "pending": len(result.pending),
            "running": len(result.unfinished),
            "to_come": self.to_come,
            "simulated_s": round(result.simulated_s, 6),
            "wall_s": round(run.wall_s, 3),
            "cycles": result.cycles,
            "ending": result.ending.value,
            "binds": result.binds,
            "evictions": result.evictions,
            "utilisation": {each.resource: each.to_json() for each in self.utilisation},
            "wait_s": self.wait.to_json() if self.wait else None,
            "completion_s": self.completion.to_json() if self.completion else None,
            "queues": {queue.name: queue.to_json() for queue in self.queues},
            "fairness": {"jain": None if self.fairness is None else round(self.fairness, 6), "of": FAIRNESS_OF},
            "waiting": [
                {
                    "job": each.job,
                    "queue": each.queue,
                    "pods": each.pods,
                    "waited_s": None if each.waited_s is None else round(each.waited_s, 3),
                    "why": each.why,
                }
                for each in run.waiting[:waiting_max]
            ],
            "wait_causes": [
                {"cause": cause, "job_s": round(seconds, 3), "share": round(seconds / total, 6)}
                for cause, seconds in run.wait_causes.items()
            ],
            "faults": dict(run.faults),
        }


def summarise(run: Run) -> Summary:
    """The numbers of a simulation."""
    history = run.history
    queues = tuple(_queues(history))
    return Summary(
        run,
        tuple(_utilisation(history)),
        queues,
        spread(r.wait_s for r in history.jobs if r.wait_s is not None),
        spread(r.completion_s for r in history.jobs if r.completion_s is not None and r.started is not None),
        jain([q.satisfied for q in queues if q.satisfied is not None]),
    )


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Jobs of one queue that wait for the same thing. ``longest_s``: of the one that waits longest, named first."""

    queue: str
    why: str
    jobs: tuple[str, ...]
    pods: int
    longest_s: float | None


def waiting_groups(waiting: Iterable[Waiting]) -> list[WaitingGroup]:
    """Most jobs first."""
    found: dict[tuple[str, str], list[Waiting]] = {}
    for each in waiting:
        found.setdefault((each.queue, each.why), []).append(each)
    groups = []
    for (queue, why), members in found.items():
        members.sort(key=lambda each: (-(each.waited_s or 0.0), each.job))
        jobs = tuple(each.job for each in members)
        groups.append(WaitingGroup(queue, why, jobs, sum(each.pods for each in members), members[0].waited_s))
    return sorted(groups, key=lambda group: (-len(group.jobs), group.queue, group.why))


def jain(values: Sequence[float]) -> float | None:
    """(Σx)² / (n·Σx²). None for fewer than two values. Source: Jain, Chiu, Hawe 1984."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if len(values) > 1 and squares > 0 else None


def _utilisation(history: History) -> Iterable[Utilisation]:
    now, crowded = history.now, _crowded(history)
    for resource, capacity in sorted(history.capacity.items(), key=lambda item: _order(item[0])):
        room = capacity.area(now)
        if resource == PODS or capacity.peak <= 0:
            continue
        taken = history.allocated.get(resource, StepSeries(history.start))
        mean = taken.area(now) / room if room > 0 else 0.0
        unit = unit_of(resource)
        yield Utilisation(
            resource,
            unit,
            capacity.peak / per_unit(resource),
            mean,
            taken.peak / capacity.peak,
            _while_positive(taken, capacity, crowded, now),
        )


def _order(resource: str) -> tuple[int, str]:
    """Devices first, then cpu and memory."""
    return {"cpu": 1, "memory": 2}.get(resource, 0), resource


def _crowded(history: History) -> StepSeries:
    """How many jobs have waited longer than ``PROMPT_S``, over time."""
    moves = []
    for record in history.jobs:
        until = record.ended if record.started is None else record.started
        late, until = record.submitted + PROMPT_S, history.now if until is None else until
        if late < until:
            moves += [(late, 1), (until, -1)]
    series = StepSeries(history.start)
    for moment, by in sorted(moves):
        series.set(moment, series.value + by)
    return series


def _while_positive(part: StepSeries, whole: StepSeries, when: StepSeries, until: float) -> float | None:
    """∫part / ∫whole over the time in which ``when`` is above 0."""
    times = np.unique(np.concatenate([series.arrays()[0] for series in (part, whole, when)]))
    spans = np.diff(np.append(times, max(until, times[-1])))
    counted = spans * (values_at(when, times) > 0)
    room = float((counted * values_at(whole, times)).sum())
    return float((counted * values_at(part, times)).sum()) / room if room > 0 else None


def values_at(series: StepSeries, times: F64) -> F64:
    """The values that hold at these moments. Shape (times,)."""
    starts, values = series.arrays()
    found: F64 = values[np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)]
    return found


def _queues(history: History) -> Iterable[QueueSummary]:
    by_queue: dict[str, list[JobRecord]] = {}
    for record in history.jobs:
        by_queue.setdefault(record.queue, []).append(record)
    now = history.now
    for name in sorted(by_queue):
        records = by_queue[name]
        completed = sum(record.ended is not None for record in records)
        running = sum(record.ended is None and record.started is not None for record in records)
        share, deserved = history.queue_share.get(name), history.queue_deserved.get(name)
        yield QueueSummary(
            name,
            len(records),
            completed,
            running,
            len(records) - completed - running,
            spread(r.wait_s for r in records if r.wait_s is not None),
            spread(r.completion_s for r in records if r.completion_s is not None and r.started is not None),
            share.mean(now) if share else 0.0,
            deserved.mean(now) if deserved else 0.0,
        )
