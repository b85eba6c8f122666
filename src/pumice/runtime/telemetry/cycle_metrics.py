"""Metrics of a cycle: its times, gangs that lack pods, and what queues hold and deserve.

Source: Volcano, where it sets each metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from pumice.algorithms.shares import at_most
from pumice.columns.dtypes import CPU, F64, MEMORY
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.trace import JobsEntry, MakesRoom
from pumice.model.blockers import SearchCut
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.telemetry.metrics import Labels, Metrics
from pumice.volcano.gangs.attempt import PREEMPTIONS_TRIED, VICTIMS_LOOKED_AT

_JOB_TIMES = ("e2e_job_scheduling_start_time", "e2e_job_scheduling_duration", "e2e_job_scheduling_last_time")
#: Volcano's names of the notifications of a plugin.
_ON_SESSION = {"open": "OnSessionOpen", "close": "OnSessionClose"}
#: The first words of phases that belong to no action.
_SESSION_PARTS = {
    "open": "open_session",
    "opened": "open_session",
    "close": "close_session",
    "closed": "close_session",
}


class CycleTimer:
    """The observer of one cycle. ``clock``: returns seconds of any clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun: list[tuple[str, float]] = []

    def __call__(self, phase: str) -> None:
        """A phase begins, and the one before it ends."""
        self._begun.append((phase, self._clock()))

    def spans(self) -> dict[str, float]:
        """Return the time of each part of the cycle up to now: ``e2e_scheduling``, ``open_session``, ``close_session``,
        and ``action`` with its name. Units: milliseconds."""
        if not self._begun:
            return {}
        found = {"e2e_scheduling": 0.0, "open_session": 0.0, "close_session": 0.0}
        for phase, milliseconds in self._phases():
            name = _SESSION_PARTS.get(phase.partition(" ")[0], f"action {phase}")
            found[name] = found.get(name, 0.0) + milliseconds
            found["e2e_scheduling"] += milliseconds
        return found

    def plugin_spans(self) -> dict[tuple[str, str], float]:
        """Return the time of plugins by name and notification, as far as they have ended. Units: milliseconds."""
        found: dict[tuple[str, str], float] = {}
        for (phase, begun), (_, end) in pairwise(self._begun):
            step, _, plugin = phase.partition(" ")
            if plugin:
                found[plugin, _ON_SESSION[step]] = 1000.0 * (end - begun)
        return found

    def _phases(self) -> Iterator[tuple[str, float]]:
        """Yield the phases and their times, that of the last one up to now. Units: milliseconds."""
        ends = [begun for _, begun in self._begun[1:]] + [self._clock()]
        for (phase, begun), end in zip(self._begun, ends, strict=True):
            yield phase, 1000.0 * (end - begun)

    def report(self, metrics: Metrics) -> None:
        """Observe the phases and the whole of a finished cycle, in milliseconds."""
        if not self._begun:
            return
        whole = opening = 0.0
        for phase, milliseconds in self._phases():
            step, _, plugin = phase.partition(" ")
            whole += milliseconds
            if plugin:
                metrics.observe("plugin_scheduling_latency_milliseconds", milliseconds, plugin, _ON_SESSION[step])
            if step not in _SESSION_PARTS:
                metrics.observe("action_scheduling_latency_milliseconds", milliseconds, phase)
            elif _SESSION_PARTS[step] == "open_session":
                opening += milliseconds
        metrics.observe("e2e_scheduling_latency_milliseconds", whole)
        metrics.observe("open_session_duration_milliseconds", opening)


def report_cycle(metrics: Metrics, outcome: Outcome) -> None:
    """Set gauges after a cycle. Jobs and queues that it did not see lose their series."""
    _report_jobs(metrics, outcome)
    _report_queues(metrics, outcome)
    _report_evictions(metrics, outcome)
    _report_cut_searches(metrics, outcome)


def report_bound(metrics: Metrics, group: PodGroup, now: float) -> None:
    """Observe that a pod of the group is bound, as confirmed by the cluster: a mere decision may be refused.

    ``now``: seconds since the epoch.
    """
    milliseconds = 1000.0 * max(now - group.creation, 0.0)
    labels = _labels_of(group)
    metrics.observe("e2e_job_scheduling_latency_milliseconds", milliseconds)
    metrics.put("e2e_job_scheduling_duration", milliseconds, *labels)
    metrics.put("e2e_job_scheduling_last_time", now, *labels)


