"""Jobs that may have others evicted: who starves, by queue. Source: Volcano preempt and reclaim (spec 03 §4.1, §5)."""

from __future__ import annotations

from pumice.columns.counting import PENDING
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.views import Job
from pumice.framework.session import Session
from pumice.volcano import points


def starving_jobs(ssn: Session, *, with_topology: bool) -> dict[int, list[int]]:
    """Rows of admitted, valid jobs that starve and have a task to place, by queue, in row order.

    ``with_topology`` False: but for those that have a network topology anywhere.
    """
    jobs = ssn.tables.jobs
    which = jobs.alive & (jobs.queue >= 0) & (jobs.phase != PENDING_PHASE) & (jobs.counts[:, PENDING] > 0)
    if not with_topology:
        which &= ~jobs.has_topology
    found: dict[int, list[int]] = {}
    for job in which.nonzero()[0].tolist():
        with ssn.turn(jobs.uids[job]):
            if _starves(ssn, job):
                found.setdefault(int(jobs.queue[job]), []).append(job)
    return found


def is_starving(ssn: Session, job: int) -> bool:
    """Whether the job may have (more) victims."""
    return ssn.ask(points.job_starving, Job(ssn.tables, job))


def _starves(ssn: Session, job: int) -> bool:
    return ssn.ask(points.job_valid, Job(ssn.tables, job)) is None and is_starving(ssn, job)
