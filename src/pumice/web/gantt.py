"""Jobs on a line of time: those that ended, run, are reserved for, and wait."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pumice.runtime.job_states import CODES, ENDED, STATES, STATES_ON_NODES, STATES_WAITING
from pumice.runtime.job_times import JobTime, JobTimes
from pumice.web.expected_starts import SeenStarts
from pumice.web.jobs_query import JobsIndex, JobsQuery

#: Rows of each kind at most: a picture of more is not read.
KIND_MAX = 30
#: Moments of one row, the last ones.
_MOMENTS_MAX = 40
#: Says whether a viewer may see a job.
Sees = Callable[[str], bool]


def gantt(
    index: JobsIndex, times: JobTimes, query: JobsQuery, sees: Sees, starts: SeenStarts | None = None
) -> dict[str, Any]:
    """Return rows of the jobs that a query matches, by their start or arrival, and how many are left out of each kind.

    Those that run longest, that wait longest with reservations first, and that ended last. ``starts``: when jobs that
    wait are expected to start. Raises: QueryError.
    """
    jobs, matching = index.jobs, index.matching(query)
    state = np.array([*STATES])[jobs.state]
    running = np.flatnonzero(matching & np.isin(state, STATES_ON_NODES))
    waiting = np.flatnonzero(matching & np.isin(state, STATES_WAITING))
    running = running[np.argsort(np.nan_to_num(jobs.started[running], nan=math.inf), kind="stable")]
    waiting = waiting[np.lexsort((jobs.created[waiting], state[waiting] != "reserved"))]
    gone, ended = _gone(index, times, query, sees), np.flatnonzero(matching & (state == STATES[ENDED]))
    rows = [_row(index, times, row) for row in (*running[:KIND_MAX].tolist(), *waiting[:KIND_MAX].tolist())]
    # The newest of those that are still there, and of those that are not.
    newest = ended[np.argsort(-jobs.created[ended], kind="stable")][:KIND_MAX].tolist()
    past = [times.of(name) for name in (*gone[:KIND_MAX], *(jobs.names[row] for row in newest))]
    over = sorted((_past_row(each) for each in past if each is not None), key=lambda row: -(row["ended"] or 0.0))
    rows += over[:KIND_MAX]
    if starts is not None:
        for row in rows:
            if row["state"] in STATES_WAITING:
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
            "ended": max(len(gone) + len(ended) - KIND_MAX, 0),
        },
    }


def _gone(index: JobsIndex, times: JobTimes, query: JobsQuery, sees: Sees) -> list[str]:
    """Return the jobs of a query that are there no more, the last one first."""
    queues = index.summary.queues.names
    within = {queues[row] for row in index.in_queue(query.queue).nonzero()[0].tolist()} if query.queue else None
    return [
        name
        for name, queue in times.gone()
        if (query.text in name or query.text in times.shown(name))
        and (within is None or queue in within)
        and sees(name)
    ]


def _row(index: JobsIndex, times: JobTimes, row: int) -> dict[str, Any]:
    jobs, summary = index.jobs, index.summary
    code = int(jobs.code[row])
    return {
        "name": jobs.names[row],
        "shown": jobs.shown[row],
        "queue": summary.queues.names[jobs.queue[row]],
        "state": STATES[jobs.state[row]],
        "created": float(jobs.created[row]),
        "started": _known(jobs.started[row]),
        "ends": _known(jobs.ends[row]),
        "ended": None,
        "start": None,
        "moments": _moments(times.of(jobs.names[row])),
        "code": CODES[code].value if code >= 0 else "",
        "sentence": jobs.sentences[row],
    }


def _past_row(job: JobTime) -> dict[str, Any]:
    return {
        "name": job.name,
        "shown": job.shown,
        "queue": job.queue,
        "state": "ended",
        "created": job.created,
        "started": job.started,
        "ends": None,
        "ended": job.ended,
        "start": None,
        "moments": _moments(job),
        "code": "",
        "sentence": "",
    }


def _moments(job: JobTime | None) -> list[tuple[float, str]]:
    return [] if job is None else [(each.at, each.label) for each in job.moments[-_MOMENTS_MAX:]]


def _known(moment: float) -> float | None:
    return None if math.isnan(moment) else float(moment)
