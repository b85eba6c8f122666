"""Decide which jobs may be evicted for a job, by the test of an action and by plugins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.point import Point

VictimPoint = Point[[Job, JobRows], Bool, Bool]


def let_through(
    ssn: Session, job: int, point: VictimPoint, test: Callable[[int], bool] | None = None
) -> Callable[[int], bool]:
    """Return a test that is True for jobs that may be evicted: not the job itself, and allowed by the action and all
    plugins."""
    tables = ssn.tables
    if not ssn.has(point):
        return (lambda row: row != job) if test is None else (lambda row: row != job and test(row))
    # Plugins are asked once for all jobs; the search then tests one job at a time against the answer.
    rows = tables.jobs.live
    allowed = np.zeros(tables.jobs.capacity, dtype=bool)
    allowed[rows] = ssn.ask(point, Job(tables, job), JobRows(tables, rows))
    allowed[job] = False
    # The bytes of the mask: an index into them costs a third of one into an array.
    let = allowed.tobytes()
    return (lambda row: bool(let[row])) if test is None else (lambda row: bool(let[row]) and test(row))
