"""priority: order by priority, and let higher priority preempt lower. Source: Volcano priority plugin."""

from __future__ import annotations

import numpy as np

from pumice.api import (
    I64,
    ROWS,
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
    """Order and protect by priority."""

    spares = "of the same or a higher priority"

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    @points.task_order(reads=(ROWS,))
    def task_order(self, tasks: TaskRows) -> I64:
        """Return the order key of tasks, lower first. Shape (rows,)."""
        return -tasks.priority

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> I64:
        """Return the order key of jobs, lower first. Shape (rows,)."""
        return -jobs.priority

    @points.sub_job_order(reads=(ROWS,))
    def sub_job_order(self, sub: SubJob) -> float:
        """Return the order key of a sub-job, lower first."""
        return -float(sub.tables.subs.priority[sub.row])

    @points.job_starving(reads=(ROWS,))
    def job_starving(self, job: Job) -> bool:
        """Return True if some tasks of the job are neither placed nor pipelined."""
        # Not by the minimum as gang does: with this plugin alone in its tier, elastic tasks above the minimum preempt
        # too.
        return job.ready_count + job.waiting_count < job.size

    @points.preemptable(reads=(ROWS,))
    def preemptable(self, preemptor: Task, candidates: Candidates) -> Bool:
        """Return tasks of jobs with lower priority, and tasks of lower priority in the preemptor's own job.
        Shape (rows,)."""
        own, job = preemptor.job, candidates.job
        # A pod without a job has no job priority to compare.
        if own.row < 0:
            return np.zeros(len(candidates), dtype=bool)
        # Strictly lower, since equal jobs would evict each other in turn. Between jobs the job's priority counts, and
        # inside of a job the task's. Source: Volcano priority.go, preemptableFn.
        lower_job = self.ssn.tables.jobs.priority[job] < own.priority
        return np.where(job == own.row, candidates.priority < preemptor.priority, lower_job)

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: TaskRows) -> Bool:
        """Return all tasks for a gang of another queue, and tasks of jobs with lower priority for one of the same
        queue. Shape (rows,)."""
        # Between queues their shares decide, and priorities of different queues are not comparable.
        if context.kind is EvictionKind.GANG_RECLAIM:
            return np.ones(len(candidates), dtype=bool)
        return np.asarray(self.ssn.tables.jobs.priority[candidates.job] < context.job.priority)
