"""The figures of a simulation: utilisation, waiting and completion times by queue, fairness, which jobs wait and why.

Shared by the command line and the HTML report. Times are seconds, shares 0 to 1. Jobs whose wait or run is not over
count as lower bounds (``algorithms.survival``), so that a scheduler that lets slow jobs wait does not look fast.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from pumice.answers.codes import WORDS, Code
from pumice.model.devices.shared_devices import is_counted_by_card
from pumice.model.resources import PODS
from pumice.reasons.words import per_unit, unit
from pumice.report.problems import problems_of
from pumice.report.spread import Spread, spread
from pumice.runtime.problems.problem import Problem
from pumice.sim.measures.fairness import QueueShares
from pumice.sim.measures.figures import Amount, Figures
from pumice.sim.measures.history import History, JobRecord
from pumice.sim.run import Run, Waiting
from pumice.sim.world import SimResult

#: A job shorter than this counts as this long in its slowdown: a second of waiting is nothing to a job of a second.
SLOWDOWN_BOUND_S = 10.0
FAIRNESS_OF = (
    "Jain's index of what each queue had over what it deserved, both summed over time: 1 is perfectly even, 1/n means "
    "that one of n queues has everything. A queue deserves its part of the cluster by weight, of all that its jobs ask "
    "for from arrival to end, admitted or not; contended is the time in which the queues together asked for more than "
    "the cluster has"
)


class Utilisation(Struct, frozen=True):
    """Utilisation of one resource. ``loaded``: the mean over the time in which jobs had waited longer than prompt
    service takes (``sim.run.PROMPT_PERIODS``), None if there was no such time. ``capacity``: the largest there was, in
    ``unit``; ``peak`` and the means are shares of it."""

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


class QueueSummary(Struct, frozen=True):
    """Figures of one queue. ``share`` and ``deserved``: means over time of the resource of which the queue has, or
    deserves, most."""

    name: str
    jobs: int
    completed: int
    running: int
    pending: int
    wait: Spread | None
    completion: Spread | None
    slowdown: Spread | None
    share: float
    deserved: float

    @property
    def satisfied(self) -> float | None:
        """Return the share that the queue had over the share that it deserved, None if it never deserved any."""
        return satisfied(self.share, self.deserved)

    def to_json(self) -> dict[str, object]:
        return {
            "jobs": self.jobs,
            "completed": self.completed,
            "running": self.running,
            "pending": self.pending,
            "wait_s": self.wait.to_json() if self.wait else None,
            "completion_s": self.completion.to_json() if self.completion else None,
            "slowdown": self.slowdown.to_json() if self.slowdown else None,
            "share": round(self.share, 6),
            "deserved": round(self.deserved, 6),
        }


class Fairness(Struct, frozen=True):
    """Jain's index: ``jain`` over all time, ``contended`` over the time in which more was requested than existed; None
    with fewer than two queues that deserved something then. ``contended_share``: that part of the measured time."""

    jain: float | None
    contended: float | None
    contended_share: float

    def to_json(self) -> dict[str, object]:
        return {
            "jain": None if self.jain is None else round(self.jain, 6),
            "jain_contended": None if self.contended is None else round(self.contended, 6),
            "contended_share": round(self.contended_share, 6),
            "of": FAIRNESS_OF,
        }


class LostWork(Struct, frozen=True):
    """Work that was lost: gangs that started again, for how long they had run (``job_s``), and what they held during
    that time by resource, in its unit times hours. ``evicted_again``: how often a job lost pods to an eviction that had
    lost some to an earlier one."""

    restarts: int
    job_s: float
    hours: Mapping[str, float]
    evicted_again: int

    def to_json(self) -> dict[str, object]:
        return {"job_s": round(self.job_s, 3), "hours": {name: round(each, 6) for name, each in self.hours.items()}}


class MeasuredPeriod(Struct, frozen=True):
    """The time that figures are about, in seconds from the start, and the jobs that arrived in it."""

    from_s: float
    to_s: float
    jobs: int

    def to_json(self) -> dict[str, float]:
        return {"from_s": round(self.from_s, 6), "to_s": round(self.to_s, 6), "jobs": self.jobs}


class Summary(Struct, frozen=True):
    """``wait``, ``completion`` and ``slowdown`` are of the jobs that arrived in the window."""

    run: Run
    window: MeasuredPeriod
    utilisation: tuple[Utilisation, ...]
    queues: tuple[QueueSummary, ...]
    wait: Spread | None
    completion: Spread | None
    slowdown: Spread | None
    fairness: Fairness
    lost: LostWork

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return what the simulation found wrong."""
        return problems_of(self.run)

    def to_json(self, waiting_max: int = 1000) -> dict[str, Any]:
        """Return the document of ``pumice simulate --json``, but for what only the command knows."""
        run, result = self.run, self.run.result
        return {
            "digest": run.digest,
            "jobs": result.jobs,
            "completed": result.completed,
            "pending": len(result.pending),
            "running": len(result.running),
            "broken": len(result.broken),
            "gone": len(result.gone),
            "to_come": len(result.to_come),
            "simulated_s": round(result.simulated_s, 6),
            "wall_s": round(run.wall_s, 3),
            "cycles": result.cycles,
            "ending": result.ending.value,
            "window": self.window.to_json(),
            "binds": result.binds,
            "evictions": result.evictions,
            "evicted_again": self.lost.evicted_again,
            "restarts": self.lost.restarts,
            "lost": self.lost.to_json(),
            "utilisation": {each.resource: each.to_json() for each in self.utilisation},
            "wait_s": self.wait.to_json() if self.wait else None,
            "completion_s": self.completion.to_json() if self.completion else None,
            "slowdown": self.slowdown.to_json() if self.slowdown else None,
            "queues": {queue.name: queue.to_json() for queue in self.queues},
            "fairness": self.fairness.to_json(),
            "waiting": [
                {
                    "job": each.job,
                    "queue": each.queue,
                    "pods": each.pods,
                    "waited_s": None if each.waited_s is None else round(each.waited_s, 3),
                    "code": each.code,
                    "why": each.why,
                }
                for each in run.waiting[:waiting_max]
            ],
            "waits_by_code": waits_by_code(run),
            "never_run": [
                {"job": each.job, "queue": each.queue, "pods": each.pods, "why": each.impossible}
                for each in run.stuck[:waiting_max]
                if each.impossible is not None
            ],
            "held_for_nothing": [
                {"job": each.job, "promised": in_units(each.promised), "on_nodes": in_units(each.holds)}
                for each in run.stuck[:waiting_max]
                if each.promised or each.holds
            ],
            "faults": dict(run.faults),
        }


