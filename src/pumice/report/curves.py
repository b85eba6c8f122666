"""Step functions as pictures: means over equal parts of time, so that areas under curves are true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64
from pumice.reasons.words import per_unit, short_name, unit
from pumice.report.summary import Summary
from pumice.sim.measures.history import History
from pumice.sim.measures.series import StepSeries

BUCKETS = 960
QUEUES_CHARTED = 24
RESOURCES_MAX = 6


def rounded(value: float) -> float:
    """Return the value with five significant digits, more than a curve shows."""
    return float(f"{value:.5g}")


def means(series: StepSeries | None, end: float, buckets: int = BUCKETS, factor: float = 1.0) -> list[float]:
    """Return means over ``buckets`` equal parts of the time from the start of a series to ``end``, times ``factor``."""
    if series is None:
        return [0.0] * buckets
    starts, values = series.arrays()
    if end <= series.start:
        return [rounded(float(values[-1]) * factor)] * buckets
    edges = np.linspace(series.start, end, buckets + 1)
    areas = _areas_until(starts, values, edges)
    found: F64 = np.diff(areas) / np.diff(edges) * factor
    return [rounded(value) for value in found.tolist()]


def _areas_until(starts: F64, values: F64, moments: F64) -> F64:
    """Return the integral of a step function up to each moment. Shape (moments,)."""
    before = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(starts))])
    at = np.maximum(np.searchsorted(starts, moments, side="right") - 1, 0)
    found: F64 = before[at] + values[at] * (moments - starts[at])
    return found


def resource_curves(history: History, summary: Summary) -> list[dict[str, Any]]:
    """Return capacity and use of the first resources."""
    found = []
    for use in summary.utilisation[:RESOURCES_MAX]:
        resource, factor = use.resource, 1 / per_unit(use.resource)
        found.append(
            {
                "name": resource,
                "label": short_name(resource),
                "unit": unit(resource),
                "mean": rounded(use.mean),
                "capacity": means(history.capacity.get(resource), history.now, factor=factor),
                "used": means(history.allocated.get(resource), history.now, factor=factor),
            }
        )
    return found


def largest_queues(summary: Summary, count: int) -> list[str]:
    """Return the queues with the largest share over time, in order of name."""
    ranked = sorted(summary.queues, key=lambda queue: (-queue.share, -queue.deserved, -queue.jobs, queue.name))
    return sorted(queue.name for queue in ranked[:count])


def queue_curves(history: History, summary: Summary, charted: Sequence[str]) -> list[dict[str, Any]]:
    """Return, for each charted queue, what it holds by resource, its share, what it deserves, and its number of waiting
    jobs."""
    now, satisfied = history.now, {queue.name: queue.satisfied for queue in summary.queues}
    return [
        {
            "name": name,
            "satisfied": None if satisfied[name] is None else rounded(satisfied[name] or 0.0),
            "used": _held(history, history.queue_allocated.get(name, {}), summary),
            "share": means(history.queue_share.get(name), now),
            "deserved": means(history.queue_deserved.get(name), now),
            "waiting": means(history.queue_waiting.get(name), now),
        }
        for name in charted
    ]


def rest_curves(history: History, summary: Summary, curves: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the sum over all queues without a curve of their own; None if there are none."""
    if len(curves) == len(summary.queues):
        return None
    used = []
    for i, total in enumerate(_held(history, history.allocated, summary)):
        used.append(_less(total, [curve["used"][i] for curve in curves]))
    waiting = _less(means(history.waiting, history.now), [curve["waiting"] for curve in curves])
    return {"used": used, "waiting": waiting, "count": len(summary.queues) - len(curves)}


def _held(history: History, table: Mapping[str, StepSeries], summary: Summary) -> list[list[float]]:
    """Return what a queue holds by resource, in the order of the summary."""
    return [
        means(table.get(use.resource), history.now, factor=1 / per_unit(use.resource))
        for use in summary.utilisation[:RESOURCES_MAX]
    ]


def _less(total: Sequence[float], parts: Sequence[Sequence[float]]) -> list[float]:
    """Return what is left of a total, at least 0: rounding may leave a little below."""
    left = np.array(total) - np.sum(parts, axis=0) if parts else np.array(total)
    return [rounded(value) for value in np.maximum(left, 0.0).tolist()]
