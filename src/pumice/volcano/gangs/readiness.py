"""Whether jobs and sub-jobs have what they need: a sub-job of a job without sub-group policies is asked as its job."""

from __future__ import annotations

from pumice.columns.views import Job, SubJob
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.hooks import At
from pumice.framework.plugin.point import by_signature
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


class Lost:
    """How many tasks of jobs like one, of which nothing stands, are known to be too few: with so many allocated it is
    not even pipelined. Whoever answers by the job's signature and its tasks by state answers alike for all of them."""

    __slots__ = ("_question", "_rests_on", "_ssn")

    def __init__(self, ssn: Session, job: int) -> None:
        hooks, signature = ssn.hooks, int(ssn.tables.jobs.signature[job])
        self._ssn = ssn
        self._question: tuple[str, int] | None = None
        if signature >= 0 and hooks.known("votes of jobs alike", (points.job_pipelined,), _all_by_signature):
            self._question = "lost", signature
            self._rests_on = hooks.reading(points.job_pipelined).rests_on(ssn.world)

    def with_only(self, placed: int) -> bool:
        """Whether that is known of so many."""
        question = self._question
        return question is not None and self._ssn.memo.recall((*question, placed), self._rests_on) is not None

    def keep(self, placed: int) -> None:
        """It was found out of so many."""
        if self._question is not None:
            self._ssn.memo.keep((*self._question, placed), self._rests_on, True)


def _all_by_signature(at: At) -> bool:
    return all(by_signature(hook.reads) for hook in at(points.job_pipelined))


def takes_on_by_class(at: At) -> bool:
    """Return True if every hook at allocatable answers the same for equal tasks: it takes TaskRows and declares
    SIGNATURE. Any other hook may read a label, and is asked for each job."""
    return all(hook.form == "run" and by_signature(hook.reads) for hook in at(points.allocatable))
