"""Which jobs may have to leave for a job, beside what an action itself says: what plugins let through."""

from __future__ import annotations

from collections.abc import Callable

from pumice.columns.dtypes import Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.point import Point

VictimPoint = Point[[Job, JobRows], Bool, Bool]


def let_through(
    ssn: Session, job: int, point: VictimPoint, test: Callable[[int], bool] | None = None
) -> Callable[[int], bool]:
    """Whether a job may leave for another: not the job itself, and whom the test and all plugins let through."""
    tables = ssn.tables
    if not ssn.has(point):
        return (lambda row: row != job) if test is None else (lambda row: row != job and test(row))
    rows = tables.jobs.live
    allowed = set(rows[ssn.ask(point, Job(tables, job), JobRows(tables, rows))].tolist())
    return lambda row: row != job and row in allowed and (test is None or test(row))
