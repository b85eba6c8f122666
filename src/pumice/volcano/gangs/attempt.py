"""What one attempt to place a job finds out as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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

#: What it counts: nodes on which evictions were tried, and the victims there were on the last one.
PREEMPTIONS_TRIED, VICTIMS_LOOKED_AT = "preemptions tried", "victims looked at"


@dataclass(slots=True)
class OpenAttempt:
    """``errors``: by task row, with those that earlier attempts in this session left. ``asked_again``: the queue was
    asked again later, and what it answered did not follow from what it had said before anything stood.
    ``unlike_others``: something happened that says nothing about jobs like this one."""

    ssn: Session
    job: int
    errors: dict[int, FitErrors] = field(init=False)
    asked: list[Question] = field(default_factory=list)
    asked_again: bool = False
    findings: list[Finding] = field(default_factory=list)
    unlike_others: bool = False

    def __post_init__(self) -> None:
        self.errors = dict(self.ssn.trace.errors_of(self.job))

    def allowed(self, queue: int, rows: list[int], stmt: Statement) -> Allowed:
        """How many of the next tasks the queue may take on."""
        if queue < 0:
            return Allowed(len(rows))
        tables = self.ssn.tables
        tasks = TaskRows(tables, np.array(rows))
        answer = self.ssn.ask(points.tasks_allowed, Queue(tables, queue), tasks)
        if not stmt.operations:
            self.asked.append(Question(tuple(rows), answer.tasks, answer.reason))
        else:
            first, placed = self.asked[0], sum(len(op.placement.rows) for op in stmt.operations)
            follows = first.tasks[placed : placed + len(rows)] == tuple(rows)
            as_said = min(len(rows), first.allowed - placed)
            self.asked_again |= not follows or answer.tasks != as_said or answer.reason != ""
        return answer

    def failed_roles(self, sub: int) -> set[int]:
        """Roles of tasks of the sub-job that found no node."""
        tasks = self.ssn.tables.tasks
        return {int(tasks.role[r]) for r in self.errors if tasks.sub[r] == sub}

    def forget(self, sub: int) -> None:
        """Forget the errors of one sub-job: it is tried elsewhere."""
        tasks = self.ssn.tables.tasks
        self.errors = {row: errors for row, errors in self.errors.items() if tasks.sub[row] != sub}

    def end(self, stmt: Statement, placed: tuple[Operation, ...] = ()) -> Attempt:
        """The attempt is over; ``placed`` stands."""
        asked = tuple(dict.fromkeys(self.asked))
        return Attempt(
            placed, tuple(stmt.undone), tuple(self.errors.items()), asked, self.asked_again, tuple(self.findings)
        )


def promised(ssn: Session, job: int, stmt: Statement) -> None:
    """The job would be ready with what it was promised: evict for it."""
    placed = tuple(op for op in stmt.save() if op.kind is Kind.PIPELINE)
    evicted = sum(len(op.placement.rows) for op in stmt.operations if op.kind is Kind.EVICT)
    if evicted:
        pods = sum(len(op.placement.rows) for op in placed)
        ssn.trace.tell(ssn.tables.jobs.uids[job], MakesRoom(evicted, pods))
    stmt.commit()
    if placed and ssn.trace.undone_of(job) is not None:
        ssn.trace.take(job, Attempt(placed, errors=tuple(ssn.trace.errors_of(job).items())))


def discarded(ssn: Session, job: int, stmt: Statement, findings: tuple[Finding, ...] = ()) -> Attempt:
    """The job would not be ready with what it was promised: take it back, and every eviction with it. What its tasks
    were promised is remembered, and what stood against them before."""
    stmt.discard()
    own = [op for op in stmt.undone if op.kind is Kind.PIPELINE]
    return Attempt(
        undone=(*_undone_before(ssn, job), *own), errors=tuple(ssn.trace.errors_of(job).items()), findings=findings
    )


def _undone_before(ssn: Session, job: int) -> Iterator[Operation]:
    """What earlier attempts in this session left undone, as operations."""
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
