"""When an attempt to have others evicted need not be repeated: what it rests on, and which jobs fail alike."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pumice.columns.column import Column
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt, Failure
from pumice.framework.plugin.filter_result import Code
from pumice.framework.plugin.point import NOW, Question
from pumice.placing.choose import placing_of
from pumice.volcano import points
from pumice.volcano.failures.equivalence import Alike
from pumice.volcano.failures.failures import Failures

#: What an attempt asks about the job itself, beside whom it may evict.
_ASKS = (points.job_valid, points.job_starving, points.job_pipelined)
#: What it asks about queues, and in which order it goes through jobs and victims.
_BESIDES = (
    points.allocatable,
    points.preemptive,
    points.overused,
    points.job_order,
    points.task_order,
    points.queue_order,
    points.victim_queue_order,
    points.simulate_allocatable,
    points.simulate_predicate,
)


def alike_failures(ssn: Session, what: str, asks: Question) -> Alike:
    """Failures of attempts (``what``) that ask for victims at ``asks``.

    Jobs fail alike that are alike in what they ask for, in their priority, and in what earlier actions found of them.
    An attempt rests on every pod, job and queue, and on whatever plugins keep.
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
        rest_on=everything(ssn, asks),
        like=lambda job: (int(jobs.priority[job]), found_before.of(job)),
    )
    return Alike(ssn, failures, lambda rows: [jobs.signature[rows], jobs.priority[rows], ssn.trace.failed_with(rows)])


def note_failure(ssn: Session, alike: Alike, job: int, attempt: Attempt, *, fresh: bool) -> None:
    """An attempt has failed and changed nothing. ``fresh``: nothing of the job stood before."""
    if fresh:
        alike.keep(job, attempt)
        return
    if attempt.undone:
        ssn.trace.take(job, attempt)
    for finding in attempt.findings:
        ssn.trace.tell(ssn.tables.jobs.uids[job], finding)


def everything(ssn: Session, asks: Question) -> list[Column[AnyArray]]:
    """Columns that attempts rest on beside nodes: every pod, job and queue, and whatever plugins keep."""
    world, tables = ssn.world, ssn.tables
    found = [
        column for table in (tables.tasks, tables.jobs, tables.subs, tables.queues) for column in table.columns.values()
    ]
    hooks = ssn.hooks.at(asks, *_ASKS, *_BESIDES)
    in_time = [world.now] if any(hook.reads is not None and NOW in hook.reads for hook in hooks) else []
    return [*found, *world.columns.values(), *in_time]


class _FoundBefore:
    """What earlier actions of the session found of a job, as a value."""

    def __init__(self, ssn: Session) -> None:
        self._trace = ssn.trace
        self._known: dict[int, Hashable] = {}  # by the number of the failure in this cycle

    def of(self, job: int) -> Hashable:
        number = int(self._trace.failed_with(np.array([job]))[0])
        if number < 0:
            return None
        if number not in self._known:
            self._known[number] = _value(self._trace.failure_of(job))
        return self._known[number]


def _value(failure: Failure) -> Hashable:
    where = None if failure.last_trial is None else failure.last_trial.node.tobytes()
    given_up = tuple(
        (position, each.message, _given_up(each.node_rows, each.codes)) for position, each in failure.errors
    )
    return failure.number, where, given_up


def _given_up(rows: AnyArray | None, codes: AnyArray | None) -> bytes:
    return b"" if rows is None or codes is None else rows[codes == Code.UNRESOLVABLE].tobytes()