def waits_by_code(run: Run) -> list[dict[str, Any]]:
    """Return how long jobs waited for each reason: its code, what that means, job-seconds, and their share of all."""
    total = sum(run.wait_codes.values())
    return [
        {"code": code, "meaning": meaning_of(code), "job_s": round(seconds, 3), "share": round(seconds / total, 6)}
        for code, seconds in run.wait_codes.items()
    ]


def meaning_of(code: str) -> str:
    """Return what the code of a reason means, in a few words."""
    return WORDS[Code(code)].meaning


def left_of(result: SimResult) -> Iterator[str]:
    """Return how many jobs that arrived have not ended, by state, as text."""
    for keys, words in (
        (result.running, "running"),
        (result.pending, "waiting"),
        (result.broken, "to run again"),
        (result.gone, "evicted and not created again"),
    ):
        if keys:
            yield f"{len(keys):,} {words}"


def summarise(run: Run) -> Summary:
    """Return the figures of a simulation."""
    history = run.history
    figures = history.figures
    counted = [record for record in history.jobs if record.submitted in figures.window]
    return Summary(
        run,
        _measured(history, len(counted)),
        tuple(_utilisation(figures)),
        tuple(_queues(history, frozenset(run.result.running))),
        waits(counted, history.now),
        completions(counted, history.now),
        slowdowns(counted, history.now),
        _fairness(figures),
        _lost(history),
    )


# -- jobs


def waits(records: Iterable[JobRecord], now: float) -> Spread | None:
    """Return waits from arrival until the gang runs, up to now for those that do not run yet."""
    return spread(*wait_lengths(records, now))


def wait_lengths(records: Iterable[JobRecord], now: float) -> tuple[list[float], list[float]]:
    """Return the lengths of waits that are over, and how long the others have lasted."""
    listed = list(records)
    return (
        [r.wait_s for r in listed if r.wait_s is not None],
        [(now if r.ended is None else r.ended) - r.submitted for r in listed if r.started is None],
    )


def completions(records: Iterable[JobRecord], now: float) -> Spread | None:
    """Return completion times from arrival to the end, up to now for jobs that have not ended."""
    listed = [record for record in records if record.started is not None or record.ended is None]
    return spread(
        (r.completion_s for r in listed if r.completion_s is not None),
        (now - r.submitted for r in listed if r.ended is None),
    )


def slowdowns(records: Iterable[JobRecord], now: float) -> Spread | None:
    """Return bounded slowdowns. A job that has not ended takes at least as long as it waited and still has to run."""
    listed = [record for record in records if math.isfinite(record.run_s)]
    return spread(
        (slowdown(r.completion_s, r.run_s) for r in listed if r.completion_s is not None and r.started is not None),
        (slowdown(_at_least(r, now), r.run_s) for r in listed if r.ended is None),
    )


def slowdown(completion_s: float, run_s: float) -> float:
    """Return the bounded slowdown of a job: its completion time over its run time. Source: Feitelson, Rudolph, 1998,
    with a bound of ``SLOWDOWN_BOUND_S``."""
    return max(1.0, completion_s / max(run_s, SLOWDOWN_BOUND_S))


def _at_least(record: JobRecord, now: float) -> float:
    """Return the completion time of a job that has not ended, if nothing delays it any more."""
    if record.started is None or record.restarts:
        return now - record.submitted + (record.run_s if record.started is None else 0.0)
    return record.started - record.submitted + record.run_s


