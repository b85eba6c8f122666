"""What jobs that wait ask for."""

from __future__ import annotations

from pumice.algorithms.sums import sums_by
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import F64
from pumice.columns.tables import Tables


def waiting_amounts(tables: Tables) -> F64:
    """Return what the pods of each job that wait ask for together. Shape (J, R)."""
    tasks, jobs = tables.tasks, tables.jobs
    rows = (tasks.alive & (tasks.job >= 0) & (tasks.status == PENDING)).nonzero()[0]
    found = sums_by(tasks.job[rows], tables.classes.req[tasks.cls[rows]], len(jobs.queue))
    # Volcano creates the pods of a job only once it is admitted; before, its minimum says what it asks for.
    unborn = jobs.alive & jobs.has_min & (jobs.size == 0)
    found[unborn] = jobs.min_resources[unborn]
    return found
