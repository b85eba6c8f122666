"""gang: all or nothing. Source: Volcano gang (spec 04 §1, 07 §2 and §6)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.columns.counting import READY, VALID
from pumice.columns.dtypes import F64
from pumice.columns.rows import JobRows
from pumice.columns.views import Job, SubJob, Task
from pumice.framework import points
from pumice.framework.combine import Vote
from pumice.framework.eviction import EvictionContext
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.framework.status import SCHEDULED, UNSCHEDULABLE, releasing_scheduled
from pumice.framework.validity import Invalid
from pumice.model.status import TaskStatus

PIPELINED_OR_READY = READY.copy()
PIPELINED_OR_READY[TaskStatus.PIPELINED] = 1


@plugin("gang", by_shape=True)
class Gang:
    """A job counts only when its minimum, the minima of its roles and of its sub-groups are all met."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    @points.job_valid
    def job_valid(self, job: Job) -> Invalid | None:
        """Can the pods that exist make the gang complete?"""
        if not self._roles_meet(job, VALID, with_best_effort=False):
            return Invalid("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling")
        if not self._groups_meet(job, lambda sub: True):
            return Invalid("NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling")
        valid = job.valid_count
        if valid < job.min_available:
            text = f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {job.min_available}"
            return Invalid("NotEnoughTasks", text)
        return None

    @points.job_order
    def job_order(self, jobs: JobRows) -> F64:
        """Jobs below their minimum first."""
        return jobs.ready.astype(np.float64)

    @points.sub_job_order
    def sub_job_order(self, sub: SubJob) -> int:
        return int(sub.is_ready)

    @points.job_ready
    def job_ready(self, job: Job) -> int:
        missing = job.missing_count
        if missing > 0:
            return missing
        return 0 if self._roles_meet(job, READY) and self._groups_meet(job, lambda sub: sub.is_ready) else 1

    @points.sub_job_ready
    def sub_job_ready(self, sub: SubJob) -> int:
        return max(0, sub.missing_count)

    @points.job_pipelined
    def job_pipelined(self, job: Job) -> Vote:
        met = (
            job.is_pipelined
            and self._roles_meet(job, PIPELINED_OR_READY)
            and self._groups_meet(job, lambda s: s.is_pipelined)
        )
        return Vote.PERMIT if met else Vote.REJECT

    @points.sub_job_pipelined
    def sub_job_pipelined(self, sub: SubJob) -> Vote:
        return Vote.PERMIT if sub.is_pipelined else Vote.REJECT

    @points.job_starving
    def job_starving(self, job: Job) -> bool:
        return job.is_starving

    @points.preemptable
    @points.reclaimable
    def evictable(self, preemptor: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Tasks that their gang can spare, counted down victim by victim."""
        left: dict[int, int] = {}
        victims = []
        for task in candidates:
            job = task.job
            occupied = left.setdefault(job.row, job.ready_count)
            if occupied > job.min_available:
                left[job.row] = occupied - 1
                victims.append(task)
        return victims, Vote.PERMIT

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Everything: gang evictions protect gangs by the way they bundle victims."""
        return candidates, Vote.PERMIT

    @points.session_close
    def close(self) -> None:
        """Say for each job whether its gang is ready, and if not, what stands in the way."""
        notes, rows = self.ssn.fit_notes, self.ssn.jobs_to_close()
        rows = rows[self.ssn.tables.jobs.size[rows] > 0]
        for row, is_ready in zip(rows.tolist(), JobRows(self.ssn.tables, rows).ready.tolist(), strict=True):
            if is_ready:
                self.ssn.conditions.set(row, SCHEDULED, "tasks in gang are ready to be scheduled", "")
                continue
            job = Job(self.ssn.tables, row)
            if not self._is_leaving(job):
                fared = notes.fared(row)
                unready = job.min_available - job.ready_count - fared.placed
                text = f"{unready}/{job.size} tasks in gang unschedulable: {fared.text}{notes.origin(row)}"
                self.ssn.conditions.set(row, UNSCHEDULABLE, "NotEnoughResources", text)

    def _is_leaving(self, job: Job) -> bool:
        """Only below its minimum because tasks are on their way out: the old condition stays."""
        counts = job.counts
        if counts[TaskStatus.PENDING] or counts[TaskStatus.PIPELINED]:
            return False
        leaving = releasing_scheduled(self.ssn, job.row)
        return leaving > 0 and job.scheduled_count + leaving >= job.min_available

    def _roles_meet(self, job: Job, statuses: np.ndarray, *, with_best_effort: bool = True) -> bool:
        if not job.roles_matter:
            return True
        counts = job.role_counts(statuses, with_best_effort=with_best_effort)
        return all(counts[role] >= minimum for role, minimum in job.role_min.items())

    def _groups_meet(self, job: Job, counts: Callable[[SubJob], bool]) -> bool:
        tables = self.ssn.tables
        if not tables.jobs.has_policy[job.row]:
            return True
        minimum = {f"{job.key}/{p.name}": p.min_sub_groups for p in job.group.sub_groups if p.min_sub_groups}
        for gid, wanted in minimum.items():
            subs = [SubJob(tables, s) for s in job.sub_jobs if tables.subs.gids[s] == gid]
            if sum(1 for sub in subs if counts(sub)) < wanted:
                return False
        return True
