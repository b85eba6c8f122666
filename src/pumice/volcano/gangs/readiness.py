"""Ask whether jobs and sub-jobs have what they need. For a job without sub-group policies, the job is asked instead of
its sub-job.
"""

from __future__ import annotations

from pumice.columns.views import Job, SubJob
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.hooks import At
from pumice.volcano import points


def job_missing(ssn: Session, job: int) -> int:
    """Return how many more tasks must at least be placed until JobReady; 0 if ready."""
    return ssn.ask(points.job_ready, Job(ssn.tables, job))


def job_ready(ssn: Session, job: int) -> bool:
    """Return True if the job is ready."""
    return job_missing(ssn, job) == 0


def job_pipelined(ssn: Session, job: int) -> bool:
    """Return True if the job would be ready once releasing resources are free."""
    return ssn.ask(points.job_pipelined, Job(ssn.tables, job))


# Volcano's SubJobReady asks JobReady for a job without policies: its one sub-job is the whole gang, and plugins know
# more about jobs.
def sub_missing(ssn: Session, sub: int) -> int:
    """Return how many more tasks must at least be placed until SubJobReady; 0 if ready."""
    job = int(ssn.tables.subs.job[sub])
    if not ssn.tables.jobs.has_policy[job]:
        return job_missing(ssn, job)
    return ssn.ask(points.sub_job_ready, SubJob(ssn.tables, sub))


def sub_pipelined(ssn: Session, sub: int) -> bool:
    """Return True if the sub-job would be ready once releasing resources are free."""
    job = int(ssn.tables.subs.job[sub])
    if not ssn.tables.jobs.has_policy[job]:
        return job_pipelined(ssn, job)
    return ssn.ask(points.sub_job_pipelined, SubJob(ssn.tables, sub))


def takes_on_by_class(at: At) -> bool:
    """Return True if every hook at allocatable takes TaskRows and answers equally for equal tasks."""
    # A hook about single tasks may refuse one task and take an equal one, for example by a label. Then a refusal says
    # nothing of the tasks after it.
    return all(hook.form == "run" and hook.for_equals for hook in at(points.allocatable))


# Weaker than the above: within one job, tasks agree in all that is the job's, such as its name.
def refuses_by_class(at: At) -> bool:
    """Return True if a hook at allocatable that refuses a task of a job would refuse the equal ones of that job."""
    return all(hook.form == "run" and hook.for_equal_tasks for hook in at(points.allocatable))
