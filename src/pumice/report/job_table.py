"""Every job of a simulation as a row: for spreadsheets and data frames. Times are seconds from the start."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import IO

from pumice.report import batsim
from pumice.report.batsim import Placements
from pumice.report.summary import slowdown
from pumice.report.units import shortest
from pumice.sim.measures.history import JobRecord
from pumice.sim.run import Run

HEADER = (
    "job",
    "queue",
    "pods",
    "state",  # done, running, waiting (again, after it was broken up), never (it cannot run), to come
    "measured",  # 1: it arrived in the time that figures are about
    "submitted_s",
    "admitted_s",
    "started_s",  # its gang ran for the first time
    "ended_s",
    "run_s",  # how long it takes where nothing disturbs it
    "wait_s",
    "completion_s",
    "slowdown",
    "restarts",
    "evicted",  # pods
    "lost_s",  # for how long its gang ran in vain
    "waited_for",  # the code of the reason of most of its wait
)


def write_jobs(file: IO[str], run: Run, placements: Placements) -> None:
    """Write a CSV table with a header, in order of arrival: our columns, then those of Batsim. Missing values are
    empty."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow((*HEADER, *batsim.HEADER))
    start, jobs = run.history.start, run.history.jobs
    of_batsim = (batsim.cells(each, start, placements.of(each.key)) for each in jobs)
    # Jobs that had not arrived are last, and Batsim's table has none of them.
    for row, more in zip_longest(job_rows(run), of_batsim, fillvalue=(None,) * len(batsim.HEADER)):
        writer.writerow(["" if value is None else value for value in (*row, *map(_number, more))])


def job_rows(run: Run) -> Iterator[Sequence[object]]:
    """Return the cells of each job, by HEADER, None for a missing value."""
    history = run.history
    start, window, states = history.start, history.figures.window, _states(run)
    for each in history.jobs:
        times = (each.submitted, each.admitted, each.started, each.ended)
        completion_s = each.completion_s
        known = completion_s is not None and math.isfinite(each.run_s)
        yield (
            each.key,
            each.queue,
            each.size,
            "done" if each.ended is not None else states.get(each.key, "running"),
            int(each.submitted in window),
            *(None if moment is None else _plain(moment - start) for moment in times),
            _plain(each.run_s) if math.isfinite(each.run_s) else None,
            None if each.wait_s is None else _plain(each.wait_s),
            None if completion_s is None else _plain(completion_s),
            _plain(slowdown(completion_s, each.run_s)) if completion_s is not None and known else None,
            each.restarts,
            each.evicted,
            _plain(each.lost_s),
            waited_for(each, history.now),
        )
    for work in run.result.to_come:
        run_s = _plain(work.duration_s) if math.isfinite(work.duration_s) else None
        nothing = (None,) * (len(HEADER) - 10)
        yield (work.key, work.queue, None, "to come", 0, _plain(work.arrival_s), None, None, None, run_s, *nothing)


def waited_for(record: JobRecord, now: float) -> str | None:
    """Return the code of the reason for which a job waited longest; None if no cycle considered it meanwhile."""
    until = record.started if record.started is not None else now if record.ended is None else record.ended
    seconds: dict[str, float] = {}
    for (since, code), (end, _) in pairwise([*record.codes, (until, "")]):
        seconds[code] = seconds.get(code, 0.0) + end - since
    return max(seconds, key=lambda code: seconds[code], default=None)


def _states(run: Run) -> dict[str, str]:
    """Return the state of each job that does not run and has not ended."""
    waiting = dict.fromkeys(run.result.waiting, "waiting")
    return waiting | {each.job: "never" for each in run.stuck if each.impossible is not None}


def _number(value: object) -> object:
    return _plain(value) if isinstance(value, float) else value


def _plain(value: float) -> float | int:
    """Return a number of seconds to the microsecond."""
    return shortest(value, 6)
