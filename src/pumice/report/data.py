"""What the HTML report shows, as plain values of bounded size: a few thousand points, however long a simulation is.

Curves are means over equal buckets of time, so areas under them are true. Times are seconds from the start.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64
from pumice.report.summary import FAIRNESS_OF, QueueSummary, Spread, Summary, waiting_groups
from pumice.report.units import amount, counted, duration, label_of, per_unit, percent, some, unit_of
from pumice.sim.history import History
from pumice.sim.inputs import Inputs
from pumice.sim.series import StepSeries

BUCKETS = 480  # of the wide charts
SMALL_BUCKETS = 120  # of a queue's own small chart
QUEUES_NAMED = 7  # with a colour of their own; the others are one
QUEUES_CHARTED = 24
QUEUES_LISTED = 200
RESOURCES_MAX = 6
GANTT_MAX = 40
NODES_NAMED = 6
HEAT_COLUMNS = 256
CAUSES_MAX = 12
PENDING_MAX = 40
JOBS_NAMED = 3
PROBLEMS_MAX = 60
TEXT_MAX = 300
OTHERS = "other queues"


@dataclass(frozen=True, slots=True)
class ReportData:
    """One field a part of the page; ``to_json`` is what its script reads."""

    title: str
    subtitle: str
    end_s: float
    facts: list[list[str]]
    headlines: list[dict[str, str]]
    resources: list[dict[str, Any]]
    shares: dict[str, Any]
    waiting: list[dict[str, Any]]
    waits: dict[str, Any]
    gantt: dict[str, Any]
    heat: dict[str, Any]
    queues: list[dict[str, Any]]
    colours: list[str]
    causes: list[dict[str, Any]]
    pending: list[dict[str, Any]]
    problems: list[dict[str, str]]
    fairness: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def report_data(summary: Summary, inputs: Inputs, conf: str) -> ReportData:
    """Everything that the page shows."""
    history, result = summary.run.history, summary.run.result
    named = _named_queues(summary)
    return ReportData(
        title="Pumice simulation",
        subtitle=_cut(", ".join(inputs.sources)),
        end_s=result.simulated_s,
        facts=_facts(summary, inputs, conf),
        headlines=_headlines(summary),
        resources=_resources(history, summary, named),
        shares=_shares(history, summary),
        waiting=_stack(history, history.queue_waiting, history.waiting, named),
        waits=_waits(history, summary.wait),
        gantt=_gantt(history),
        heat=_heat(history),
        queues=[_queue_row(queue) for queue in summary.queues[:QUEUES_LISTED]],
        colours=named,
        causes=_causes(summary),
        pending=_pending(summary),
        problems=_problems(summary, inputs),
        fairness=FAIRNESS_OF,
    )


# -- words and numbers


def _facts(summary: Summary, inputs: Inputs, conf: str) -> list[list[str]]:
    run, result = summary.run, summary.run.result
    endings = {
        "done": "everything ended",
        "until": "stopped at the time given",
        "interrupted": "interrupted",
        "circles": "went in circles",
        "stuck": "nothing moved any more",
    }
    return [
        ["Policy", _cut(conf)],
        ["Cluster", counted(len(inputs.nodes), "node")],
        ["Simulated", f"{duration(result.simulated_s)} ({endings[result.ending.value]})"],
        ["Computed in", f"{duration(run.wall_s)}, {counted(result.cycles, 'cycle')}"],
        ["Pods", f"{result.binds:,} bound, {result.evictions:,} evicted"],
        ["Digest of all decisions", run.digest],
    ]


def _headlines(summary: Summary) -> list[dict[str, str]]:
    result, wait = summary.run.result, summary.wait
    found = []
    for use in summary.utilisation[:1]:
        note = f"of {amount(use.capacity)} {use.unit}, mean over time"
        if use.loaded is not None:
            note += f"; {percent(use.loaded)} while jobs waited"
        found.append(_headline(f"{label_of(use.resource)} utilisation", percent(use.mean), note))
    left = [f"{len(result.unfinished):,} running"] * bool(result.unfinished) + [
        f"{len(result.pending):,} waiting"
    ] * bool(result.pending)
    left += [f"{len(result.to_come):,} to come"] * bool(result.to_come)
    found.append(_headline("Jobs done", f"{result.completed:,}", ", ".join([f"of {result.jobs:,}", *left])))
    if wait is not None:
        found.append(_headline("Median wait", wait.told(wait.p50, duration), "from arrival until the gang runs"))
        found.append(
            _headline(
                "99 % waited at most",
                wait.told(wait.p99, duration),
                f"mean {duration(wait.mean)}, longest {duration(wait.max)}",
            )
        )
    if summary.completion is not None:
        ends = summary.completion
        found.append(
            _headline(
                "Median completion",
                ends.told(ends.p50, duration),
                f"from arrival to the end; 99 % within {ends.told(ends.p99, duration)}",
            )
        )
    fairness = summary.fairness
    if fairness.jain is not None:
        note = "Jain's index over queues; 1 is even"
        if fairness.contended is not None:
            note += f"; {fairness.contended:.3f} while more was asked for than there is"
        found.append(_headline("Fairness", f"{fairness.jain:.3f}", note))
    return found


def _headline(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def _queue_row(queue: QueueSummary) -> dict[str, Any]:
    return {
        "name": _cut(queue.name),
        "jobs": queue.jobs,
        "completed": queue.completed,
        "pending": queue.pending,
        "share": _round(queue.share),
        "deserved": _round(queue.deserved),
        "wait": _spread(queue.wait),
        "completion": _spread(queue.completion),
    }


def _spread(found: Spread | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {name: None if value is None else _round(value) for name, value in asdict(found).items()}


def _causes(summary: Summary) -> list[dict[str, Any]]:
    causes = summary.run.wait_causes
    total = sum(causes.values())
    shown = [
        {"cause": _cut(c), "job_s": _round(s), "share": _round(s / total)}
        for c, s in list(causes.items())[:CAUSES_MAX]
        if total > 0
    ]
    return shown


def _pending(summary: Summary) -> list[dict[str, Any]]:
    return [
        {
            "queue": _cut(group.queue),
            "why": _cut(group.why),
            "count": len(group.jobs),
            "jobs": _cut(some(group.jobs, JOBS_NAMED)),
            "pods": group.pods,
            "longest_s": group.longest_s,
        }
        for group in waiting_groups(summary.run.waiting)[:PENDING_MAX]
    ]


def _problems(summary: Summary, inputs: Inputs) -> list[dict[str, str]]:
    listed = [(p.severity.value, p.where, p.what) for p in inputs.scene.problems]
    listed = [(p.severity.value, p.where, p.what) for p in summary.problems] + listed
    listed += [("note", "", note) for note in inputs.scene.notes]
    return [{"severity": s, "where": _cut(where), "what": _cut(what)} for s, where, what in listed[:PROBLEMS_MAX]]


# -- curves


def means(series: StepSeries | None, end: float, buckets: int, factor: float = 1.0) -> list[float]:
    """Means over ``buckets`` equal parts of the time from the series' start to ``end``, times ``factor``."""
    if series is None:
        return [0.0] * buckets
    starts, values = series.arrays()
    if end <= series.start:
        return [_round(float(values[-1]) * factor)] * buckets
    edges = np.linspace(series.start, end, buckets + 1)
    areas = _areas_until(starts, values, edges)
    found: F64 = np.diff(areas) / np.diff(edges) * factor
    return [_round(value) for value in found.tolist()]


