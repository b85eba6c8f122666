"""Jobs that fail as others like them did, without being tried."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.algorithms.groups import of_equal
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.ordering import Heap, Line
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt, Failure
from pumice.volcano.failures.failures import Failures


class Alike:
    """Failures of one kind of attempt, as an action uses them. ``telling``: columns, each (rows,), in which jobs must
    be equal to fail alike; as by default their scheduling signatures. ``tried``: jobs that are tried all the same, for
    a turn does more for them than to place their tasks."""

    def __init__(
        self,
        ssn: Session,
        failures: Failures,
        telling: Callable[[AnyArray], list[AnyArray]] | None = None,
        *,
        tried: frozenset[int] = frozenset(),
    ) -> None:
        self._ssn, self._failures, self._tried = ssn, failures, tried
        self._telling = telling or (lambda rows: [ssn.tables.jobs.signature[rows]])

    def is_fresh(self, job: int) -> bool:
        """Whether a failure of the job may say something about others."""
        return self._failures.is_fresh(job)

    def are_tasks_alike(self, job: int) -> bool:
        """Whether what happens to one task of the job would happen to an equal one."""
        return self._failures.stands_for_all(job)

    def keep(self, job: int, attempt: Attempt) -> None:
        """The attempt of a job that was fresh before has failed, and changed nothing."""
        self._failures.keep(job, attempt)
        for finding in attempt.findings:
            self._ssn.trace.tell(self._ssn.tables.jobs.uids[job], finding)

    def fails(self, job: int) -> bool:
        """Let the job fail as one like it did, if it would; False when it has to be tried."""
        if job in self._tried:
            return False
        failure = self._failures.of(job) if self._failures.is_fresh(job) else None
        if failure is None:
            return False
        self._ssn.trace.fail(np.array([job]), failure)
        for finding in failure.findings:
            self._ssn.trace.tell(self._ssn.tables.jobs.uids[job], finding)
        return True

    def go_on(self, jobs: Heap | Line) -> None:
        """After a failure: the next jobs, as long as they fail as others did, for nothing that decides about turns has
        changed."""
        if len(jobs) > 1 and (known := self._known(np.array(jobs.rows()))) is not None:
            self._fail_all(jobs.pop_all(), known)
        while jobs and self.fails(jobs.peek()):
            jobs.pop()

    def all_fail(self, rows: list[int]) -> bool:
        """Let all of these jobs of one queue fail as others did, in their order, if all of them would."""
        known = self._known(np.array(rows)) if rows else None
        if known is None:
            return False
        self._fail_all(rows, known)
        return True

    def _known(self, rows: AnyArray) -> list[tuple[AnyArray, Failure]] | None:
        """Which of these jobs would fail together, and how; None where not all of them would as others did."""
        if not self._failures.are_alike(rows) or (self._tried and not self._tried.isdisjoint(rows.tolist())):
            return None
        found = []
        for like in of_equal(self._telling(rows)):
            jobs = rows[like]
            failure = self._failures.of(int(jobs[0]))
            if failure is None:
                return None
            found.append((jobs, failure))
        return found

    def _fail_all(self, rows: list[int], known: list[tuple[AnyArray, Failure]]) -> None:
        """``rows``: the same jobs, in their order."""
        trace, shared = self._ssn.trace, known[0][1].findings
        for jobs, failure in known:
            trace.fail(jobs, failure)
        if len(shared) <= 1 and all(failure.findings == shared for _, failure in known):
            for finding in shared:
                trace.tell_of_jobs(np.array(rows), finding)
            return
        found = {row: failure.findings for jobs, failure in known for row in jobs.tolist()}
        for row in rows:  # of several things all are told of one job before the next
            for finding in found[row]:
                trace.tell(self._ssn.tables.jobs.uids[row], finding)
