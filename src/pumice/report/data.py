"""The data of the HTML report as plain values. Their size is bounded: a number of points and jobs that does not depend
on how long the simulation was. Times are seconds from the start."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from pumice.model.plain_words import first_names
from pumice.reasons.words import counted, short_name
from pumice.report.curves import QUEUES_CHARTED, largest_queues, queue_curves, resource_curves, rest_curves, rounded
from pumice.report.job_data import cut, job_data
from pumice.report.spread import Spread
from pumice.report.summary import FAIRNESS_OF, QueueSummary, Summary, left_of, waiting_groups, waits_by_code
from pumice.report.units import amount, duration, percent
from pumice.sim.measures.history import History
from pumice.sim.scenes.inputs import Inputs

QUEUES_NAMED = 7  # with a colour of their own; the others are one
QUEUES_LISTED = 200
PENDING_MAX = 40
JOBS_NAMED = 3
PROBLEMS_MAX = 60


class ReportData(Struct, frozen=True):
    """The data of the page, one field for each part. ``to_json`` returns what its script reads."""

    title: str
    subtitle: str
    end_s: float
    facts: list[list[str]]
    headlines: list[dict[str, str]]
    resources: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    rest: dict[str, Any] | None
    colours: list[str]
    waits: dict[str, Any]
    jobs: dict[str, Any]
    heat: dict[str, Any]
    table: list[dict[str, Any]]
    reasons: list[dict[str, Any]]
    pending: list[dict[str, Any]]
    problems: list[dict[str, str]]
    fairness: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": "simulation", **asdict(self)}


def report_data(summary: Summary, inputs: Inputs, conf: str) -> ReportData:
    """Return everything that the page shows."""
    history, result = summary.run.history, summary.run.result
    curves = queue_curves(history, summary, largest_queues(summary, QUEUES_CHARTED))
    return ReportData(
        title="Pumice simulation",
        subtitle=cut(", ".join(inputs.sources)),
        end_s=result.simulated_s,
        facts=_facts(summary, inputs, conf),
        headlines=_headlines(summary),
        resources=resource_curves(history, summary),
        queues=[{**curve, "name": cut(curve["name"])} for curve in curves],
        rest=rest_curves(history, summary, curves),
        colours=[cut(name) for name in largest_queues(summary, QUEUES_NAMED)],
        waits=_waits(history, summary.wait),
        jobs=job_data(summary.run),
        heat=_heat(history),
        table=[_queue_row(queue) for queue in summary.queues[:QUEUES_LISTED]],
        reasons=waits_by_code(summary.run),
        pending=_pending(summary),
        problems=_problems(summary, inputs),
        fairness=FAIRNESS_OF,
    )


# -- words and numbers


def _facts(summary: Summary, inputs: Inputs, conf: str) -> list[list[str]]:
    run, result = summary.run, summary.run.result
    endings = {
        "done": "all jobs ended",
        "until": "until the given time",
        "interrupted": "interrupted",
        "circles": "states repeated",
        "stuck": "nothing more could happen",
    }
    return [
        ["Policy", cut(conf)],
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
        found.append(_headline(f"{short_name(use.resource)} utilisation", percent(use.mean), note))
    left = list(left_of(result))
    left += [f"{len(result.to_come):,} to come"] * bool(result.to_come)
    found.append(_headline("Jobs done", f"{result.completed:,}", ", ".join([f"of {result.jobs:,}", *left])))
    if wait is not None:
        found.append(_headline("Median wait", wait.text(wait.p50, duration), "from arrival until the gang runs"))
        found.append(
            _headline(
                "99 % waited at most",
                wait.text(wait.p99, duration),
                f"mean {duration(wait.mean)}, longest {duration(wait.max)}",
            )
        )
    if summary.completion is not None:
        ends = summary.completion
        found.append(
            _headline(
                "Median completion",
                ends.text(ends.p50, duration),
                f"from arrival to the end; 99 % within {ends.text(ends.p99, duration)}",
            )
        )
    fairness = summary.fairness
    if fairness.jain is not None:
        note = "Jain's index over queues; 1 is even"
        if fairness.contended is not None:
            note += f"; {fairness.contended:.3f} while contended"
        found.append(_headline("Fairness", f"{fairness.jain:.3f}", note))
    return found


def _headline(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def _queue_row(queue: QueueSummary) -> dict[str, Any]:
    return {
        "name": cut(queue.name),
        "jobs": queue.jobs,
        "completed": queue.completed,
        "pending": queue.pending,
        "share": rounded(queue.share),
        "deserved": rounded(queue.deserved),
        "wait": _spread(queue.wait),
        "completion": _spread(queue.completion),
    }


def _spread(found: Spread | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {name: None if value is None else rounded(value) for name, value in asdict(found).items()}


def _pending(summary: Summary) -> list[dict[str, Any]]:
    return [
        {
            "queue": cut(group.queue),
            "code": group.code,
            "why": cut(group.why),
            "count": len(group.jobs),
            "jobs": cut(first_names(group.jobs, JOBS_NAMED)),
            "pods": group.pods,
            "longest_s": group.longest_s,
        }
        for group in waiting_groups(summary.run.waiting)[:PENDING_MAX]
    ]


def _problems(summary: Summary, inputs: Inputs) -> list[dict[str, str]]:
    listed = [(p.severity.value, p.where, p.what) for p in (*summary.problems, *inputs.scene.problems)]
    listed += [("note", "", note) for note in inputs.scene.notes]
    return [{"severity": s, "where": cut(where), "what": cut(what)} for s, where, what in listed[:PROBLEMS_MAX]]


# -- distributions, bars, cells


def _waits(history: History, wait: Spread | None) -> dict[str, Any]:
    """Return how many jobs waited how long, in bins of equal ratio. ``edges``: where each bin begins; the first one has
    all waits below a second."""
    found = np.array([r.wait_s for r in history.jobs if r.wait_s is not None])
    never = sum(record.started is None for record in history.jobs)
    if not len(found):
        return {"edges": [], "counts": [], "marks": [], "never": never}
    quarters = max(1, int(np.ceil(np.log10(max(float(found.max()), 1.5)) * 4)))
    edges = np.concatenate([[0.0], 10 ** (np.arange(quarters) / 4)])
    counts, _ = np.histogram(found, np.append(edges, np.inf))
    named = (("p50", wait.p50), ("p90", wait.p90), ("p99", wait.p99)) if wait is not None else ()
    marks = [[name, rounded(value)] for name, value in named if value is not None]
    return {"edges": [rounded(e) for e in edges.tolist()], "counts": counts.tolist(), "marks": marks, "never": never}


def _heat(history: History) -> dict[str, Any]:
    """Return busy shares in steps of 1/255, row by row, one byte for each cell, as base64. ``rows``: (first node, last
    node, number of nodes)."""
    rows, width, grid = history.heat()
    cells = np.array(grid, dtype=np.float64)
    if not cells.size:
        return {"rows": [], "columns": 0, "width_s": width, "cells": ""}
    levels = np.clip(np.rint(cells * 255), 0, 255).astype(np.uint8)
    return {
        "rows": [[cut(names[0]), cut(names[-1]), len(names)] if names else ["", "", 0] for names in rows],
        "columns": levels.shape[1],
        "width_s": width,
        "cells": base64.b64encode(levels.tobytes()).decode(),
    }
