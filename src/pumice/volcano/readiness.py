"""Whether jobs and sub-jobs have what they need: a sub-job of a job without sub-group policies is asked as its job."""

from __future__ import annotations

from pumice.columns.views import Job, SubJob
from pumice.framework.session import Session
from pumice.volcano import points


def job_missing(ssn: Session, job: int) -> int:
    """How many more tasks must be placed at least until JobReady; 0 when ready."""
    return ssn.ask(points.job_ready, Job(ssn.tables, job))


def job_ready(ssn: Session, job: int) -> bool:
    return job_missing(ssn, job) == 0


def job_pipelined(ssn: Session, job: int) -> bool:
    """Whether the job would be ready once releasing resources are free."""
    return ssn.ask(points.job_pipelined, Job(ssn.tables, job))


def sub_missing(ssn: Session, sub: int) -> int:
    """How many more tasks must be placed at least until SubJobReady; 0 when ready."""
    job = int(ssn.tables.subs.job[sub])
    if not ssn.tables.jobs.has_policy[job]:
        return job_missing(ssn, job)
    return ssn.ask(points.sub_job_ready, SubJob(ssn.tables, sub))


def sub_pipelined(ssn: Session, sub: int) -> bool:
    """Whether the sub-job would be ready once releasing resources are free."""
    job = int(ssn.tables.subs.job[sub])
    if not ssn.tables.jobs.has_policy[job]:
        return job_pipelined(ssn, job)
    return ssn.ask(points.sub_job_pipelined, SubJob(ssn.tables, sub))
