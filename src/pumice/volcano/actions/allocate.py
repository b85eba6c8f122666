"""allocate: place waiting gangs on idle resources, or promise them what is being released. Source: Volcano allocate
(spec 03 §2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import AnyArray, some
from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.cycle.trace import Attempt
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model.blockers import DESERVED, HYPERNODES, JOB, Missing, QueueLimit, Refused
from pumice.placing.choose import placing_of
from pumice.volcano import points
from pumice.volcano.failures.equivalence import Alike
from pumice.volcano.failures.failures import Failures
from pumice.volcano.failures.skip_unchanged import act
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.pending_tasks import PendingTasks
from pumice.volcano.gangs.readiness import job_ready
from pumice.volcano.gangs.sub_job import Domain, Reached, allocate_tasks, try_nomination
from pumice.volcano.queues.gates import gated_jobs, take_gates_off
from pumice.volcano.topology.rules import has_hard

#: What an attempt asks about the job itself.
ASKS = (points.job_valid, points.job_ready, points.job_pipelined)

#: What is asked about admission and about who is evicted, by other actions.
NEVER_ASKED = (
    points.job_enqueueable,
    points.job_enqueued,
    points.job_starving,
    points.preemptive,
    points.preemptable,
    points.reclaimable,
    points.unified_evictable,
    points.victim_queue_order,
    points.victim_tasks,
    points.simulate_add_task,
    points.simulate_remove_task,
    points.simulate_predicate,
    points.simulate_allocatable,
)
_Placed = Callable[[Session, Statement, int, PendingTasks, OpenAttempt], PendingTasks | None]
MAY_ASK = tuple(point for point in points.POINTS.values() if point not in NEVER_ASKED)


def allocate(ssn: Session, *, predicateErrorCacheEnable: bool = True, promisedFirst: bool = True) -> None:
    """Best queue first, best job first; a job is placed up to its minimum a turn and comes back for the rest.

    What is ready is committed. What is only pipelined stays reserved for the session. Everything else is undone.
    ``promisedFirst``: before all others, jobs for which others were evicted in an earlier cycle (decision 0017).
    """
    allocation = _Allocation(ssn, cached=predicateErrorCacheEnable, promised_first=promisedFirst)
    rows = allocation.waiting()
    if len(rows):
        what = f"allocate {predicateErrorCacheEnable} {promisedFirst}"
        act(ssn, what, rows, MAY_ASK, lambda: allocation.take_turns(rows))


class _Allocation:
    def __init__(self, ssn: Session, *, cached: bool, promised_first: bool) -> None:
        self.ssn, self.cached, self.promised_first = ssn, cached, promised_first
        self.pending: dict[int, PendingTasks] = {}
        self.failed = False  # whether the last turn ended in a failure that changed nothing

    def waiting(self) -> AnyArray:
        """Rows of jobs with tasks to place, or for which a gang was evicted before in this session. Whether a job is
        valid is asked when its turn comes: nothing here changes that."""
        ssn, jobs = self.ssn, self.ssn.tables.jobs
        live = jobs.alive & (jobs.queue >= 0) & ~jobs.barred
        if not ssn.policy.has_action("enqueue"):
            pending = (live & (jobs.phase == PENDING_PHASE)).nonzero()[0]
            if len(pending):
                ssn.journal.put(jobs["phase"], pending, INQUEUE_PHASE)
        wanted, subs = jobs.waits > 0, ssn.tables.subs
        promised = subs.alive & (subs.nominated >= 0)
        if some(promised):
            wanted[subs.job[promised]] = True
        rows: AnyArray = (live & wanted & (jobs.phase != PENDING_PHASE)).nonzero()[0]
        return rows

    def take_turns(self, rows: AnyArray) -> None:
        """Go on until no queue has a job that can still get something."""
        ssn = self.ssn
        failures = Failures(ssn.world, ssn.hooks, ssn.memo, placing_of(ssn), ssn.trace, "allocate", ASKS)
        self.gated = gated_jobs(ssn)
        self.alike = Alike(ssn, failures, tried=self.gated)
        if self.promised_first:
            rows = self._promised_first(rows)
        lines = ssn.order.lines(rows)
        queues = Heap(ssn.order.queue_keys(), list(lines))
        while queues:
            queue = queues.pop()
            if ssn.ask(points.overused, Queue(ssn.tables, queue)):
                name = ssn.tables.queues.names[queue]
                ssn.trace.tell(name, QueueLimit(name, DESERVED))
                continue
            if not lines[queue]:
                continue
            job = lines[queue].pop()
            if self._turn(job):
                lines[queue].push(job)
            elif self.failed:
                self.alike.go_on(lines[queue])
            queues.push(queue)

    def _promised_first(self, rows: AnyArray) -> AnyArray:
        """A turn for each job with a task that is nominated to a node, but in queues that are overused. The jobs that
        are left for the others' turns."""
        ssn = self.ssn
        nominated = ssn.tables.tasks.nominated_jobs()
        if not len(nominated):
            return rows
        promised = np.intersect1d(nominated, rows)
        over = {
            queue: ssn.ask(points.overused, Queue(ssn.tables, queue))
            for queue in distinct(ssn.tables.jobs.queue[promised]).tolist()
        }
        promised = promised[[not over[queue] for queue in ssn.tables.jobs.queue[promised].tolist()]]
        done = [job for job in ssn.order.jobs_in_order(promised) if not self._turn(job)]
        return rows[~np.isin(rows, done)] if done else rows

    # -- one turn of one job ------------------------------------------------------------------------------------------

    def _turn(self, job: int) -> bool:
        """Whether it should come back."""
        comes_back = self.failed = False
        with self.ssn.turn(self.ssn.tables.jobs.uids[job]):
            comes_back = self._allocate(job)
        return comes_back

    def _allocate(self, job: int) -> bool:
        ssn = self.ssn
        pending_tasks = self.pending.get(job)
        if pending_tasks is None:
            if self.alike.fails(job):
                self.failed = True
                return False
            if not self._eligible(job):
                return False
            if job in self.gated:
                take_gates_off(ssn, job)
            pending_tasks = PendingTasks(ssn, job)
        in_domain = bool(ssn.tables.jobs.has_policy[job]) or has_hard(ssn.tables, job)
        if not pending_tasks:
            self._look_again(job, in_domain=in_domain)
            return False
        with ssn.statement() as stmt:
            return (
                self._in_best_domain(stmt, job, pending_tasks)
                if in_domain
                else self._anywhere(stmt, job, pending_tasks)
            )

    def _eligible(self, job: int) -> bool:
        ssn, uid = self.ssn, self.ssn.tables.jobs.uids[job]
        invalid = ssn.ask(points.job_valid, Job(ssn.tables, job))
        if invalid is not None:
            ssn.trace.tell(uid, invalid.blocker or Refused(JOB, invalid.message, invalid.reason))
            return False
        if not ssn.tables.tree.ready and ssn.tables.jobs.has_topology[job]:
            ssn.trace.tell(uid, Missing(HYPERNODES))
            return False
        return True

    def _look_again(self, job: int, *, in_domain: bool) -> None:
        """All of the job is promised a node. That stands; what is said of it follows Volcano, which goes through such
        pods once more: in domains it forgets what stood against them before, else they count as tried (decision
        0017)."""
        ssn, trying = self.ssn, OpenAttempt(self.ssn, job)
        if not trying.errors:
            return
        if in_domain:
            trying.errors = {}
        with ssn.statement() as stmt:
            for row in ssn.tables.jobs.tasks[job].tolist():
                if not in_domain and trying.allowed(int(ssn.tables.jobs.queue[job]), [row], stmt).tasks:
                    trying.errors[row] = FitErrors(skipped=True)
        self._note(job, Attempt(errors=tuple(trying.errors.items())))

    def _in_best_domain(self, stmt: Statement, job: int, pending_tasks: PendingTasks) -> bool:
        ssn, trying = self.ssn, OpenAttempt(self.ssn, job)
        from pumice.volcano.topology.domains import allocate_for_job  # few gangs are bound to domains

        left = allocate_for_job(ssn, stmt, job, pending_tasks, trying)
        if left is None:
            stmt.discard()
            self._note(job, trying.end(stmt))
            return False
        if not job_ready(ssn, job):
            stmt.leave_standing()
            self._note(job, trying.end(stmt))
            return False
        self._commit(stmt, job, trying)
        ssn.trace.moved.add(job)
        self.pending[job] = left
        return bool(left)

    def _anywhere(self, stmt: Statement, job: int, pending_tasks: PendingTasks) -> bool:
        ssn, subs = self.ssn, self.ssn.tables.subs
        sub = next((s for s in pending_tasks.sheets if subs.uids[s] == ssn.tables.jobs.uids[job]), -1)
        if sub < 0:
            return False
        sheet, trying = pending_tasks.sheets[sub], OpenAttempt(ssn, job)
        reached = Reached.NOTHING
        if subs.nominated[sub] >= 0 and try_nomination(ssn, stmt, sub, sheet, trying):
            reached = Reached.READY if job_ready(ssn, job) else Reached.PIPELINED
        if not reached:
            top = Domain(ssn, ssn.tables.tree.top)
            reached = allocate_tasks(ssn, stmt, sub, sheet, top, trying, cached=self.cached)
        if not reached:
            stmt.discard()
            self._failed(job, trying, trying.end(stmt))
            return False
        if reached is not Reached.READY:
            stmt.leave_standing()
            self._note(job, trying.end(stmt))
            return False
        self._commit(stmt, job, trying)
        if subs.nominated[sub] >= 0:
            ssn.journal.put(subs["nominated"], sub, -1)
        self.pending[job] = pending_tasks
        return bool(sheet)

    def _commit(self, stmt: Statement, job: int, trying: OpenAttempt) -> None:
        placed = stmt.save()
        stmt.commit()
        attempt = trying.end(stmt, placed)
        if attempt.undone or attempt.errors or attempt.findings:
            self._note(job, attempt)

    def _failed(self, job: int, trying: OpenAttempt, attempt: Attempt) -> None:
        """Nothing was placed, and nothing changed. Where nothing of the job stood before, others may fail like it."""
        self.failed = not trying.unlike_others
        if self.failed and self.alike.is_fresh(job):
            self.alike.keep(job, attempt)
        else:
            self._note(job, attempt)

    def _note(self, job: int, attempt: Attempt) -> None:
        self.ssn.trace.take(job, attempt)
        for finding in attempt.findings:
            self.ssn.trace.tell(self.ssn.tables.jobs.uids[job], finding)
