"""Try to evict for a job: task by task, all or nothing, and with a reason if it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pumice.columns.column import Column
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.memo import Ground, ground
from pumice.framework.plugin.point import Question
from pumice.model.blockers import Blocker, CannotEvict, Domain
from pumice.placing.batch import placing_of
from pumice.volcano.eviction.node_search import waiting_tasks
from pumice.volcano.failures.evictions import equal_failures, everything, note_failure
from pumice.volcano.gangs.attempt import discarded, promised
from pumice.volcano.gangs.readiness import job_pipelined
from pumice.volcano.gangs.starving import is_starving
from pumice.volcano.topology.domains import is_for_allocate, is_let_in

#: Returns why there is no room for a task; computed only if the reason is reported.
WhyNot = Callable[[], Blocker | None]
#: Makes room for a task, by row, in a statement. Returns None if the task was pipelined to a node.
MakeRoom = Callable[[Statement, int], WhyNot | None]
#: Makes room for tasks of a job together, or does nothing. Returns True if it worked.
MakeRoomForAll = Callable[[Statement, int, Sequence[int]], bool]


class EvictForTask:
    """Attempts of one action, called ``name`` in the trace, which asks for victims at ``asks``. Attempts of one
    ``kind`` share failures."""

    def __init__(self, ssn: Session, name: str, kind: str, asks: Question, budget: Budget) -> None:
        self._ssn, self._name, self._budget = ssn, name, budget
        self.equal = equal_failures(ssn, kind, asks, budget)
        self._rest_on: list[Column[Any]] = everything(ssn, asks)
        self._failed_at: dict[tuple[int, int, int, int, str], Ground] = {}

    def for_job(self, job: int, make_room: MakeRoom, for_all: MakeRoomForAll | None = None) -> bool:
        """Make room for the tasks of a job while it is starving. Return True if that failed and changed nothing.

        ``for_all``: how to try again where it fails task by task.
        """
        ssn, budget, failed = self._ssn, self._budget, False
        if self.equal.fails(job):
            return True
        # The job fits without evictions, so allocate should place it.
        if budget.is_cut() or is_for_allocate(ssn, job, budget) or budget.is_cut():
            return False
        with ssn.fault_scope(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
            fresh, tasks = self.equal.is_fresh(job), waiting_tasks(ssn, job)
            start = stmt.mark()
            why: WhyNot | None = None
            got = 0
            for row in tasks:
                # Asked again for each task, because one that is pipelined may be the last that the job lacks.
                if not is_starving(ssn, job):
                    break
                refused = self._make_room(stmt, row, make_room)
                if budget.is_cut():
                    break
                if refused is None:
                    got += 1
                else:
                    # The first reason is reported: later tasks often fail because of it.
                    why = why or refused
            whole = job_pipelined(ssn, job) and not budget.is_cut()
            if not whole and for_all is not None and not budget.is_cut():
                # Before the rollback, because the reason is about the state in which the task was refused.
                why = _computed(why)
                stmt.rollback(start)
                whole = for_all(stmt, job, tasks) and job_pipelined(ssn, job) and not budget.is_cut()
            # Tried as a whole, since victims were found node by node, and a hard topology needs all nodes together.
            if whole and is_let_in(ssn, stmt, start, job, budget):
                promised(ssn, job, stmt)
                budget.changes += 1
            elif budget.is_cut():
                # It proves nothing, so nothing is kept of it, and the budget says why the job waits.
                stmt.discard()
            else:
                failed = True
                why = Domain if whole else why
                findings = (CannotEvict(self._name, got, len(tasks), why()),) if why is not None else ()
                note_failure(ssn, self.equal, job, discarded(ssn, job, stmt, findings), fresh=fresh)
        return failed

    def _make_room(self, stmt: Statement, row: int, make_room: MakeRoom) -> WhyNot | None:
        """Make room for a task, unless an equal task of the job failed and nothing has changed since."""
        job, kind = int(self._ssn.tables.tasks.job[row]), self._kind(row)
        if (job, *kind) in self._failed_at and self._failed_at[job, *kind] == self._now():
            # No reason of its own: the equal task's is reported.
            return lambda: None
        refused = make_room(stmt, row)
        # A hook about single tasks may refuse one task and accept the next.
        if refused is not None and self.equal.are_tasks_equal(job):
            self._failed_at[job, *kind] = self._now()
        return refused

    def _kind(self, row: int) -> tuple[int, int, int, str]:
        """Return the values in which equal tasks of a job agree."""
        tasks = self._ssn.tables.tasks
        # A task whose nominated node no longer exists may preempt, while others wait for theirs, so the node belongs
        # to the key.
        return int(tasks.cls[row]), int(tasks.role[row]), int(tasks.priority[row]), tasks.pods[row].nominated_node

    def _now(self) -> Ground:
        """Return the versions on which a failure rests."""
        return (*placing_of(self._ssn).feasible.everything(), *ground(*self._rest_on))


def _computed(why: WhyNot | None) -> WhyNot | None:
    """Return what returns the reason as it is now."""
    if why is None:
        return None
    found = why()
    return lambda: found
