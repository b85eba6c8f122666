"""gang: place gangs all or nothing. Source: Volcano gang plugin."""

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
    VALID,
    AnyArray,
    Bool,
    Candidates,
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
    duration_or,
    plugin,
    points,
    read_only,
)
from pumice.columns.tasks import NO_GATE
from pumice.framework.memo import ground
from pumice.model.blockers import GangIncomplete
from pumice.volcano.gangs.partially_bound import (
    below_minimum_since,
    gang_to_evict,
    partially_bound_gangs,
    partially_bound_since,
)
from pumice.volcano.queues.empty_groups import given_back, next_given_back
from pumice.volcano.status.closing import SCHEDULED, UNSCHEDULABLE, conditions, jobs_to_close, releasing_scheduled
from pumice.volcano.status.fit_errors import FitTexts

# A copy, because READY is shared with all that counts what is placed.
PIPELINED_OR_READY = READY.copy()
PIPELINED_OR_READY[TaskStatus.PIPELINED] = 1

_READY = "tasks in gang are ready to be scheduled"


@plugin("gang", former={"halvesFirst": "finishPartialGangs", "halvesGoAfter": "evictPartialGangsAfter"})
class Gang:
    """Require that a job meets its minimum, and the minimums of its roles and sub-groups.

    ``finishPartialGangs``: among jobs below their minimum, those that hold nodes come first. A scheduler that stops
    between the bindings of a gang leaves it partially bound. Ordered by share (drf), it would come after every gang
    that holds nothing, and hold its nodes in vain. Volcano has no such rule; without it the order is Volcano's.

    ``evictPartialGangsAfter``: of two such gangs that hold what the other lacks, the later one is evicted after this
    time (``10m``), if the policy has the action shuffle. Empty: never.

    ``evictBelowMinimumAfter``: a gang that holds nodes below its minimum for this time (``10m``) is evicted whole, if
    the policy has the action shuffle. Empty: never.

    ``emptyGroupsHoldFor``: what an admitted group asks for counts against its queue for this time (``10m``) while the
    group has no pods, and again once it has some. Empty: for ever, as in Volcano.

    ``oneCondition``: of the conditions Scheduled and Unschedulable, the one that no longer holds becomes False. Volcano
    leaves it, and it then contradicts the other.

    ``gatedCount``: a pending pod without requests counts as placed even if a scheduling gate holds it, as in Volcano.
    Otherwise only those count that backfill can place (decision 0019).

    ``halvesFirst`` and ``halvesGoAfter`` are the former names of the first two, and still have an effect.
    """

    spares = "that their gangs need for their minimum"

    def __init__(
        self,
        ssn: Session,
        *,
        finishPartialGangs: bool = True,
        evictPartialGangsAfter: str = "",
        evictBelowMinimumAfter: str = "",
        emptyGroupsHoldFor: str = "",
        oneCondition: bool = True,
        gatedCount: bool = True,
        halvesFirst: bool = True,
        halvesGoAfter: str = "",
    ) -> None:
        # A file that says false under either name wants Volcano's order.
        self.ssn, self.partially_bound_first = ssn, finishPartialGangs and halvesFirst
        # The new name wins if both are given; the old one was never more than a spelling of it.
        self.evicted_after = _seconds(evictPartialGangsAfter or halvesGoAfter)
        self.given_back_after, self.one_condition = _seconds(evictBelowMinimumAfter), oneCondition
        if not gatedCount and not ssn.is_idle:
            _discount_gated(ssn)

    @staticmethod
    def problems(
        *,
        finishPartialGangs: bool,
        evictPartialGangsAfter: str,
        evictBelowMinimumAfter: str,
        emptyGroupsHoldFor: str,
        oneCondition: bool,
        gatedCount: bool,
        halvesFirst: bool,
        halvesGoAfter: str,
    ) -> Iterator[str]:
        """Yield problems with the arguments."""
        durations = {
            "evictPartialGangsAfter": evictPartialGangsAfter,
            "evictBelowMinimumAfter": evictBelowMinimumAfter,
            "emptyGroupsHoldFor": emptyGroupsHoldFor,
            "halvesGoAfter": halvesGoAfter,
        }
        for name, text in durations.items():
            if text and _seconds(text) is None:
                yield f"argument {name}: found {text[:80]!r}, wanted a duration such as 10m; it is ignored"

    def figures(self) -> Mapping[str, AnyArray]:
        """Return for each job how many tasks it lacks, whether it is ready, and if there is such a job, whether it is
        admitted and holds its queue no more. Shapes (J,)."""
        columns = [self.ssn.tables.jobs[name] for name in ("min_available", "counts", "best_effort")]
        found = dict(self.ssn.memo.get("gang.figures", ground(*columns), self._figures))
        ready = found["job.ready"]
        if rows := given_back(self.ssn):
            found["job.given_back"] = np.isin(np.arange(len(ready)), rows)
        return found

    def _figures(self) -> dict[str, AnyArray]:
        """Return for each job how many tasks it lacks, and whether it is ready."""
        jobs = self.ssn.tables.jobs
        # For all jobs in one product, since figures are published for each cycle.
        missing = jobs.min_available - jobs.counts @ READY
        ready = missing <= jobs.best_effort
        return {"job.lacking": read_only(np.where(ready, 0, missing)), "job.ready": read_only(ready)}

    @points.job_valid(reads=(ROWS,))
    def job_valid(self, job: Job) -> Invalid | None:
        """Return why the existing pods cannot complete the gang, or None."""
        # In this order, which decides the reason that users read. Source: Volcano gang.go, validJobFn: roles, then sub-
        # groups, then the job as a whole.
        if not self._roles_meet(job, VALID, with_best_effort=False):
            return _invalid("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling", job)
        if not self._groups_meet(job, lambda sub: job.group.gang is None or sub.valid_count >= sub.min_available):
            return _invalid("NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling", job)
        valid = job.valid_count
        if valid < job.min_available:
            text = f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {job.min_available}"
            return _invalid("NotEnoughTasks", text, job)
        return None

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> F64:
        """Return the order key: jobs below their minimum first, and among them those that hold nodes. Shape (rows,)."""
        # Jobs that lack tasks go first, because what is placed of them is useless until they are complete; a ready job
        # only grows. Source: Volcano gang.go, jobOrderFn.
        ready = jobs.ready
        found = ready.astype(np.float64)
        if self.partially_bound_first:
            found[~ready & (jobs.tables.jobs.counts[jobs.rows] @ HELD > 0)] = -1.0
        return found

    @points.sub_job_order(reads=(ROWS,))
    def sub_job_order(self, sub: SubJob) -> float:
        """Return the order key: sub-jobs that are not ready first."""
        # Roles are not looked at, unlike in ``job_ready``: they belong to the job. Source: Volcano gang.go,
        # subJobOrderFn.
        return float(sub.is_ready)

    @points.job_ready(reads=(ROWS,))
    def job_ready(self, job: Job) -> int:
        """Return how many tasks the job lacks at least, 0 if it is ready."""
        missing = job.missing_count
        if missing > 0:
            return missing
        # Which roles or sub-groups are short does not say how many tasks end that, so the answer is the least that is
        # certain: one. A number that is too large would make allocate stop too late.
        return 0 if self._roles_meet(job, READY) and self._groups_meet(job, lambda sub: sub.is_ready) else 1

    @points.sub_job_ready(reads=(ROWS,))
    def sub_job_ready(self, sub: SubJob) -> int:
        """Return how many tasks the sub-job lacks."""
        return max(0, sub.missing_count)

    @points.job_pipelined(reads=(ROWS,))
    def job_pipelined(self, job: Job) -> Vote:
        """Permit if the job would be ready once releasing resources are free."""
        met = (
            job.is_pipelined
            and self._roles_meet(job, PIPELINED_OR_READY)
            and self._groups_meet(job, lambda s: s.is_pipelined)
        )
        # Never an abstention: a gang below its minimum must not hold nodes, whatever plugins of later tiers would
        # permit.
        return Vote.PERMIT if met else Vote.REJECT

    @points.sub_job_pipelined(reads=(ROWS,))
    def sub_job_pipelined(self, sub: SubJob) -> Vote:
        """Permit if the sub-job would be ready once releasing resources are free."""
        return Vote.PERMIT if sub.is_pipelined else Vote.REJECT

    @points.job_starving(reads=(ROWS,))
    def job_starving(self, job: Job) -> bool:
        """Return True if the job is below its minimum, including pipelined tasks."""
        # Roles are not looked at, and pending pods without requests do not count: eviction frees resources, which these
        # do not need. Source: Volcano gang.go, jobStarvingFn.
        return job.is_starving

    @points.preemptable(reads=(ROWS,))
    @points.reclaimable(reads=(ROWS,))
    def evictable(self, preemptor: Task, candidates: Candidates) -> Bool:
        """Return the tasks above the minimum of their gangs. Shape (rows,)."""
        jobs, job = candidates.tables.jobs, candidates.job
        # The n-th candidate of a job is a victim if the job can spare n tasks.
        spare = jobs.counts[job] @ READY - jobs.min_available[job]
        return np.asarray(nth_of_its_group(candidates.apart(job)) < spare)

    def protectors(self, tasks: TaskRows) -> Iterator[str]:
        """Yield the gangs that need some tasks for their minimum, the one with the most of them first."""
        jobs = tasks.tables.jobs
        for job, count in Counter(tasks.job.tolist()).most_common():
            yield f"{jobs.uids[job]}: {count}, minimum {int(jobs.min_available[job])}"

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: TaskRows) -> Bool:
        """Return True for all: gang evictions protect gangs by the way they bundle victims."""
        return np.ones(len(candidates), dtype=bool)

    def wakes_at(self) -> float | None:
        """Return when the next partially bound gang has waited so long that it may be evicted, or the next group
        without pods holds its queue no more."""
        due = list(next_given_back(self.ssn))
        if self.evicted_after is not None:
            gangs = partially_bound_gangs(self.ssn).tolist()
            due += [partially_bound_since(self.ssn, job) + self.evicted_after for job in gangs]
        if self.given_back_after is not None:
            due += [since + self.given_back_after for since in below_minimum_since(self.ssn).values()]
        return min((moment for moment in due if moment > self.ssn.now), default=None)

    @points.victim_tasks
    def victim_tasks(self, tasks: TaskRows) -> Bool:
        """Return the tasks of partially bound gangs that should be evicted. Shape (rows,)."""
        gangs = [gang_to_evict(self.ssn, self.evicted_after)] if self.evicted_after is not None else []
        if self.given_back_after is not None:
            until = self.ssn.now - self.given_back_after
            gangs += [job for job, since in below_minimum_since(self.ssn).items() if since <= until]
        # Whole gangs: a part that stays would again hold nodes below the minimum.
        return np.isin(tasks.job, gangs) & (tasks.job >= 0)

    @points.session_close
    def close(self) -> None:
        """Set the condition of each job: ready, or why not."""
        ssn = self.ssn
        # Also for groups that were admitted in this cycle: what is noted after this is not kept.
        given_back(ssn)
        texts, said = FitTexts(ssn.tables, ssn.trace), conditions(ssn)
        for job in (Job(ssn.tables, row) for row in jobs_to_close(ssn)):
            # A group without pods has no task that could be unschedulable, so it gets no condition.
            if not job.size:
                continue
            if job.is_ready:
                said.set(job.row, SCHEDULED, _READY, "")
                if self.one_condition and _has(job, UNSCHEDULABLE):
                    said.set(job.row, UNSCHEDULABLE, _READY, "", status="False")
            elif not self._is_leaving(job):
                text = _incomplete(job, texts)
                said.set(job.row, UNSCHEDULABLE, "NotEnoughResources", text)
                if self.one_condition and _has(job, SCHEDULED):
                    said.set(job.row, SCHEDULED, "NotEnoughResources", text, status="False")

    def _is_leaving(self, job: Job) -> bool:
        """Return True if the job is below its minimum only because tasks are terminating; then its old condition
        stays."""
        counts = job.counts
        if counts[TaskStatus.PENDING] or counts[TaskStatus.PIPELINED]:
            return False
        leaving = releasing_scheduled(self.ssn, job.row)
        return leaving > 0 and job.scheduled_count + leaving >= job.min_available

    def _roles_meet(self, job: Job, statuses: I32, *, with_best_effort: bool = True) -> bool:
        """Return True if each role meets its minimum, counting tasks in these statuses."""
        # False if the minimums of roles add up to more than the job's own: Volcano then checks none of them. Source:
        # Volcano job_info.go, CheckTaskReady and its siblings.
        if not job.roles_matter:
            return True
        counts = job.role_counts(statuses, with_best_effort=with_best_effort)
        return all(counts[role] >= minimum for role, minimum in job.role_min.items())

    def _groups_meet(self, job: Job, counts: Callable[[SubJob], bool]) -> bool:
        """Return True if each sub-group policy has enough sub-jobs for which ``counts`` is True."""
        tables = self.ssn.tables
        if not tables.jobs.has_policy[job.row]:
            return True
        if job.group.gang is not None:
            # The UID of a pod set is that of its job, a separator, and its name.
            ready = {tables.subs.uids[s][len(job.key) + 1 :] for s in job.sub_jobs if counts(SubJob(tables, s))}
            return job.group.gang.is_met(ready)
        minimum = {f"{job.key}/{p.name}": p.min_sub_groups for p in job.group.sub_groups if p.min_sub_groups}
        for gid, wanted in minimum.items():
            subs = [SubJob(tables, s) for s in job.sub_jobs if tables.subs.gids[s] == gid]
            if sum(1 for sub in subs if counts(sub)) < wanted:
                return False
        return True


