"""Sum up what the jobs of each queue hold, request and were promised, for plugins that share the cluster among queues
and for the status of queues. Source: Volcano proportion and capacity plugins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.counting import HELD, PENDING
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.jobs import INQUEUE_PHASE, RUNNING_PHASE
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.framework.memo import ground
from pumice.volcano.queues.admitted import without_gated
from pumice.volcano.queues.empty_groups import given_back

#: Columns that ``held_by_queues`` follows from.
HELD_BY_QUEUES = ("alive", "queue", "allocated")
#: Columns of jobs and of tasks that ``queue_amounts`` follows from.
_OF_JOBS = (*HELD_BY_QUEUES, "min_resources", "has_min", "phase", "counts", "min_available", "gated")
_OF_TASKS = ("job", "cls", "status", "gate")


class QueueAmounts(NamedTuple):
    """Amounts of a queue's own jobs, all (Q, R). Read-only.

    ``allocated``: what tasks hold. ``elastic``: the part of it above the jobs' minimums. ``request``: allocated plus
    pending tasks. ``inqueue``: what the minimums of jobs exceed their allocated amounts by, for jobs that are
    admitted, or that run and hold their minimum in number. ``claimed``: the same with the whole minimum of admitted
    jobs. ``has_jobs`` (Q,): whether the queue has any job.
    """

    allocated: F64
    elastic: F64
    request: F64
    inqueue: F64
    claimed: F64
    has_jobs: Bool


def queue_amounts(ssn: Session) -> QueueAmounts:
    """Return the amounts as they were when first asked for in the session."""
    # Once per session: plugins begin their own columns with these, and then count placements themselves.
    return ssn.shared(QueueAmounts, lambda: _kept(ssn))


def held_by_queues(ssn: Session) -> F64:
    """Return what tasks of each queue's own jobs hold at this moment (Q, R). It follows from the columns
    HELD_BY_QUEUES."""
    rows = _jobs_of_queues(ssn)
    return _summed(ssn, rows, ssn.tables.jobs.allocated[rows])


def _kept(ssn: Session) -> QueueAmounts:
    """Return the amounts, which are summed up again if jobs, tasks or queues have changed since the last cycle."""
    tables, back = ssn.tables, given_back(ssn)
    jobs, tasks = [tables.jobs[name] for name in _OF_JOBS], [tables.tasks[name] for name in _OF_TASKS]
    rests_on = (len(tables.queues), len(tables.axis), *back, *ground(*jobs, *tasks))
    # Otherwise a cycle in which jobs wait and nothing has changed would look at each job and each pod.
    return ssn.memo.get("amounts of queues", rests_on, lambda: _summed_up(ssn, back))


def _summed_up(ssn: Session, back: list[int]) -> QueueAmounts:
    """Sum up what jobs add to the amounts of their queues, in the order of jobs. ``back``: admitted jobs that are
    promised nothing."""
    jobs, rows, width = ssn.tables.jobs, _jobs_of_queues(ssn), len(ssn.tables.axis)
    held, least = jobs.allocated[rows], jobs.min_resources[rows]
    admitted, running = _promised(ssn.tables, rows)
    admitted &= ~np.isin(rows, back)
    # Of jobs without minResources, all that is held counts as elastic, since their minimum is 0.
    over = held - least
    missing = without_gated(ssn, rows, np.maximum(least - held, 0.0)) * (admitted | running)[:, None]
    claimed = np.where(admitted[:, None], without_gated(ssn, rows, least), missing)
    request = held + _pending(ssn.tables)[rows]
    parts = np.concatenate((held, np.maximum(over, 0.0), request, missing, claimed), axis=1)
    # One pass for all five amounts, since jobs are many.
    sums = _summed(ssn, rows, parts)
    amounts = [np.ascontiguousarray(sums[:, at : at + width]) for at in range(0, 5 * width, width)]
    has_jobs = np.bincount(jobs.queue[rows], minlength=len(sums)) > 0
    for array in (*amounts, has_jobs):
        # Several plugins begin with the same arrays, and none of them may change what the others see.
        array.setflags(write=False)
    return QueueAmounts._make((*amounts, has_jobs))


def _jobs_of_queues(ssn: Session) -> AnyArray:
    jobs = ssn.tables.jobs
    return (jobs.alive & (jobs.queue >= 0)).nonzero()[0]


def _summed(ssn: Session, rows: AnyArray, parts: F64) -> F64:
    """Sum amounts of jobs by queue (Q, …)."""
    return sums_by(ssn.tables.jobs.queue[rows], parts, len(ssn.tables.queues))


def _promised(tables: Tables, rows: AnyArray) -> tuple[Bool, Bool]:
    """Return two masks of jobs that are promised their minimum: those that are admitted, and those that run and hold at
    least their minimum in number. Shapes (rows,). Source: Volcano GetInqueueResource."""
    jobs = tables.jobs
    phase, has_min = jobs.phase[rows], jobs.has_min[rows]
    # A job that runs below its minimum is promised nothing: in Volcano it must be admitted anew.
    running = has_min & (phase == RUNNING_PHASE) & (jobs.counts[rows] @ HELD >= jobs.min_available[rows])
    return has_min & (phase == INQUEUE_PHASE), running


def _pending(tables: Tables) -> F64:
    """Return what pending tasks of each job request. Shape (J, R)."""
    tasks, req = tables.tasks, tables.classes.req
    rows = ((tasks.status == PENDING) & (tasks.job >= 0)).nonzero()[0]
    return sums_by(tasks.job[rows], req[tasks.cls[rows]], tables.jobs.capacity)