def _areas_until(starts: F64, values: F64, moments: F64) -> F64:
    """∫ of the step function up to each moment. Shape (moments,)."""
    before = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(starts))])
    at = np.maximum(np.searchsorted(starts, moments, side="right") - 1, 0)
    found: F64 = before[at] + values[at] * (moments - starts[at])
    return found


def _resources(history: History, summary: Summary, named: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for use in summary.utilisation[:RESOURCES_MAX]:
        resource, factor = use.resource, 1 / per_unit(use.resource)
        by_queue = {name: table[resource] for name, table in history.queue_allocated.items() if resource in table}
        found.append(
            {
                "name": resource,
                "label": label_of(resource),
                "unit": unit_of(resource),
                "mean": _round(use.mean),
                "capacity": means(history.capacity.get(resource), history.now, BUCKETS, factor),
                "used": means(history.allocated.get(resource), history.now, BUCKETS, factor),
                "queues": _stack(history, by_queue, history.allocated.get(resource), named, factor),
            }
        )
    return found


def _stack(
    history: History,
    by_queue: Mapping[str, StepSeries],
    total: StepSeries | None,
    named: Sequence[str],
    factor: float = 1.0,
) -> list[dict[str, Any]]:
    """The curves of the named queues, and what is left of the total as one more."""
    found = [
        {"name": name, "values": means(by_queue[name], history.now, BUCKETS, factor)}
        for name in named
        if name in by_queue
    ]
    if any(name not in named for name in by_queue):
        rest = np.array(means(total, history.now, BUCKETS, factor))
        for each in found:
            rest -= np.array(each["values"])
        found.append({"name": OTHERS, "values": [_round(v) for v in np.maximum(rest, 0.0).tolist()]})
    return found


def _named_queues(summary: Summary) -> list[str]:
    """The queues that get a colour: those with the largest share over time, in order of name."""
    largest = sorted(summary.queues, key=lambda queue: (-queue.share, -queue.jobs, queue.name))
    return sorted(queue.name for queue in largest[:QUEUES_NAMED])


def _shares(history: History, summary: Summary) -> dict[str, Any]:
    queues = sorted(summary.queues, key=lambda queue: (-queue.deserved, queue.name))[:QUEUES_CHARTED]
    charts = [
        {
            "name": _cut(queue.name),
            "satisfied": None if queue.satisfied is None else _round(queue.satisfied),
            "share": means(history.queue_share.get(queue.name), history.now, SMALL_BUCKETS),
            "deserved": means(history.queue_deserved.get(queue.name), history.now, SMALL_BUCKETS),
        }
        for queue in sorted(queues, key=lambda queue: queue.name)
    ]
    return {"charts": charts, "left_out": len(summary.queues) - len(charts)}


# -- distributions, bars, cells


def _waits(history: History, wait: Spread | None) -> dict[str, Any]:
    """Waiting times counted in bins of equal ratio. ``edges``: where each begins; the first has all below a second."""
    found = np.array([r.wait_s for r in history.jobs if r.wait_s is not None])
    never = sum(record.started is None for record in history.jobs)
    if not len(found):
        return {"edges": [], "counts": [], "marks": [], "never": never}
    quarters = max(1, int(np.ceil(np.log10(max(float(found.max()), 1.5)) * 4)))
    edges = np.concatenate([[0.0], 10 ** (np.arange(quarters) / 4)])
    counts, _ = np.histogram(found, np.append(edges, np.inf))
    named = (("p50", wait.p50), ("p90", wait.p90), ("p99", wait.p99)) if wait is not None else ()
    marks = [[name, _round(value)] for name, value in named if value is not None]
    return {"edges": [_round(e) for e in edges.tolist()], "counts": counts.tolist(), "marks": marks, "never": never}


def _gantt(history: History) -> dict[str, Any]:
    jobs = history.longest_jobs()[:GANTT_MAX]
    bars = [
        {
            "job": _cut(bar.record.key),
            "queue": bar.record.queue,
            "pods": bar.record.size,
            "submitted": _round(bar.record.submitted - history.start),
            "started": _round((history.now if bar.record.started is None else bar.record.started) - history.start),
            "ended": None if bar.record.ended is None else _round(bar.record.ended - history.start),
            "restarts": bar.record.restarts,
            "nodes": _cut(some(bar.nodes, NODES_NAMED, bar.node_count)),
        }
        for bar in jobs
    ]
    return {"bars": sorted(bars, key=lambda bar: (bar["started"], bar["job"]))}


def _heat(history: History) -> dict[str, Any]:
    """Busy shares in steps of 1/255, row by row, one byte a cell, as base64."""
    rows, width, grid = history.heat()
    cells = np.array(grid, dtype=np.float64)
    if not cells.size:
        return {"rows": [], "columns": 0, "width_s": width, "cells": ""}
    fold = -(-cells.shape[1] // HEAT_COLUMNS)
    if fold > 1:
        spare = -cells.shape[1] % fold
        padded = np.pad(cells, ((0, 0), (0, spare)), constant_values=np.nan)
        cells = np.nanmean(padded.reshape(len(cells), -1, fold), axis=2)
    levels = np.clip(np.rint(cells * 255), 0, 255).astype(np.uint8)
    return {
        "rows": [_row_label(names) for names in rows],
        "columns": levels.shape[1],
        "width_s": width * fold,
        "cells": base64.b64encode(levels.tobytes()).decode(),
    }


def _row_label(names: Sequence[str]) -> str:
    if not names:
        return ""
    return _cut(names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)} nodes)")


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def _round(value: float) -> float:
    """Six significant digits: nobody sees more."""
    return float(f"{value:.6g}")
