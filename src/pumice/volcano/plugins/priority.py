"""priority: larger priority first, and larger may take from smaller. Source: Volcano priority (spec 04 §2)."""

from __future__ import annotations

import numpy as np

from pumice.api import (
    I64,
    ROWS,
    SIGNATURE,
    Bool,
    Candidates,
    EvictionContext,
    EvictionKind,
    Job,
    JobRows,
    Session,
    SubJob,
    Task,
    TaskRows,
    plugin,
    points,
)


@plugin("priority")
class Priority:
    spares = "of the same or a higher priority"

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    @points.task_order(reads=(ROWS,))
    def task_order(self, tasks: TaskRows) -> I64:
        return -tasks.priority

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> I64:
        return -jobs.priority

    @points.sub_job_order(reads=(ROWS,))
    def sub_job_order(self, sub: SubJob) -> float:
        return -float(sub.tables.subs.priority[sub.row])

    @points.job_starving(reads=(SIGNATURE,))
    def job_starving(self, job: Job) -> bool:
        """Some of its tasks are neither placed nor promised a place."""
        return job.ready_count + job.waiting_count < job.size

    @points.preemptable(reads=(ROWS, SIGNATURE))
    def preemptable(self, preemptor: Task, candidates: Candidates) -> Bool:
        """Lower jobs; inside the preemptor's own job lower tasks. Shape (rows,)."""
        own, job = preemptor.job, candidates.job
        if own.row < 0:
            return np.zeros(len(candidates), dtype=bool)
        lower_job = self.ssn.tables.jobs.priority[job] < own.priority
        return np.where(job == own.row, candidates.priority < preemptor.priority, lower_job)

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: TaskRows) -> Bool:
        if context.kind is EvictionKind.GANG_RECLAIM:
            return np.ones(len(candidates), dtype=bool)
        return np.asarray(self.ssn.tables.jobs.priority[candidates.job] < context.job.priority)
