"""sla: admit and place jobs first that have waited for too long. Source: Volcano sla plugin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.api import (
    F64,
    NOW,
    PODS,
    ROWS,
    AnyArray,
    Job,
    JobRows,
    PodGroup,
    Session,
    Vote,
    duration_or,
    plugin,
    points,
)
from pumice.model.workloads.podgroup import SLA_ANNOTATIONS
from pumice.volcano.durations import argument_s, duration_problems


@plugin("sla", spelled=("sla-waiting-time",))
class Sla:
    """Order and admit by deadline.

    ``sla-waiting-time``: waiting time of jobs without one of their own; invalid or not above 0: none. ``waits`` (J,):
    seconds, 0 for none. ``evictsForPart``: also evict for an overdue job if only a part of it would be placed, as
    Volcano does. Such a job is incomplete once the victims are gone, and what they held stays idle (decision 0017).
    """

    def __init__(self, ssn: Session, *, sla_waiting_time: str = "", evictsForPart: bool = False) -> None:
        self.ssn, self.evicts_for_part = ssn, evictsForPart
        self.common = argument_s(sla_waiting_time, "")
        stamps = ssn.tables.jobs.stamps
        assert stamps is not None
        self.waits: F64 = ssn.memo.by_row("sla.waits", (self.common,), stamps, self._waits_of)
        # If no job has a deadline, both hooks would only abstain.
        no_deadlines = not (self.waits[ssn.live_jobs] > 0).any()
        self.unused_points = (points.job_enqueueable, points.job_pipelined) if no_deadlines else ()

    @staticmethod
    def problems(*, sla_waiting_time: str, evictsForPart: bool) -> Iterator[str]:
        """Yield problems with the arguments."""
        yield from duration_problems("sla-waiting-time", sla_waiting_time, "", such_as="1h")

    def _waits_of(self, rows: AnyArray) -> F64:
        """Return the waiting time of jobs. Shape (rows,)."""
        groups = self.ssn.tables.jobs.groups
        return np.array([_own(groups[row]) or self.common for row in rows.tolist()], dtype=np.float64)

    def wakes_at(self) -> float | None:
        """Return the next deadline of a waiting job, at which the answers change."""
        jobs, rows = self.ssn.tables.jobs, self.ssn.live_jobs
        # A deadline changes answers about jobs that still wait, and only these need a cycle.
        rows = rows[(jobs.waits[rows] > 0) & (self.waits[rows] > 0)]
        due = jobs.creation[rows] + self.waits[rows]
        due = due[due > self.ssn.now]
        return float(due.min()) if len(due) else None

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> F64:
        """Return the order key: jobs with a waiting time first, the earliest deadline first. Shape (rows,)."""
        waits = self.waits[jobs.rows]
        # By the end of the wait and not by its length: a job with a long wait that began long ago may be due first.
        return np.where(waits > 0, jobs.creation + waits, np.inf)

    @points.job_enqueueable(reads=(ROWS, NOW))
    def overdue(self, job: Job) -> Vote:
        """Permit once the waiting time is over, abstain before."""
        return Vote.PERMIT if self._is_overdue(job) else Vote.ABSTAIN

    @points.job_pipelined(reads=(ROWS, NOW, PODS))
    def holds_room(self, job: Job) -> Vote:
        """Permit once the waiting time is over, so that a part of the job keeps its reservation."""
        tasks = self.ssn.tables.tasks
        # With evictions it abstains: other plugins know when the job is complete and worth them.
        if not self.evicts_for_part and tasks.evicted_for[job.tasks].any():
            return Vote.ABSTAIN
        return Vote.PERMIT if self._is_overdue(job) else Vote.ABSTAIN

    def _is_overdue(self, job: Job) -> bool:
        """Return True if the waiting time of a job is over."""
        wait = self.waits[job.row]
        return bool(wait > 0 and self.ssn.now - job.creation >= wait)


def _own(group: PodGroup | None) -> float:
    """Return the waiting time in a job's annotations: the first valid one above 0."""
    for key in SLA_ANNOTATIONS:
        text = group.annotations.get(key) if group is not None else None
        # An invalid text of the first key does not hide the second one. Source: Volcano job_info.go,
        # extractWaitingTime.
        seconds = max(0.0, duration_or(text, 0.0))
        if seconds:
            return seconds
    return 0.0
