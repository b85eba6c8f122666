"""Jobs on a line of time: those that ended, run, are reserved for, and wait."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pumice.web.expected_starts import SeenStarts
from pumice.web.jobs_query import JobsIndex, JobsQuery
from pumice.web.past_jobs import PastJob
from pumice.web.summary import CODES, STATES

#: Rows of each kind at most: a picture of more is not read.
KIND_MAX = 30
_WAITING = ("reserved", "waits")
_RUNNING = ("starts", "partly runs", "runs")


def gantt(
    index: JobsIndex, past: Iterable[PastJob], query: JobsQuery, starts: SeenStarts | None = None
) -> dict[str, Any]:
    """Return rows of the jobs that a query matches, by their start or arrival, and how many are left out of each kind.

    Those that run longest, that wait longest with reservations first, and that ended last. ``starts``: when jobs that
    wait are expected to start. Raises: QueryError.
    """
    jobs, matching = index.jobs, index.matching(query)
    state = np.array([*STATES])[jobs.state]
    running = np.flatnonzero(matching & np.isin(state, _RUNNING))
    waiting = np.flatnonzero(matching & np.isin(state, _WAITING))
    running = running[np.argsort(np.nan_to_num(jobs.started[running], nan=math.inf), kind="stable")]
    waiting = waiting[np.lexsort((jobs.created[waiting], state[waiting] != "reserved"))]
    ended = [each for each in past if _is_meant(index, each, query)][::-1]
    rows = [_row(index, row) for row in (*running[:KIND_MAX].tolist(), *waiting[:KIND_MAX].tolist())]
    rows += [_past_row(each) for each in ended[:KIND_MAX]]
    if starts is not None:
        for row in rows:
            if row["state"] in _WAITING:
                row["start"] = starts.of(row["name"])
    rows.sort(key=lambda row: (row["started"] or row["created"], row["name"]))
    return {
        "now": index.summary.at,
        "reserves_from": index.summary.reserves_from,
        "rows": rows,
        "basis": None if starts is None else starts.basis,
        "left_out": {
            "run": max(len(running) - KIND_MAX, 0),
            "wait": max(len(waiting) - KIND_MAX, 0),
            "ended": max(len(ended) - KIND_MAX, 0),
        },
    }


def _is_meant(index: JobsIndex, job: PastJob, query: JobsQuery) -> bool:
    queues = index.summary.queues.names
    of_queue = not query.queue or any(
        within and name == job.queue for name, within in zip(queues, index.in_queue(query.queue), strict=True)
    )
    return query.text in job.name and of_queue


def _row(index: JobsIndex, row: int) -> dict[str, Any]:
    jobs, summary = index.jobs, index.summary
    code = int(jobs.code[row])
    return {
        "name": jobs.names[row],
        "queue": summary.queues.names[jobs.queue[row]],
        "state": STATES[jobs.state[row]],
        "created": float(jobs.created[row]),
        "started": _known(jobs.started[row]),
        "ends": _known(jobs.ends[row]),
        "ended": None,
        "start": None,
        "code": CODES[code].value if code >= 0 else "",
        "sentence": jobs.sentences[row],
    }


def _past_row(job: PastJob) -> dict[str, Any]:
    return {
        "name": job.name,
        "queue": job.queue,
        "state": "ended",
        "created": job.created,
        "started": _known(job.started),
        "ends": None,
        "ended": job.ended,
        "start": None,
        "code": "",
        "sentence": "",
    }


def _known(moment: float) -> float | None:
    return None if math.isnan(moment) else float(moment)
