"""Collect what an attempt to place a job finds out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from pumice.columns.placement import Placement
from pumice.columns.rows import TaskRows
from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.cycle.trace import AFTER, Attempt, Finding, Kind, MakesRoom, Operation, Question
from pumice.framework.plugin.combine import Allowed
from pumice.framework.plugin.filter_result import FitErrors
from pumice.volcano import points

_NO_ERRORS: Mapping[int, FitErrors] = MappingProxyType({})

#: Counters: nodes on which evictions were tried, and the number of victims on the last one.
PREEMPTIONS_TRIED, VICTIMS_LOOKED_AT = "preemptions tried", "victims looked at"


@dataclass(slots=True)
class OpenAttempt:
    """An attempt that has not ended.

    ``errors``: by task row, including those of earlier attempts in this session. ``asked_again``: the queue was asked
    after something was placed, and its answer did not follow from the first one. ``unlike_others``: something happened
    that does not hold for equal jobs.
    """

    ssn: Session
    job: int
    errors: Mapping[int, FitErrors] = field(init=False)
    asked: list[Question] = field(default_factory=list)
    asked_again: bool = False
    findings: list[Finding] = field(default_factory=list)
    unlike_others: bool = False
    _errors: dict[int, FitErrors] = field(default_factory=dict)
    _failed: set[tuple[int, int]] = field(default_factory=set)  # sub-jobs and roles of tasks with errors

    def __post_init__(self) -> None:
        self.begin(self.ssn.trace.errors_of(self.job))

    def begin(self, errors: Mapping[int, FitErrors] = _NO_ERRORS) -> None:
        """Replace the errors, by task row, by others."""
        # Copied, since an attempt may be discarded, and the trace then keeps what it had.
        self._errors, self._failed = {}, set()
        self.errors = MappingProxyType(self._errors)
        for row, each in errors.items():
            self.fail(row, each)

    def fail(self, row: int, errors: FitErrors) -> None:
        """Note that a task found no node."""
        tasks = self.ssn.tables.tasks
        self._errors[row] = errors
        # Kept beside the errors: a large gang asks after each task that failed.
        self._failed.add((int(tasks.sub[row]), int(tasks.role[row])))

    def allowed(self, queue: int, rows: list[int], stmt: Statement) -> Allowed:
        """Return how many of the next tasks the queue may take."""
        if queue < 0:
            return Allowed(len(rows))
        tables = self.ssn.tables
        tasks = TaskRows(tables, np.array(rows))
        answer = self.ssn.ask(points.tasks_allowed, Queue(tables, queue), tasks)
        # The first answers are kept with the failure, which holds as long as the queue repeats them. Later answers
        # count what this attempt has placed. They need not be kept if they follow from the first one: fewer left by
        # what was placed.
        if not stmt.operations:
            self.asked.append(Question(tuple(rows), *answer))
        else:
            first, placed = self.asked[0], sum(len(op.placement.rows) for op in stmt.operations)
            follows = first.tasks[placed : placed + len(rows)] == tuple(rows)
            as_said = min(len(rows), first.allowed - placed)
            self.asked_again |= not follows or answer.tasks != as_said or answer.reason != ""
        return answer

    def failed_roles(self, sub: int) -> set[int]:
        """Return the roles of which a task of the sub-job found no node."""
        return {role for each, role in self._failed if each == sub}

    def forget(self, sub: int) -> None:
        """Remove the errors of a sub-job before it is tried elsewhere."""
        tasks = self.ssn.tables.tasks
        self.begin({row: errors for row, errors in self.errors.items() if tasks.sub[row] != sub})

    def end(self, stmt: Statement, placed: tuple[Operation, ...] = ()) -> Attempt:
        """Return the finished attempt; ``placed`` are the operations that were not undone."""
        # Once each: trials in many domains ask the same question first.
        asked = tuple(dict.fromkeys(self.asked))
        return Attempt(
            placed, tuple(stmt.undone), tuple(self.errors.items()), asked, self.asked_again, tuple(self.findings)
        )


def promised(ssn: Session, job: int, stmt: Statement) -> None:
    """Commit the evictions of a job that is ready once the victims are gone."""
    placed = tuple(op for op in stmt.save() if op.kind is Kind.PIPELINE)
    evicted = sum(len(op.placement.rows) for op in stmt.operations if op.kind is Kind.EVICT)
    if evicted:
        pods = sum(len(op.placement.rows) for op in placed)
        ssn.trace.tell(ssn.tables.jobs.uids[job], MakesRoom(evicted, pods))
    stmt.commit()
    # A failure of an earlier action is replaced, since the job has a place now.
    if placed and ssn.trace.undone_of(job) is not None:
        ssn.trace.take(job, Attempt(placed, errors=tuple(ssn.trace.errors_of(job).items())))


def discarded(ssn: Session, job: int, stmt: Statement, findings: tuple[Finding, ...] = ()) -> Attempt:
    """Roll back the evictions and pipelined tasks of a job that would not be ready. Return the attempt.

    The attempt keeps where its tasks were pipelined, and errors of earlier actions.
    """
    # First, because that is what fills ``undone``.
    stmt.discard()
    own = [op for op in stmt.undone if op.kind is Kind.PIPELINE]
    return Attempt(
        undone=(*_undone_before(ssn, job), *own), errors=tuple(ssn.trace.errors_of(job).items()), findings=findings
    )


def _undone_before(ssn: Session, job: int) -> Iterator[Operation]:
    """Yield placements that earlier attempts in this session undid, as operations."""
    last_trial = ssn.trace.undone_of(job)
    if last_trial is None:
        return
    each = zip(
        ssn.tables.jobs.tasks[job].tolist(),
        last_trial.status.tolist(),
        last_trial.node.tolist(),
        last_trial.evicted,
        strict=True,
    )
    for row, status, node, evicted in each:
        if status >= 0:
            kind = next(kind for kind, after in AFTER.items() if after == status)
            yield Operation(kind, Placement([row], [node]), evicted=bool(evicted))
