"""Let jobs fail like an equal job did, without an attempt."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from pumice.algorithms.groups import of_equal
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.ordering import Heap, Line
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt, Failure
from pumice.volcano.failures.failures import Failures

#: All jobs of a queue are looked at so often at most while as many jobs are handled one by one.
_LOOKS = 8


class EqualJobs:
    """Failures of one kind of attempt, as an action uses them.

    ``distinguishing``: returns columns (rows,) in which jobs must be equal to share a failure; default: their
    scheduling signatures. ``tried``: jobs that are always tried, because their attempt does more than place tasks.
    ``budget``: counts steps; equal jobs that share a failure cost as much as one.
    """

    def __init__(
        self,
        ssn: Session,
        failures: Failures,
        distinguishing: Callable[[AnyArray], list[AnyArray]] | None = None,
        *,
        tried: frozenset[int] = frozenset(),
        budget: Budget | None = None,
    ) -> None:
        self._ssn, self._failures, self._tried, self._budget = ssn, failures, tried, budget
        self._columns_of = distinguishing or failures.distinguishing_columns
        # A look at all jobs of a queue takes time in proportion to their number. If jobs differ, it is in vain after
        # each of them, so that n jobs would take n² steps. After one in vain, a part of as many jobs must be handled
        # one by one before the next, which bounds the looks together by a multiple of the number of jobs.
        self._one_by_one = 0
        #: How often the action has placed jobs. Steps that were taken before count no more.
        self.changes = 0

    def _key(self, job: int) -> Hashable:
        """Return the key under which the steps of a failure are taken once."""
        return self.changes, self._failures.key(job)

    def is_fresh(self, job: int) -> bool:
        """Return True if a failure of the job may hold for other jobs."""
        return self._failures.is_fresh(job)

    def are_tasks_equal(self, job: int) -> bool:
        """Return True if what happens to one task of the job would happen to an equal one."""
        return self._failures.holds_for_equal(job)

    def keep(self, job: int, attempt: Attempt) -> None:
        """Keep the failure of a job that was fresh before its attempt and that changed nothing."""
        self._failures.keep(job, attempt, self._budget.taken if self._budget is not None else 0)
        if self._budget is not None:
            self._budget.paid(self._key(job))
        for finding in attempt.findings:
            self._ssn.trace.tell(self._ssn.tables.jobs.uids[job], finding)

    def fails(self, job: int) -> bool:
        """Let a job fail like an equal one, and return True. Return False if it has to be tried."""
        # A job whose attempt removes gates must be tried, since that is an effect beside its placements.
        if job in self._tried:
            return False
        failure, budget = self._failures.of(job) if self._failures.is_fresh(job) else None, self._budget
        if failure is None:
            # Where nothing is remembered an equal job is tried again, and costs no more than where it is not.
            if budget is not None and self._failures.is_fresh(job):
                budget.is_free(self._key(job))
            return False
        if budget is not None and not budget.spend_once(self._key(job), failure.steps):
            return False
        self._ssn.trace.fail(np.array([job]), failure)
        for finding in failure.findings:
            self._ssn.trace.tell(self._ssn.tables.jobs.uids[job], finding)
        return True

    def go_on(self, jobs: Heap | Line) -> None:
        """Remove the next jobs from a queue, while they fail like an equal job."""
        # A failure changes nothing that the order depends on, so the next jobs can be handled here at once. If every
        # job in the queue shares the failure, one pass over arrays handles all of them.
        while jobs:
            if len(jobs) > 1 and not self._one_by_one:
                rows = jobs.rows()
                known = self._known_failures(np.array(rows))
                if known is not None and self._pay(rows, known):
                    self._fail_all(jobs.pop_all(), known)
                    return
                self._one_by_one = len(jobs) // _LOOKS
            if not (self._may_begin(jobs.peek()) and self.fails(jobs.peek())):
                return
            jobs.pop()
            self._one_by_one = max(0, self._one_by_one - 1)

    def all_fail(self, rows: list[int]) -> bool:
        """Let all of these jobs of one queue fail, and return True, if equal jobs failed for all of them."""
        if not rows or self._one_by_one:
            self._one_by_one = max(0, self._one_by_one - 1)
            return False
        known = self._known_failures(np.array(rows))
        if known is None:
            self._one_by_one = len(rows) // _LOOKS
            return False
        self._fail_all(rows, known)
        return True

    def _pay(self, rows: list[int], known: list[tuple[AnyArray, Failure]]) -> bool:
        """Return True if the steps of these failures of ``rows`` were taken before, or are taken now."""
        budget = self._budget
        if budget is None:
            return True
        steps = {self._key(int(jobs[0])): failure.steps for jobs, failure in known}
        unpaid = {key: count for key, count in steps.items() if not budget.is_paid(key)}
        # With more than they need, it makes no difference in which order the jobs take their steps.
        if unpaid and not (budget.is_account_of(rows) and budget.has_more_than(sum(unpaid.values()))):
            return False
        return all(budget.spend_once(key, count) for key, count in unpaid.items())

    def _may_begin(self, job: int) -> bool:
        """Return True if the job is next and has steps."""
        budget = self._budget
        return budget is None or (not budget.is_resuming(job) and budget.begin(job))

    def _known_failures(self, rows: AnyArray) -> list[tuple[AnyArray, Failure]] | None:
        """Return groups of equal jobs with the failure of each group, or None if some job has to be tried."""
        if not self._failures.are_equal(rows) or (self._tried and not self._tried.isdisjoint(rows.tolist())):
            return None
        found = []
        for like in of_equal(self._columns_of(rows)):
            jobs = rows[like]
            failure = self._failures.of(int(jobs[0]))
            if failure is None:
                return None
            found.append((jobs, failure))
        return found

    def _fail_all(self, rows: list[int], known: list[tuple[AnyArray, Failure]]) -> None:
        """Write the failures of ``rows``, the same jobs in their order, into the trace."""
        trace, shared = self._ssn.trace, known[0][1].findings
        for jobs, failure in known:
            trace.fail(jobs, failure)
        # One entry for all jobs, if they share the finding.
        if len(shared) <= 1 and all(failure.findings == shared for _, failure in known):
            for finding in shared:
                trace.tell_of_jobs(np.array(rows), finding)
            return
        found = {row: failure.findings for jobs, failure in known for row in jobs.tolist()}
        # Per job and not per finding, in the order in which attempts would have written them.
        for row in rows:
            for finding in found[row]:
                trace.tell(self._ssn.tables.jobs.uids[row], finding)
