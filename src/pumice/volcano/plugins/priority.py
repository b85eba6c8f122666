"""priority: larger priority first, and larger may take from smaller. Source: Volcano priority (spec 04 §2)."""

from __future__ import annotations

from pumice.columns.dtypes import I64
from pumice.columns.rows import JobRows, TaskRows
from pumice.columns.views import Job, SubJob, Task
from pumice.framework import points
from pumice.framework.combine import Vote
from pumice.framework.eviction import EvictionContext, EvictionKind
from pumice.framework.plugin import plugin
from pumice.framework.session import Session


@plugin("priority", by_shape=True)
class Priority:
    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    @points.task_order
    def task_order(self, tasks: TaskRows) -> I64:
        return -tasks.priority

    @points.job_order
    def job_order(self, jobs: JobRows) -> I64:
        return -jobs.priority

    @points.sub_job_order
    def sub_job_order(self, sub: SubJob) -> int:
        return -int(sub.tables.subs.priority[sub.row])

    @points.job_starving
    def job_starving(self, job: Job) -> bool:
        """Some of its tasks are neither placed nor promised a place."""
        return job.ready_count + job.waiting_count < job.size

    @points.preemptable
    def preemptable(self, preemptor: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Lower jobs; inside the preemptor's own job lower tasks."""
        own = preemptor.job
        if own.row < 0:
            return [], Vote.PERMIT
        victims = []
        for task in candidates:
            job = task.job
            lower = task.priority < preemptor.priority if job == own else job.priority < own.priority
            if lower:
                victims.append(task)
        return victims, Vote.PERMIT

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: list[Task]) -> tuple[list[Task], Vote]:
        if context.kind is EvictionKind.GANG_RECLAIM:
            return candidates, Vote.PERMIT
        return [t for t in candidates if t.job.priority < context.job.priority], Vote.PERMIT
