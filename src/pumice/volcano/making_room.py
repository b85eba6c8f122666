"""Attempts to have others evicted for a job: task by task, all or nothing, and with what stood against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pumice.columns.column import Column
from pumice.framework.memo import Ground, ground
from pumice.framework.point import Question
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.volcano.attempts import discarded, promised
from pumice.volcano.eviction_failures import alike_failures, everything, note_failure
from pumice.volcano.readiness import job_pipelined
from pumice.volcano.search import waiting_tasks
from pumice.volcano.starving import is_starving

#: Makes room for one task (a row) in a statement. None when the task was promised a node, else who can say why not.
MakeRoom = Callable[[Statement, int], Callable[[], str] | None]


class RoomMaking:
    """The attempts of one action (``name``, as the story has it), which asks for victims at ``asks``. Attempts of one
    ``kind`` fail alike."""

    def __init__(self, ssn: Session, name: str, kind: str, asks: Question) -> None:
        self._ssn, self._name = ssn, name
        self.alike = alike_failures(ssn, kind, asks)
        self._rest_on: list[Column[Any]] = everything(ssn, asks)
        self._failed_at: dict[tuple[int, int, int, int], Ground] = {}

    def for_job(self, job: int, make_room: MakeRoom) -> bool:
        """Go through the job's tasks as long as it starves. Whether it failed, and changed nothing."""
        ssn, failed = self._ssn, False
        if self.alike.fails(job):
            return True
        with ssn.turn(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
            fresh, tasks, why = self.alike.is_fresh(job), waiting_tasks(ssn, job), None
            count = got = 0
            while count < len(tasks) and is_starving(ssn, job):
                stuck = self._make_room(stmt, tasks[count], make_room)
                count += 1
                got += stuck is None
                why = why or stuck
            if job_pipelined(ssn, job):
                promised(ssn, job, stmt)
            else:
                failed = True
                told = ((f"cannot {self._name}", _in_words(got, len(tasks), why())),) if why is not None else ()
                note_failure(ssn, self.alike, job, discarded(ssn, job, stmt, told), fresh=fresh)
        return failed

    def _make_room(self, stmt: Statement, row: int, make_room: MakeRoom) -> Callable[[], str] | None:
        """But for tasks like one of the job for which that was tried in vain, and nothing has changed since."""
        tasks = self._ssn.tables.tasks
        job = int(tasks.job[row])
        kind = job, int(tasks.cls[row]), int(tasks.role[row]), int(tasks.priority[row])
        if kind in self._failed_at and self._failed_at[kind] == self._now():
            return lambda: ""
        stuck = make_room(stmt, row)
        if stuck is not None and self.alike.are_tasks_alike(job):
            self._failed_at[kind] = self._now()
        return stuck

    def _now(self) -> Ground:
        return (*self._ssn.placing.feasible.everything(), *ground(*self._rest_on))


def _in_words(promised_count: int, waiting: int, why: str) -> str:
    return f"{promised_count} of {waiting} pods could be promised a node; then {why}" if promised_count else why