class WaitingGroup(Struct, frozen=True):
    """Jobs of one queue that wait for reasons of one code. ``longest_s``, ``why``: wait of the one that waits longest,
    and what is nearest in its way; it is named first."""

    queue: str
    code: str
    why: str
    jobs: tuple[str, ...]
    pods: int
    longest_s: float | None


def waiting_groups(waiting: Iterable[Waiting]) -> list[WaitingGroup]:
    """Return the groups, those with most jobs first."""
    found: dict[tuple[str, str], list[Waiting]] = {}
    for each in waiting:
        found.setdefault((each.queue, each.code), []).append(each)
    groups = []
    for (queue, code), members in found.items():
        members.sort(key=lambda each: (-(each.waited_s or 0.0), each.job))
        jobs = tuple(each.shown or each.job for each in members)
        first, pods = members[0], sum(each.pods for each in members)
        groups.append(WaitingGroup(queue, code, first.why, jobs, pods, first.waited_s))
    return sorted(groups, key=lambda group: (-len(group.jobs), group.queue, group.code))


def jain(values: Sequence[float]) -> float | None:
    """Return Jain's index (Σx)² / (n·Σx²), None for fewer than two values. Source: Jain, Chiu, Hawe 1984."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if len(values) > 1 and squares > 0 else None


def satisfied(had: float, deserved: float) -> float | None:
    """Return what was held over what was deserved, None if nothing was deserved."""
    return had / deserved if deserved > 1e-9 else None


# -- the cluster


def _measured(history: History, jobs: int) -> MeasuredPeriod:
    window, start = history.figures.window, history.start
    return MeasuredPeriod(max(window.begin - start, 0.0), min(window.end, history.now) - start, jobs)


def _utilisation(figures: Figures) -> Iterable[Utilisation]:
    for resource, capacity in sorted(figures.capacity.items(), key=lambda item: _order(item[0])):
        if resource == PODS or capacity.peak <= 0 or is_counted_by_card(resource):
            continue
        used = figures.used.get(resource, Amount())
        crowded = used.crowded_area / capacity.crowded_area if capacity.crowded_area > 0 else None
        most = capacity.peak
        yield Utilisation(
            resource,
            unit(resource),
            most / per_unit(resource),
            used.area / capacity.area if capacity.area > 0 else 0.0,
            used.peak / most,
            crowded,
        )


def _order(resource: str) -> tuple[int, str]:
    """Return a key that sorts devices first, then cpu and memory."""
    return {"cpu": 1, "memory": 2}.get(resource, 0), resource


def _fairness(figures: Figures) -> Fairness:
    queues = figures.fairness.queues().values()
    everything = [satisfied(each.share_s, each.deserved_s) for each in queues]
    contended = [satisfied(each.contended_share_s, each.contended_deserved_s) for each in queues]
    seconds = figures.seconds
    return Fairness(
        jain([each for each in everything if each is not None]),
        jain([each for each in contended if each is not None]),
        figures.fairness.contended_s / seconds if seconds > 0 else 0.0,
    )


def _lost(history: History) -> LostWork:
    again = [record for record in history.jobs if record.restarts]
    hours: dict[str, float] = {}
    for record in again:
        for resource, amount in record.lost.items():
            if resource != PODS:
                hours[resource] = hours.get(resource, 0.0) + amount / per_unit(resource) / 3600
    found = dict(sorted(hours.items(), key=lambda item: _order(item[0])))
    evicted_again = sum(max(record.evicted_times - 1, 0) for record in history.jobs)
    return LostWork(
        sum(record.restarts for record in again), sum(record.lost_s for record in again), found, evicted_again
    )


def in_units(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return amounts by resource in the units of reports: cores, GiB, pieces."""
    return {name: round(amount / per_unit(name), 6) for name, amount in amounts.items()}


# -- queues


def _queues(history: History, running_now: Collection[str]) -> Iterable[QueueSummary]:
    by_queue: dict[str, list[JobRecord]] = {}
    for record in history.jobs:
        by_queue.setdefault(record.queue, []).append(record)
    now, figures = history.now, history.figures
    shares = figures.fairness.queues()
    for name in sorted(by_queue):
        records = by_queue[name]
        counted = [record for record in records if record.submitted in figures.window]
        completed = sum(record.ended is not None for record in records)
        running = sum(record.key in running_now for record in records)
        share, deserved = _means(shares.get(name), figures.seconds)
        yield QueueSummary(
            name,
            len(records),
            completed,
            running,
            len(records) - completed - running,
            waits(counted, now),
            completions(counted, now),
            slowdowns(counted, now),
            share,
            deserved,
        )


def _means(found: QueueShares | None, seconds: float) -> tuple[float, float]:
    """Return (share, deserved): means over the measured time."""
    if found is None or seconds <= 0:
        return 0.0, 0.0
    return found.share_s / seconds, found.deserved_s / seconds
