"""sla: a job that has waited long enough is admitted and placed first. Source: Volcano sla (spec 04 §11)."""

from __future__ import annotations

import numpy as np

from pumice.api import (
    F64,
    NOW,
    PODS,
    ROWS,
    AnyArray,
    DurationError,
    Job,
    JobRows,
    PodGroup,
    Session,
    Vote,
    parse_duration,
    plugin,
    points,
)
from pumice.model.workloads.podgroup import SLA_ANNOTATIONS


@plugin("sla")
class Sla:
    """``sla-waiting-time`` is the waiting time of jobs that have none of their own; unreadable or not above 0 means
    none. ``waits`` (J,): seconds, 0 for none.

    ``evictsForPart``: also for an overdue job of which only some pods would be placed others are evicted, as Volcano
    does; such a job is not whole when they have left, and what was freed stays idle (decision 0018).
    """

    def __init__(self, ssn: Session, *, sla_waiting_time: str = "", evictsForPart: bool = False) -> None:
        self.ssn, self.evicts_for_part = ssn, evictsForPart
        self.common = _seconds(sla_waiting_time)
        stamps = ssn.tables.jobs.stamps
        assert stamps is not None
        self.waits: F64 = ssn.memo.by_row("sla.waits", (self.common,), stamps, self._waits_of)
        no_deadlines = not (self.waits[ssn.live_jobs] > 0).any()
        self.unused_points = (points.job_enqueueable, points.job_pipelined) if no_deadlines else ()

    def _waits_of(self, rows: AnyArray) -> F64:
        groups = self.ssn.tables.jobs.groups
        return np.array([_own(groups[row]) or self.common for row in rows.tolist()], dtype=np.float64)

    def wakes_at(self) -> float | None:
        """The next deadline of a job that waits: it is asked for in another way from then on."""
        jobs, rows = self.ssn.tables.jobs, self.ssn.live_jobs
        rows = rows[(jobs.waits[rows] > 0) & (self.waits[rows] > 0)]
        due = jobs.creation[rows] + self.waits[rows]
        due = due[due > self.ssn.now]
        return float(due.min()) if len(due) else None

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> F64:
        """Jobs with a waiting time first, the earliest deadline first."""
        waits = self.waits[jobs.rows]
        return np.where(waits > 0, jobs.creation + waits, np.inf)

    @points.job_enqueueable(reads=(ROWS, NOW))
    def overdue(self, job: Job) -> Vote:
        """Permit once the waiting time is over; no opinion before."""
        return Vote.PERMIT if self._is_overdue(job) else Vote.ABSTAIN

    @points.job_pipelined(reads=(ROWS, NOW, PODS))
    def holds_room(self, job: Job) -> Vote:
        """As ``overdue``: what a part of the job was promised stays reserved. But for what others would have to leave:
        whether that is worth it the plugins decide that know when the job is whole."""
        tasks = self.ssn.tables.tasks
        if not self.evicts_for_part and tasks.evicted_for[job.tasks].any():
            return Vote.ABSTAIN
        return Vote.PERMIT if self._is_overdue(job) else Vote.ABSTAIN

    def _is_overdue(self, job: Job) -> bool:
        wait = self.waits[job.row]
        return bool(wait > 0 and self.ssn.now - job.creation >= wait)


def _own(group: PodGroup | None) -> float:
    """The waiting time that a job asks for itself: the first annotation that can be read and is above 0."""
    for key in SLA_ANNOTATIONS:
        text = group.annotations.get(key) if group is not None else None
        seconds = _seconds(text or "")
        if seconds:
            return seconds
    return 0.0


def _seconds(text: str) -> float:
    try:
        return max(0.0, parse_duration(text)) if text else 0.0
    except DurationError:
        return 0.0