def _invalid(reason: str, message: str, job: Job) -> Invalid:
    """Return why a job is invalid, with the first role by name that lacks pods, or with the pods of all roles."""
    tasks, least = job.tables.tasks, job.group.min_task_member
    rows = job.tables.jobs.tasks[job.row].tolist()
    # Only of use for the reason as a value. Volcano's message names no role.
    roles = Counter(tasks.pods[row].role for row in rows if VALID[tasks.status[row]]) if least else Counter()
    lacking = [(role, roles[role], count) for role, count in sorted(least.items()) if roles[role] < count]
    role, exist, minimum = lacking[0] if lacking else ("", job.valid_count, job.min_available)
    return Invalid(reason, message, GangIncomplete(role, exist, minimum, message))


def _incomplete(job: Job, texts: FitTexts) -> str:
    """Return Volcano's message for a gang that is not ready."""
    fared = texts.fared(job.row)
    # Tasks that were placed and taken back count as placed here, because they only wait for the rest of the gang.
    unready = job.min_available - job.ready_count - fared.placed
    return f"{unready}/{job.size} tasks in gang unschedulable: {fared.text}{texts.origin(job.row)}"


def _discount_gated(ssn: Session) -> None:
    """Subtract gated pods without requests from the counts of pending tasks without requests."""
    tables = ssn.tables
    tasks = tables.tasks
    # Such pods keep their gate for the whole session, so the counts are corrected once.
    held = tasks.alive & tasks.best_effort & (tasks.status == TaskStatus.PENDING) & (tasks.gate != NO_GATE)
    rows = (held & (tasks.job >= 0)).nonzero()[0]
    for column, of_each in ((tables.jobs["best_effort"], tasks.job), (tables.subs["best_effort"], tasks.sub)):
        which, counts = np.unique(of_each[rows], return_counts=True)
        ssn.journal.add(column, which, -counts.astype(np.int32))


def _has(job: Job, condition: str) -> bool:
    """Return True if a condition of this type holds by the status of the group."""
    return any(each.type == condition and each.status == "True" for each in job.group.status.conditions)


def _seconds(text: str) -> float | None:
    """Return a duration above 0, or None."""
    found = duration_or(text, 0.0)
    return found if found > 0 else None
