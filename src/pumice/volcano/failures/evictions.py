"""Decide when an eviction attempt need not be repeated: which state it rests on, and which jobs share a failure."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pumice.columns.column import Column
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt, Failure
from pumice.framework.plugin.filter_result import Code
from pumice.framework.plugin.point import NOW, Question
from pumice.placing.batch import placing_of
from pumice.volcano import points
from pumice.volcano.failures.equivalence import EqualJobs
from pumice.volcano.failures.failures import Failures

#: Points that an attempt asks about the job or its tasks, besides those about victims.
_ASKS = (
    points.job_valid,
    points.job_starving,
    points.job_pipelined,
    points.preemptive,
    points.simulate_remove_task,
    points.simulate_add_task,
    points.simulate_allocatable,
    points.simulate_predicate,
)
#: Points that it asks about queues, and about the order of jobs and victims.
#: The order decides who is tried and evicted first, so hooks about it are read as well.
_BESIDES = (
    points.allocatable,
    points.overused,
    points.job_order,
    points.task_order,
    points.queue_order,
    points.victim_queue_order,
)


def equal_failures(ssn: Session, what: str, asks: Question, budget: Budget | None = None) -> EqualJobs:
    """Return the failures of an eviction attempt named ``what``, which asks for victims at ``asks``.

    Jobs share a failure if they are equal in requests, in priority, and in what earlier actions found for them.
    """
    found_before = _FoundBefore(ssn)
    jobs = ssn.tables.jobs
    failures = Failures(
        ssn.world,
        ssn.hooks,
        ssn.memo,
        placing_of(ssn),
        ssn.trace,
        what,
        (*_ASKS, asks),
        # Any pod may become a victim, so the attempt rests on every pod, job and queue, and on all that plugins keep.
        rest_on=everything(ssn, asks),
        like=lambda job: (int(jobs.priority[job]), found_before.of(job)),
    )

    def columns_of(rows: AnyArray) -> list[AnyArray]:
        return [*failures.distinguishing_columns(rows), jobs.priority[rows], ssn.trace.failed_with(rows)]

    return EqualJobs(ssn, failures, columns_of, budget=budget)


def note_failure(ssn: Session, equal: EqualJobs, job: int, attempt: Attempt, *, fresh: bool) -> None:
    """Record an attempt that failed and changed nothing. ``fresh``: nothing of the job was placed before."""
    if fresh:
        equal.keep(job, attempt)
        return
    if attempt.undone:
        ssn.trace.take(job, attempt)
    for finding in attempt.findings:
        ssn.trace.tell(ssn.tables.jobs.uids[job], finding)


def everything(ssn: Session, asks: Question) -> list[Column[AnyArray]]:
    """Return the columns that eviction attempts rest on besides nodes: all of pods, jobs and queues, and all that
    plugins keep."""
    world, tables = ssn.world, ssn.tables
    found = [
        column for table in (tables.tasks, tables.jobs, tables.subs, tables.queues) for column in table.columns.values()
    ]
    hooks = ssn.hooks.at(asks, *_ASKS, *_BESIDES)
    # The clock only counts if a hook reads it; otherwise no failure would be valid in the next cycle.
    in_time = [world.now] if any(hook.reads is not None and NOW in hook.reads for hook in hooks) else []
    return [*found, *world.columns.values(), *in_time]


class _FoundBefore:
    """What earlier actions of the session found for a job, as a value that can be compared."""

    def __init__(self, ssn: Session) -> None:
        self._trace = ssn.trace
        self._known: dict[int, Hashable] = {}  # by number of the failure

    def of(self, job: int) -> Hashable:
        """Return what was found for a job, None for nothing."""
        number = int(self._trace.failed_with(np.array([job]))[0])
        if number < 0:
            return None
        if number not in self._known:
            self._known[number] = _value(self._trace.failure_of(job))
        return self._known[number]


def _value(failure: Failure) -> Hashable:
    """Return a failure as a value."""
    where = None if failure.last_trial is None else failure.last_trial.node.tobytes()
    # Of the errors, only nodes that are unresolvable matter here: eviction actions skip these.
    # By position and not by row, so that equal jobs have equal values.
    given_up = tuple(
        (position, each.message, _given_up(each.node_rows, each.codes)) for position, each in failure.errors
    )
    return failure.number, where, given_up


def _given_up(rows: AnyArray | None, codes: AnyArray | None) -> bytes:
    """Return the nodes that are unresolvable, as bytes."""
    return b"" if rows is None or codes is None else rows[codes == Code.UNRESOLVABLE].tobytes()
