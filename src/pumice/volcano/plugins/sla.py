"""sla: a job that has waited long enough is admitted and placed first. Source: Volcano sla (spec 04 §11)."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.rows import JobRows
from pumice.columns.views import Job
from pumice.framework import points
from pumice.framework.combine import Vote
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.model.quantity import DurationError, parse_duration


@plugin("sla")
class Sla:
    """``sla-waiting-time`` is the waiting time of jobs that have none of their own; unreadable or not above 0 means
    none."""

    def __init__(self, ssn: Session, *, sla_waiting_time: str = "") -> None:
        self.ssn = ssn
        self.common = _seconds(sla_waiting_time)

    def _waits(self, rows: np.ndarray) -> F64:
        own = self.ssn.tables.jobs.sla_wait[rows]
        return np.where(own > 0, own, self.common)

    @points.job_order
    def job_order(self, jobs: JobRows) -> F64:
        """Jobs with a waiting time first, the earliest deadline first."""
        waits = self._waits(jobs.rows)
        return np.where(waits > 0, jobs.creation + waits, np.inf)

    @points.job_enqueueable
    @points.job_pipelined
    def overdue(self, job: Job) -> Vote:
        """Permit once the waiting time is over; no opinion before."""
        wait = float(self._waits(np.array([job.row]))[0])
        if wait <= 0 or self.ssn.now - job.creation < wait:
            return Vote.ABSTAIN
        return Vote.PERMIT


def _seconds(text: str) -> float:
    try:
        return max(0.0, parse_duration(text)) if text else 0.0
    except DurationError:
        return 0.0
