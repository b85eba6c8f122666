"""allocate: place pending gangs on idle resources, or pipeline them to resources that are being released. Source:
Volcano allocate action.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import AnyArray, some
from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.budget import FLOOR, SEARCH_STEPS_MAX, Budget
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.cycle.trace import Attempt
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model.blockers import DESERVED, HYPERNODES, JOB, Missing, QueueLimit, Refused
from pumice.model.blockers import Domain as NoDomain
from pumice.placing.batch import placing_of
from pumice.placing.gang_tree import is_tree
from pumice.placing.nominations import kept_nominations
from pumice.placing.small_gangs import SmallGangs
from pumice.placing.small_trees import SmallTrees
from pumice.volcano import points
from pumice.volcano.failures.equivalence import EqualJobs
from pumice.volcano.failures.failures import Failures
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.pending_tasks import PendingTasks
from pumice.volcano.gangs.readiness import job_ready
from pumice.volcano.gangs.search import place_small_gang
from pumice.volcano.gangs.sub_job import Domain, Progress, allocate_tasks, try_nomination
from pumice.volcano.gangs.tree_placement import TreePlacer
from pumice.volcano.queues.gates import gated_jobs, take_gates_off
from pumice.volcano.topology.label_domains import label_domains
from pumice.volcano.topology.rules import has_hard, in_label_domain

#: Steps of an attempt on all nodes that failed: for itself, for each kind of task that was tried, and for each task
#: that was placed and taken back. A step takes about 25 µs.
_ATTEMPT_STEPS, _KIND_STEPS, _UNDONE_STEPS = 12, 10, 1

#: Points that an attempt asks about the job.
ASKS = (points.job_valid, points.job_ready, points.job_pipelined)


def allocate(
    ssn: Session,
    *,
    predicateErrorCacheEnable: bool = True,
    promisedFirst: bool = True,
    maxSearchSteps: int = SEARCH_STEPS_MAX,
    secondTries: bool = False,
) -> None:
    """Place jobs in queue and job order. A job is placed up to its minimum, and comes back into the queue for the
    rest.

    Ready jobs are committed. Jobs that are only pipelined keep their reservations for the session. Everything else is
    rolled back. ``promisedFirst``: place jobs for which other jobs were evicted in an earlier cycle before all others
    (decision 0016). ``maxSearchSteps``: counted steps in a cycle, shared out over queues and namespaces; 0: no limit.
    They are taken by trials in domains, and elsewhere by attempts that fail.
    ``secondTries``: if a gang of different pods finds no place pod by pod, pack the largest first, then search.
    """
    allocation = _Allocation(
        ssn,
        cached=predicateErrorCacheEnable,
        promised_first=promisedFirst,
        steps=maxSearchSteps,
        second_tries=secondTries,
    )
    rows = allocation.waiting()
    if len(rows):
        allocation.allocate_in_order(rows)


def _least_steps(ssn: Session) -> Callable[[int], int]:
    """Return the steps that a job may need, by row, for an account that begins with it."""

    # No method: the budget would refer to the action that refers to it, and only the garbage collector could free such
    # a circle, with the session and all its pods.
    def found(job: int) -> int:
        if not _is_in_domain(ssn, job):
            return FLOOR
        # Imported late: few clusters have gangs with a topology.
        from pumice.volcano.topology.domains import steps_in_domains

        return steps_in_domains(ssn, job)

    return found


def _is_in_domain(ssn: Session, job: int) -> bool:
    """Return True if a job is placed in the best of several domains."""
    # Without a policy or a hard topology the tree of hypernodes plays no part, and all nodes are one domain.
    jobs = ssn.tables.jobs
    return bool(jobs.has_policy[job]) or (bool(jobs.has_topology[job]) and has_hard(ssn.tables, job))


def _steps_of(ssn: Session, failed: Attempt) -> int:
    """Return the steps of an attempt on all nodes that failed."""
    undone = [row for op in failed.undone for row in op.placement.rows]
    tried = {*undone, *(row for row, errors in failed.errors if not errors.skipped)}
    kinds = len({ssn.tables.tasks.cls.item(row) for row in tried})
    return _ATTEMPT_STEPS + _KIND_STEPS * kinds + _UNDONE_STEPS * len(undone)


class _Allocation:
    """One run of the action."""

    def __init__(self, ssn: Session, *, cached: bool, promised_first: bool, steps: int, second_tries: bool) -> None:
        self.ssn, self.cached, self.promised_first, self.steps = ssn, cached, promised_first, steps
        self.second_tries = second_tries
        self.postponed: dict[int, list[int]] = {}  # by queue
        self.pending: dict[int, PendingTasks] = {}
        self.failed = False  # the last attempt failed and changed nothing

    def waiting(self) -> AnyArray:
        """Return the rows of jobs with tasks to place, or for which a gang eviction nominated nodes in this session."""
        ssn, jobs = self.ssn, self.ssn.tables.jobs
        # Validity is checked later, per job, since nothing here changes it and most jobs may never be reached.
        live = jobs.alive & (jobs.queue >= 0) & ~jobs.quarantined
        if not ssn.policy.has_action("enqueue"):
            # Without the action enqueue, no other action would admit jobs.
            pending = (live & (jobs.phase == PENDING_PHASE)).nonzero()[0]
            if len(pending):
                ssn.journal.put(jobs["phase"], pending, INQUEUE_PHASE)
        wanted, subs = jobs.waits > 0, ssn.tables.subs
        promised = subs.alive & (subs.nominated >= 0)
        if some(promised):
            wanted[subs.job[promised]] = True
        rows: AnyArray = (live & wanted & (jobs.phase != PENDING_PHASE)).nonzero()[0]
        return rows

    def allocate_in_order(self, rows: AnyArray) -> None:
        """Place jobs until no queue has a job that can still be placed."""
        ssn = self.ssn
        failures = Failures(ssn.world, ssn.hooks, ssn.memo, placing_of(ssn), ssn.trace, "allocate", ASKS)
        self.gated = gated_jobs(ssn)
        feasible = placing_of(ssn).feasible
        self.small = SmallGangs(ssn, feasible, for_all=self.second_tries)
        self.trees = SmallTrees(ssn, feasible, self.small)
        self.budget = Budget(ssn, rows, self.steps, least=_least_steps(ssn))
        self.equal = EqualJobs(ssn, failures, tried=self.gated, budget=self.budget)
        # A search in domains may be cut in its midst, and would begin anew.
        anywhere = set(rows[~ssn.tables.jobs.has_topology[rows] & ~ssn.tables.jobs.has_policy[rows]].tolist())
        self._in_turn(self._promised_first(rows) if self.promised_first else rows)
        while left := self.budget.share_rest(anywhere):
            self._in_turn(np.array(left))
        self.budget.end()

    def _in_turn(self, rows: AnyArray) -> None:
        """Place jobs that have steps left, one job of a queue at a time."""
        ssn = self.ssn
        lines = ssn.order.lines(rows)
        queues = Heap(ssn.order.queue_keys(), list(lines))
        while queues:
            # One job per queue and visit. Volcano takes the queues from a priority queue too (allocate.go,
            # allocateResources), so that a queue with many jobs does not fill the cluster before the next one is asked.
            queue = queues.pop()
            # A queue that is overused is dropped for the session. Only evictions could change that, and allocate makes
            # none.
            if ssn.ask(points.overused, Queue(ssn.tables, queue)):
                name = ssn.tables.queues.names[queue]
                ssn.trace.tell(name, QueueLimit(name, DESERVED))
                continue
            if not lines[queue] and queue in self.postponed:
                self.budget.resume(lines[queue], self.postponed.pop(queue))
            if not lines[queue]:
                continue
            job = lines[queue].pop()
            if self.budget.is_postponed(job):
                self.postponed.setdefault(queue, []).append(job)
            elif self._try_job(job):
                lines[queue].push(job)
            elif self.failed:
                self.equal.go_on(lines[queue])
            # Pushed after each job, because the job's placement changed the share by which queues are ordered.
            queues.push(queue)

    def _promised_first(self, rows: AnyArray) -> AnyArray:
        """Place jobs that have nominated tasks, and return the jobs that are left for the regular order."""
        ssn = self.ssn
        promised = distinct(rows[np.isin(rows, kept_nominations(ssn.tables.tasks, placing_of(ssn).feasible))])
        if not len(promised):
            return rows
        # An overused queue may not take more, even if nodes were vacated for it.
        over = {
            queue: ssn.ask(points.overused, Queue(ssn.tables, queue))
            for queue in distinct(ssn.tables.jobs.queue[promised]).tolist()
        }
        promised = promised[[not over[queue] for queue in ssn.tables.jobs.queue[promised].tolist()]]
        done = [job for job in ssn.order.jobs_in_order(promised) if not self._try_job(job)]
        return rows[~np.isin(rows, done)] if done else rows

    # -- one try of one job -------------------------------------------------------------------------------------------

    def _try_job(self, job: int) -> bool:
        """Try to place a job that has steps. Return True if it should come back into the queue."""
        comes_back = self.failed = False
        if not self.budget.begin(job):
            return False
        with self.ssn.fault_scope(self.ssn.tables.jobs.uids[job]):
            comes_back = self._allocate(job)
        return comes_back

    def _allocate(self, job: int) -> bool:
        """Place tasks of a job. Return True if it has tasks left."""
        ssn = self.ssn
        pending_tasks = self.pending.get(job)
        if pending_tasks is None:
            # An equal job failed before, and nothing that its failure rests on has changed.
            if self.equal.fails(job):
                self.failed = True
                return False
            if not self._eligible(job):
                return False
            if job in self.gated:
                take_gates_off(ssn, job)
            pending_tasks = PendingTasks(ssn, job)
        in_domain = _is_in_domain(ssn, job)
        if not pending_tasks:
            self._look_again(job, in_domain=in_domain)
            return False
        with ssn.statement() as stmt:
            if not in_domain:
                return self._anywhere(stmt, job, pending_tasks)
            place = self._in_tree if is_tree(ssn.tables, job) else self._in_best_domain
            return place(stmt, job, pending_tasks)

    def _eligible(self, job: int) -> bool:
        """Return True if the job is valid and its topology can be evaluated."""
        ssn, uid = self.ssn, self.ssn.tables.jobs.uids[job]
        invalid = ssn.ask(points.job_valid, Job(ssn.tables, job))
        if invalid is not None:
            ssn.trace.tell(uid, invalid.blocker or Refused(JOB, invalid.message, invalid.reason))
            return False
        has_topology = ssn.tables.jobs.has_topology[job] and not in_label_domain(ssn.tables, job)
        if has_topology and not ssn.tables.tree.ready:
            ssn.trace.tell(uid, Missing(HYPERNODES))
            return False
        return True

    def _look_again(self, job: int, *, in_domain: bool) -> None:
        """Record reasons for a job whose tasks are all pipelined."""
        # The placements stay; only what is reported changes (decision 0016). Volcano tries such pods once more. With
        # topology it forgets earlier errors before that; without, it marks the tasks as skipped because their role
        # failed.
        ssn, attempt = self.ssn, OpenAttempt(self.ssn, job)
        if not attempt.errors:
            return
        if in_domain:
            attempt.begin()
        with ssn.statement() as stmt:
            for row in ssn.tables.jobs.tasks[job].tolist():
                if not in_domain and attempt.allowed(int(ssn.tables.jobs.queue[job]), [row], stmt).tasks:
                    attempt.fail(row, FitErrors(skipped=True))
        self._note(job, Attempt(errors=tuple(attempt.errors.items())))

    def _in_best_domain(self, stmt: Statement, job: int, pending_tasks: PendingTasks) -> bool:
        """Place a job in the best domain of its topology. Return True if it has tasks left."""
        ssn, attempt = self.ssn, OpenAttempt(self.ssn, job)
        # Imported late: few clusters have gangs with a topology.
        from pumice.volcano.topology.domains import allocate_for_job

        left = allocate_for_job(ssn, stmt, job, pending_tasks, attempt, self.budget)
        if left is None and self.budget.is_cut():
            stmt.discard()
            return False
        if left is None:
            stmt.discard()
            # Of trials in domains Volcano keeps no errors, so this may be all that is known of the job.
            if not (attempt.findings or attempt.errors):
                attempt.findings.append(NoDomain())
            self._note(job, attempt.end(stmt))
            return False
        if not job_ready(ssn, job):
            # Volcano neither commits nor discards a job that is only pipelined. Its placements stay in the session as
            # a reservation, and nothing is sent to the cluster.
            self._reserve(stmt, job, attempt)
            return False
        self._commit(stmt, job, attempt)
        ssn.trace.moved.add(job)
        self.pending[job] = left
        return bool(left)

    def _in_tree(self, stmt: Statement, job: int, pending_tasks: PendingTasks) -> bool:
        """Place tasks of the tree of a CompositePodGroup. Return True if it has tasks left."""
        ssn, attempt = self.ssn, OpenAttempt(self.ssn, job)
        placer = TreePlacer(ssn, stmt, job, pending_tasks, attempt, self.budget)
        placed = placer.advance()
        if not placed and placer.search(self.trees):
            placed, pending_tasks = True, PendingTasks(ssn, job)
        if placed and job_ready(ssn, job):
            self._commit(stmt, job, attempt)
            self.pending[job] = pending_tasks
            return any(pending_tasks.sub_queues.values())
        if placed:
            self._reserve(stmt, job, attempt)
            return False
        stmt.discard()
        if not self.budget.is_cut():
            if not (attempt.findings or attempt.errors):
                attempt.findings.append(NoDomain())
            self._note(job, attempt.end(stmt))
        return False

    def _anywhere(self, stmt: Statement, job: int, pending_tasks: PendingTasks) -> bool:
        """Place a job without topology on all nodes. Return True if it has tasks left."""
        ssn, subs = self.ssn, self.ssn.tables.subs
        # Without policies, the only sub-job has the name of the job.
        sub = next((s for s in pending_tasks.sub_queues if subs.uids[s] == ssn.tables.jobs.uids[job]), -1)
        if sub < 0:
            return False
        sub_queue, attempt = pending_tasks.sub_queues[sub], OpenAttempt(ssn, job)
        reached = Progress.NOTHING
        # Nodes that a gang eviction vacated for this job in this session are tried first.
        if subs.nominated[sub] >= 0 and try_nomination(ssn, stmt, sub, sub_queue, attempt):
            reached = Progress.READY if job_ready(ssn, job) else Progress.PIPELINED
        if not reached:
            waiting = sub_queue.rows[sub_queue.position :]
            if in_label_domain(ssn.tables, job):
                return self._in_label_domain(stmt, job, sub, pending_tasks, attempt)
            top = Domain(ssn, ssn.tables.tree.top)
            reached = allocate_tasks(ssn, stmt, sub, sub_queue, top, attempt, cached=self.cached)
            small = self.small if not reached and self.small.concerns(job, waiting) else None
            if small is not None and place_small_gang(ssn, small, stmt, sub, waiting, attempt):
                reached, pending_tasks = Progress.READY, PendingTasks(ssn, job)
        if not reached:
            stmt.discard()
            result = attempt.end(stmt)
            self.budget.spend_besides(_steps_of(ssn, result))
            self._failed(job, attempt, result)
            return False
        if reached is not Progress.READY:
            self._reserve(stmt, job, attempt)
            return False
        self._commit(stmt, job, attempt)
        if subs.nominated[sub] >= 0:
            ssn.journal.put(subs["nominated"], sub, -1)
        self.pending[job] = pending_tasks
        return bool(pending_tasks.sub_queues.get(sub))

    def _in_label_domain(
        self, stmt: Statement, job: int, sub: int, pending_tasks: PendingTasks, attempt: OpenAttempt
    ) -> bool:
        """Place a job in the first domain of its node label where it gets ready. Return True if it has tasks left."""
        ssn, sub_queue = self.ssn, pending_tasks.sub_queues[sub]
        rows, promised = sub_queue.rows[sub_queue.position :], list[Domain]()
        steps = _ATTEMPT_STEPS + _KIND_STEPS * len(set(sub_queue.classes[sub_queue.position :]))
        for domain in label_domains(ssn, job, sub, rows):
            tried, mark = pending_tasks.copy(), stmt.mark()
            reached = allocate_tasks(ssn, stmt, sub, tried.sub_queues[sub], domain, attempt, cached=self.cached)
            if reached is Progress.READY:
                self._commit(stmt, job, attempt)
                self.pending[job] = tried
                return bool(tried.sub_queues.get(sub))
            # A domain that would do once others have left is not reserved, because another one may be free before,
            # unless pods were evicted there for this job.
            if reached is Progress.PIPELINED and np.isin(ssn.tables.tasks.nominated[rows], domain.nodes.rows).any():
                promised.append(domain)
            stmt.rollback(mark)
            if not self.budget.spend(steps):
                stmt.discard()
                return False
        for domain in promised[:1]:
            queue = pending_tasks.copy().sub_queues[sub]
            allocate_tasks(ssn, stmt, sub, queue, domain, attempt, cached=self.cached)
            self._reserve(stmt, job, attempt)
            return False
        stmt.discard()
        attempt.findings.append(NoDomain())
        self._note(job, attempt.end(stmt))
        return False

    def _commit(self, stmt: Statement, job: int, attempt: OpenAttempt) -> None:
        """Commit the placements of an attempt, and record it if there is anything to report."""
        # Saved before the commit, which empties the statement.
        placed = stmt.save()
        stmt.commit()
        self.equal.changes += 1
        result = attempt.end(stmt, placed)
        if result.undone or result.errors or result.findings:
            self._note(job, result)

    def _reserve(self, stmt: Statement, job: int, attempt: OpenAttempt) -> None:
        """Keep the placements of a job that waits for others to leave as a reservation, and record the attempt."""
        stmt.keep_uncommitted()
        self.equal.changes += 1
        self._note(job, attempt.end(stmt))

    def _failed(self, job: int, attempt: OpenAttempt, result: Attempt) -> None:
        """Record an attempt that placed and changed nothing. Equal jobs may share the failure."""
        self.failed = not attempt.unlike_others
        if self.failed and self.equal.is_fresh(job):
            self.equal.keep(job, result)
        else:
            self._note(job, result)

    def _note(self, job: int, result: Attempt) -> None:
        """Write an attempt into the trace."""
        self.ssn.trace.take(job, result)
        for finding in result.findings:
            self.ssn.trace.tell(self.ssn.tables.jobs.uids[job], finding)
