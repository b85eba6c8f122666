"""gang: all or nothing. Source: Volcano gang (spec 04 §1, 07 §2 and §6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from pumice.algorithms.groups import nth_of_its_group
from pumice.api import (
    F64,
    HELD,
    I32,
    READY,
    ROWS,
    SIGNATURE,
    VALID,
    AnyArray,
    Bool,
    Candidates,
    DurationError,
    EvictionContext,
    Invalid,
    Job,
    JobRows,
    Session,
    SubJob,
    Task,
    TaskRows,
    TaskStatus,
    Vote,
    parse_duration,
    plugin,
    points,
)
from pumice.columns.tasks import NO_GATE
from pumice.model.blockers import GangIncomplete
from pumice.volcano.gangs.partially_bound import gang_to_evict, partially_bound_gangs, partially_bound_since
from pumice.volcano.status.closing import SCHEDULED, UNSCHEDULABLE, conditions, jobs_to_close, releasing_scheduled
from pumice.volcano.status.fit_errors import FitTexts

PIPELINED_OR_READY = READY.copy()
PIPELINED_OR_READY[TaskStatus.PIPELINED] = 1


@plugin("gang")
class Gang:
    """A job counts only when its minimum, the minima of its roles and of its sub-groups are all met.

    ``halvesFirst``: of jobs below their minimum one that holds nodes goes first. A scheduler that dies between the
    binds of a gang leaves such a half; by its share (drf) it would come after every gang that holds nothing, and keep
    its nodes for nothing. Volcano does not have this; without it the order is Volcano's.

    ``halvesGoAfter``: of two such that hold what each other lacks, the later one leaves its nodes after this time
    (``10m``), where the action shuffle is in the policy; without it nobody does.

    ``gatedCount``: a pending pod that asks for nothing counts as placed while a scheduling gate holds it, as in
    Volcano; without it only those count that backfill can place (decision 0020).
    """

    spares = "that their gangs need for their minimum"

    def __init__(
        self, ssn: Session, *, halvesFirst: bool = True, halvesGoAfter: str = "", gatedCount: bool = True
    ) -> None:
        self.ssn, self.halves_first = ssn, halvesFirst
        self.halves_go_after = _seconds(halvesGoAfter)
        if not gatedCount and not ssn.is_idle:
            _leave_out_gated(ssn)

    @staticmethod
    def problems(*, halvesFirst: bool, halvesGoAfter: str, gatedCount: bool) -> Iterator[str]:
        """What cannot be used."""
        if halvesGoAfter and _seconds(halvesGoAfter) is None:
            yield f"argument halvesGoAfter: found {halvesGoAfter[:80]!r}, wanted a duration such as 10m; nobody goes"

    def figures(self) -> Mapping[str, AnyArray]:
        """For each job how many tasks it lacks, 0 where it is ready; and whether it is (J,)."""
        jobs = self.ssn.tables.jobs
        missing = jobs.min_available - jobs.counts @ READY
        ready = missing <= jobs.best_effort
        return {"job.lacking": np.where(ready, 0, missing), "job.ready": ready}

    @points.job_valid(reads=(SIGNATURE,))
    def job_valid(self, job: Job) -> Invalid | None:
        """Can the pods that exist make the gang complete?"""
        if not self._roles_meet(job, VALID, with_best_effort=False):
            return _invalid("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling", job)
        if not self._groups_meet(job, lambda sub: True):
            return _invalid("NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling", job)
        valid = job.valid_count
        if valid < job.min_available:
            text = f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {job.min_available}"
            return _invalid("NotEnoughTasks", text, job)
        return None

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> F64:
        """Jobs below their minimum first, and of these the ones that hold nodes."""
        ready = jobs.ready
        found = ready.astype(np.float64)
        if self.halves_first:
            found[~ready & (jobs.tables.jobs.counts[jobs.rows] @ HELD > 0)] = -1.0
        return found

    @points.sub_job_order(reads=(ROWS,))
    def sub_job_order(self, sub: SubJob) -> float:
        return float(sub.is_ready)

    @points.job_ready(reads=(SIGNATURE,))
    def job_ready(self, job: Job) -> int:
        missing = job.missing_count
        if missing > 0:
            return missing
        return 0 if self._roles_meet(job, READY) and self._groups_meet(job, lambda sub: sub.is_ready) else 1

    @points.sub_job_ready(reads=(SIGNATURE,))
    def sub_job_ready(self, sub: SubJob) -> int:
        return max(0, sub.missing_count)

    @points.job_pipelined(reads=(SIGNATURE,))
    def job_pipelined(self, job: Job) -> Vote:
        met = (
            job.is_pipelined
            and self._roles_meet(job, PIPELINED_OR_READY)
            and self._groups_meet(job, lambda s: s.is_pipelined)
        )
        return Vote.PERMIT if met else Vote.REJECT

    @points.sub_job_pipelined(reads=(SIGNATURE,))
    def sub_job_pipelined(self, sub: SubJob) -> Vote:
        return Vote.PERMIT if sub.is_pipelined else Vote.REJECT

    @points.job_starving(reads=(SIGNATURE,))
    def job_starving(self, job: Job) -> bool:
        return job.is_starving

    @points.preemptable(reads=(ROWS, SIGNATURE))
    @points.reclaimable(reads=(ROWS, SIGNATURE))
    def evictable(self, preemptor: Task, candidates: Candidates) -> Bool:
        """Tasks that their gang can spare, counted down victim by victim. Shape (rows,)."""
        jobs, job = candidates.tables.jobs, candidates.job
        spare = jobs.counts[job] @ READY - jobs.min_available[job]
        return np.asarray(nth_of_its_group(candidates.apart(job)) < spare)

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: TaskRows) -> Bool:
        """Everything: gang evictions protect gangs by the way they bundle victims."""
        return np.ones(len(candidates), dtype=bool)

    def wakes_at(self) -> float | None:
        """When the next half has waited for so long that it may have to go."""
        if self.halves_go_after is None:
            return None
        due = [
            partially_bound_since(self.ssn, job) + self.halves_go_after
            for job in partially_bound_gangs(self.ssn).tolist()
        ]
        return min((moment for moment in due if moment > self.ssn.now), default=None)

    @points.victim_tasks
    def victim_tasks(self, tasks: TaskRows) -> Bool:
        """All of the half that gives way to another."""
        if self.halves_go_after is None:
            return np.zeros(len(tasks), dtype=bool)
        return np.asarray(tasks.job == gang_to_evict(self.ssn, self.halves_go_after)) & (tasks.job >= 0)

    @points.session_close
    def close(self) -> None:
        """Say for each job whether its gang is ready, and if not, what stands in the way."""
        ssn = self.ssn
        texts, said = FitTexts(ssn.tables, ssn.trace), conditions(ssn)
        for job in (Job(ssn.tables, row) for row in jobs_to_close(ssn)):
            if not job.size:
                continue
            if job.is_ready:
                said.set(job.row, SCHEDULED, "tasks in gang are ready to be scheduled", "")
            elif not self._is_leaving(job):
                said.set(job.row, UNSCHEDULABLE, "NotEnoughResources", _incomplete(job, texts))

    def _is_leaving(self, job: Job) -> bool:
        """Only below its minimum because tasks are on their way out: the old condition stays."""
        counts = job.counts
        if counts[TaskStatus.PENDING] or counts[TaskStatus.PIPELINED]:
            return False
        leaving = releasing_scheduled(self.ssn, job.row)
        return leaving > 0 and job.scheduled_count + leaving >= job.min_available

    def _roles_meet(self, job: Job, statuses: I32, *, with_best_effort: bool = True) -> bool:
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


def _invalid(reason: str, message: str, job: Job) -> Invalid:
    """With the first role that lacks pods, in the order of their names; else with the pods of all roles."""
    tasks, least = job.tables.tasks, job.group.min_task_member
    rows = job.tables.jobs.tasks[job.row].tolist()
    roles = Counter(tasks.pods[row].role for row in rows if VALID[tasks.status[row]]) if least else Counter()
    lacking = [(role, roles[role], count) for role, count in sorted(least.items()) if roles[role] < count]
    role, exist, minimum = lacking[0] if lacking else ("", job.valid_count, job.min_available)
    return Invalid(reason, message, GangIncomplete(role, exist, minimum, message))


def _incomplete(job: Job, texts: FitTexts) -> str:
    """What stands in the way of a gang."""
    fared = texts.fared(job.row)
    unready = job.min_available - job.ready_count - fared.placed
    return f"{unready}/{job.size} tasks in gang unschedulable: {fared.text}{texts.origin(job.row)}"


def _leave_out_gated(ssn: Session) -> None:
    """Take pods that a gate holds, which stay where they are all session, off the pending ones that ask for nothing."""
    tables = ssn.tables
    tasks = tables.tasks
    held = tasks.alive & tasks.best_effort & (tasks.status == TaskStatus.PENDING) & (tasks.gate != NO_GATE)
    rows = (held & (tasks.job >= 0)).nonzero()[0]
    for column, of_each in ((tables.jobs["best_effort"], tasks.job), (tables.subs["best_effort"], tasks.sub)):
        which, counts = np.unique(of_each[rows], return_counts=True)
        ssn.journal.add(column, which, -counts.astype(np.int32))


def _seconds(text: str) -> float | None:
    """None for what is no time above 0."""
    try:
        found = parse_duration(text) if text else 0.0
    except DurationError:
        return None
    return found if found > 0 else None