def _labels_of(group: PodGroup) -> Labels:
    return group.name, group.queue, group.namespace


# -- jobs


def _report_jobs(metrics: Metrics, outcome: Outcome) -> None:
    figures, rows = outcome.figures, outcome.live_jobs
    groups = [outcome.tables.jobs.groups[row] for row in rows.tolist()]
    names = [(group.name,) for group in groups]
    if "job.ready" in figures:
        ready, lacking = figures["job.ready"][rows], figures["job.lacking"][rows]
        metrics.replace("unschedule_task_count", dict(zip(names, lacking.tolist(), strict=True)))
        metrics.put("unschedule_job_count", float(np.count_nonzero(~ready)))
        metrics.keep("job_retry_counts", names)
        for i in np.flatnonzero(~ready).tolist():
            metrics.add("job_retry_counts", 1.0, *names[i])
    if "job.share" in figures:
        shares = figures["job.share"][rows].tolist()
        labels = [(group.namespace, group.name) for group in groups]
        metrics.replace("job_share", dict(zip(labels, shares, strict=True)))
    starts: dict[Labels, float] = {_labels_of(group): group.creation for group in groups}
    metrics.replace(_JOB_TIMES[0], starts)
    for name in _JOB_TIMES[1:]:
        metrics.keep(name, starts)


# -- queues


def _report_queues(metrics: Metrics, outcome: Outcome) -> None:
    """Report what the policy's queue plugin computes. Without one, only weights, as in Volcano."""
    queues, axis = outcome.tables.queues, outcome.tables.axis
    labels: list[Labels] = [(name,) for name in queues.names]
    metrics.replace("queue_weight", dict(zip(labels, queues.weight.tolist(), strict=True)))
    figures = outcome.figures
    if "queue.deserved" not in figures:
        return
    capacity = np.array([axis.vector(queue.capability) for queue in queues.objs]).reshape(len(labels), len(axis))
    for kind in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue"):
        _report_amounts(metrics, outcome, kind, capacity if kind == "capacity" else figures[f"queue.{kind}"])
    metrics.replace("queue_share", dict(zip(labels, figures["queue.share"].tolist(), strict=True)))
    overused = figures.get("queue.overused", at_most(figures["queue.deserved"], figures["queue.allocated"]))
    metrics.replace("queue_overused", dict(zip(labels, overused.astype(np.float64).tolist(), strict=True)))


def _report_amounts(metrics: Metrics, outcome: Outcome, kind: str, matrix: F64) -> None:
    """Report one amount of every queue. Shape (Q, R)."""
    names = outcome.tables.queues.names
    axis = outcome.tables.axis
    rows = matrix.tolist()
    metrics.replace(f"queue_{kind}_milli_cpu", {(q,): row[CPU] for q, row in zip(names, rows, strict=True)})
    metrics.replace(f"queue_{kind}_memory_bytes", {(q,): row[MEMORY] for q, row in zip(names, rows, strict=True)})
    scalars: dict[Labels, float] = {
        (q, name): row[column]
        for q, row in zip(names, rows, strict=True)
        for column, name in enumerate(axis.names)
        if column > MEMORY and column != axis.unoffered
    }
    metrics.replace(f"queue_{kind}_scalar_resources", scalars)


# -- evictions


def _report_evictions(metrics: Metrics, outcome: Outcome) -> None:
    counts = outcome.trace.counts
    if counts[PREEMPTIONS_TRIED]:
        metrics.add("total_preemption_attempts", float(counts[PREEMPTIONS_TRIED]))
        metrics.put("pod_preemption_victims", float(counts[VICTIMS_LOOKED_AT]))
    for entry in outcome.entries:
        if isinstance(entry.finding, MakesRoom):
            metrics.add("eviction_transactions_total", 1.0, entry.action)


# -- searches


def _report_cut_searches(metrics: Metrics, outcome: Outcome) -> None:
    """Count jobs whose search was cut, in either language."""
    for action, jobs in searches_cut(outcome).items():
        metrics.add("searches_cut_total", float(jobs), action)


def searches_cut(outcome: Outcome) -> Counter[str]:
    """Return for how many jobs a search was ended before it could tell, by action."""
    found: Counter[str] = Counter()
    for entry in outcome.trace.log:
        if isinstance(entry.finding, SearchCut):
            found[entry.action] += len(entry.jobs) if isinstance(entry, JobsEntry) else 1
    return found
