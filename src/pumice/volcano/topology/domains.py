"""Allocate a job inside the best hypernode: one trial per domain, and the best plan is applied. Source: Volcano
allocate action (allocateForJob, allocateForSubJob).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.columns.column import Column
from pumice.columns.dtypes import AnyArray
from pumice.columns.placement import Placement
from pumice.columns.rows import TaskRows
from pumice.columns.views import Job, Queue, SubJob, Task
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Mark, Plan, Statement
from pumice.framework.cycle.trace import Kind, Operation
from pumice.framework.plugin.filter_result import FitErrors
from pumice.placing.batch import placing_of
from pumice.volcano import points
from pumice.volcano.failures.trials import Trials
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.pending_tasks import PendingTasks, SubJobQueue
from pumice.volcano.gangs.readiness import job_missing, job_pipelined, job_ready, takes_on_by_class
from pumice.volcano.gangs.sub_job import Domain, allocate_tasks, try_nomination
from pumice.volcano.topology.rules import has_hard, job_bound, sub_bound

ALLOCATE, EVICT = "allocate", "evict"

#: Steps of a query for the hypernodes of a sub-job; of a trial in one, and of each class of tasks in it, since equal
#: tasks are placed together.
_QUERY_STEPS, _TRIAL_STEPS = 2, 7
#: Steps of each task in a trial that filters look at alone.
_ALONE_STEPS = 12

#: Points that a trial asks about the job and its sub-jobs.
ASKS = (
    points.job_ready,
    points.sub_job_ready,
    points.job_pipelined,
    points.sub_job_pipelined,
    points.hyper_node_order,
    points.hyper_node_gradient_for_sub_job,
)


def gradients_for_job(ssn: Session, job: int, purpose: str) -> list[list[int]]:
    """Return the hypernodes to try for a job, in groups of falling preference."""
    top = ssn.tables.tree.top
    # Without the plugin for topologies the whole cluster is the only domain.
    if not ssn.has(points.hyper_node_gradient_for_job):
        return [[top]]
    return ssn.ask(points.hyper_node_gradient_for_job, Job(ssn.tables, job), top, purpose) or []


def gradients_for_sub_job(ssn: Session, sub: int, start: int, purpose: str) -> list[list[int]]:
    """Return the hypernodes below ``start`` to try for a sub-job, in groups of falling preference."""
    if not ssn.has(points.hyper_node_gradient_for_sub_job):
        return [[start]]
    return ssn.ask(points.hyper_node_gradient_for_sub_job, SubJob(ssn.tables, sub), start, purpose) or []


def hypernode_scores(ssn: Session, sub: int, hypernodes: list[int]) -> AnyArray:
    """Return the sum of plugins' scores of each hypernode for the sub-job. Shape (hypernodes,)."""
    rows = np.array(hypernodes, dtype=np.int32)
    return np.zeros(len(rows)) + ssn.ask(points.hyper_node_order, SubJob(ssn.tables, sub), rows)


class DomainResult(NamedTuple):
    """The result for a job in one domain: the plan, the tasks that are left, and the hypernodes that its sub-jobs
    took."""

    plan: Plan
    pending_tasks: PendingTasks
    subs: dict[int, int]


class Candidate(NamedTuple):
    """A domain that was tried. ``works``: the job could be placed; ``found`` returns the result."""

    hypernode: int
    score: float
    works: bool
    found: Callable[[], DomainResult]


# Without rows of tasks, because it is recalled for jobs whose tasks have other rows.
class TrialResult(NamedTuple):
    """The result of a trial without its job: tasks by their position in the sub-job's queue.

    ``plan`` was found; ``undone`` and ``errors`` are what the trial left; ``touched`` are tasks of which something was
    undone; ``taken`` is the hypernode that the sub-job took; ``position`` is that of the queue.
    """

    plan: Plan
    undone: Plan
    touched: frozenset[int]
    errors: tuple[tuple[int, FitErrors], ...]
    position: int
    score: float
    works: bool
    taken: int


class JobTrials:
    """Trials of one job, one per domain. Trials of an equal job are recalled.

    ``kind`` names all that a trial depends on besides the domain. None: it depends on too much to be shared.
    """

    def __init__(
        self,
        ssn: Session,
        stmt: Statement,
        job: int,
        pending_tasks: PendingTasks,
        attempt: OpenAttempt,
        budget: Budget | None,
    ) -> None:
        self.budget = budget
        self.ssn, self.stmt, self.job, self.pending_tasks, self.attempt = ssn, stmt, job, pending_tasks, attempt
        self.known: Trials = ssn.shared(Trials, lambda: Trials(ssn.world, ssn.hooks, ssn.memo, ASKS))
        self.columns: list[Column[AnyArray]] = []
        self.kind = self._kind()
        # Of one trial, equal in all domains: only a job of one sub-job has a kind.
        self._steps = 0 if self.kind is None else sum(_cost(ssn, each) for each in pending_tasks.sub_queues.values())
        self._last: TrialResult | None = None  # the trial last recalled, whose undone operations are not recorded yet

    def _kind(self) -> Hashable:
        """Return what a trial depends on besides the domain, or None."""
        ssn, tables, job = self.ssn, self.ssn.tables, self.job
        sub_queues = self.pending_tasks.sub_queues
        # Several sub-jobs compete for a domain, and their order would belong to the key too.
        if len(sub_queues) != 1 or not placing_of(ssn).feasible.at_once:
            return None
        if not ssn.hooks.known("queues by class", (points.allocatable,), takes_on_by_class):
            return None
        ((sub, sub_queue),) = sub_queues.items()
        rows, jobs = sub_queue.rows, tables.jobs
        # A part of a job that is placed already, or tasks of several kinds, would make the result depend on more than
        # this key.
        fresh = sub_queue.position == 0 and len(rows) == jobs.size[job] and tables.subs.hypernode[sub] < 0
        if not fresh or not sub_queue.is_one_run or jobs.has_policy[job] or jobs.hypernode[job] >= 0:
            return None
        if (tables.tasks.nominated[rows] >= 0).any() or tables.tasks.gate[rows].any():
            return None
        known = self.known.rest_on(Task(tables, rows[0]), placing_of(ssn).feasible.all_nodes)
        if known is None:
            return None
        self.columns, equal = known
        missing, queue = job_missing(ssn, job), Queue(tables, int(jobs.queue[job]))
        cls = int(tables.tasks.cls[rows[0]])
        return (
            "trial",
            equal,
            tables.classes.identity(cls),
            tables.tasks.pods[rows[0]].role,
            len(rows),
            missing,
            ssn.ask(points.tasks_allowed, queue, TaskRows(tables, np.array(rows[: max(1, missing)]))).tasks,
            job_bound(tables, job),
            sub_bound(tables, sub),
            tuple(sorted(jobs.groups[job].min_task_member.items())),
            int(jobs.min_available[job]),
        )

    def of(self, hypernode: int) -> Candidate | None:
        """Return the result in one domain, recalled or tried now and undone, or None if no steps are left for it. Call
        ``end`` after the last one."""
        if self.kind is None:
            tried = self._try(hypernode)
            return None if self.budget is not None and self.budget.is_cut() else tried
        question, nodes = (self.kind, hypernode), self.ssn.tables.tree.nodes[hypernode]
        rests_on = self.known.ground(self.columns, nodes)
        if self.budget is not None and not self.budget.spend_once((question, rests_on), self._steps):
            return None
        known: TrialResult | None = self.known.recall(question, rests_on)
        if known is not None:
            return self._recalled(hypernode, known)
        # Now the trial writes its own undone operations, after those of the trial recalled before.
        self.end()
        before, known_of_queue = len(self.stmt.undone), len(self.attempt.findings)
        candidate = self._try(hypernode)
        # A finding about the queue need not hold for jobs of other queues.
        if len(self.attempt.findings) > known_of_queue:
            return candidate
        ((sub, sub_queue),) = self.pending_tasks.sub_queues.items()
        position, found = {row: i for i, row in enumerate(sub_queue.rows)}, candidate.found()
        undone = _moved(tuple(self.stmt.undone[before:]), position.__getitem__)
        known = TrialResult(
            _moved(found.plan, position.__getitem__),
            undone,
            frozenset(at for op in undone for at in op.placement.rows),
            tuple((position[row], errors) for row, errors in self.attempt.errors.items()),
            found.pending_tasks.sub_queues[sub].position,
            candidate.score,
            candidate.works,
            found.subs.get(sub, -1),
        )
        self.known.keep(question, rests_on, known)
        return candidate

    def of_all(self, hypernodes: Sequence[int]) -> tuple[list[Candidate], bool]:
        """Return the domains that work, in order, and True if no steps were left for one of them, which ends it."""
        working: list[Candidate] = []
        for hypernode in hypernodes:
            candidate = self.of(hypernode)
            if candidate is None:
                return working, True
            if candidate.works:
                working.append(candidate)
        return working, False

    def end(self) -> None:
        """Record what the last recalled trial left undone."""
        if self._last is not None:
            ((_, sub_queue),) = self.pending_tasks.sub_queues.items()
            # For each task the last undone operation counts. A recalled trial is recorded late, so that one which a
            # later trial replaces completely is never recorded.
            self.stmt.undone += _moved(self._last.undone, sub_queue.rows.__getitem__)
            self._last = None

    def _recalled(self, hypernode: int, known: TrialResult) -> Candidate:
        """Return the result of an equal job's trial."""
        if self._last is not None and not self._last.touched <= known.touched:
            self.end()
        self._last = known
        ((_, sub_queue),) = self.pending_tasks.sub_queues.items()
        self.attempt.begin({sub_queue.rows[at]: errors for at, errors in known.errors})
        return Candidate(hypernode, known.score, known.works, lambda: self._carried_over(known))

    def _carried_over(self, known: TrialResult) -> DomainResult:
        """Return another job's result with the tasks of this one."""
        ((sub, sub_queue),) = self.pending_tasks.sub_queues.items()
        left = self.pending_tasks.copy()
        left.pop()
        left.sub_queues[sub].position = known.position
        if left.sub_queues[sub]:
            left.push(sub)
        return DomainResult(_moved(known.plan, sub_queue.rows.__getitem__), left, {sub: known.taken})

    def _try(self, hypernode: int) -> Candidate:
        """Place the job in one domain, note the result, and undo it."""
        ssn, stmt, job = self.ssn, self.stmt, self.job
        # Errors of another domain say nothing about this one.
        self.attempt.begin()
        # A copy, since each domain is tried with all that is left of the job.
        mark, left = stmt.mark(), self.pending_tasks.copy()
        score, subs = self._place_sub_jobs(left, hypernode)
        plan = stmt.save(mark)
        # Pipelined is enough: such a job keeps its room until releasing resources are free. Source: Volcano
        # allocateForJob.
        works = bool(plan) and (job_ready(ssn, job) or job_pipelined(ssn, job))
        if plan:
            stmt.rollback(mark)
        found = DomainResult(plan, left, subs)
        return Candidate(hypernode, score, works, lambda: found)

    def _place_sub_jobs(self, pending_tasks: PendingTasks, hypernode: int) -> tuple[float, dict[int, int]]:
        """Place sub-jobs until the job is ready; a sub-job that fails is dropped. Return the sum of scores, and the
        hypernode of each sub-job placed."""
        score = 0.0
        subs: dict[int, int] = {}
        while pending_tasks:
            sub = pending_tasks.pop()
            before = len(self.stmt.operations)
            gained = self._place_sub_job(sub, pending_tasks, hypernode)
            # It is dropped and not tried again, because placing other sub-jobs only makes the domain fuller.
            if gained is None or len(self.stmt.operations) == before:
                continue
            score += gained
            subs[sub] = int(self.ssn.tables.subs.hypernode[sub])
            # A sub-job is placed up to its minimum, and comes back for the rest after the others.
            if pending_tasks.sub_queues[sub]:
                pending_tasks.push(sub)
            if job_ready(self.ssn, self.job):
                break
        return score, subs

    def _place_sub_job(self, sub: int, pending_tasks: PendingTasks, start: int) -> float | None:
        """Place one sub-job in the best hypernode below ``start``. Return its score, or None if none works."""
        ssn, stmt, sub_queue = self.ssn, self.stmt, pending_tasks.sub_queues[sub]
        if not sub_queue:
            return None
        if ssn.tables.subs.nominated[sub] >= 0 and try_nomination(ssn, stmt, sub, sub_queue, self.attempt):
            return 0.0
        # A trial that may be recalled was paid as a whole, with this.
        spend = self.budget.spend if self.kind is None and self.budget is not None else None
        if spend is not None and not spend(_QUERY_STEPS):
            return None
        cost = _cost(ssn, sub_queue) if spend is not None else 0
        for gradient in gradients_for_sub_job(ssn, sub, start, ALLOCATE):
            tried: list[tuple[int, Plan, SubJobQueue]] = []
            for hypernode in gradient:
                if spend is not None and not spend(cost):
                    return None
                # Only the errors of the hypernode that is tried last are reported.
                self.attempt.forget(sub)
                mark, own = stmt.mark(), sub_queue.copy()
                allocate_tasks(ssn, stmt, sub, own, Domain(ssn, hypernode), self.attempt)
                if len(stmt.operations) > mark.operations:
                    tried.append((hypernode, stmt.save(mark), own))
                stmt.rollback(mark)
            if tried:
                scores = hypernode_scores(ssn, sub, [h for h, _, _ in tried])
                # The first of equals; Volcano takes a random one.
                best = int(scores.argmax())
                hypernode, plan, own = tried[best]
                # A plugin may refuse now what it accepted in the trial.
                if stmt.recover(plan) is not None:
                    return None
                pending_tasks.sub_queues[sub] = own
                tree, subs = ssn.tables.tree, ssn.tables.subs
                ssn.journal.put(subs["hypernode"], sub, tree.lca(int(subs.hypernode[sub]), hypernode))
                return float(scores[best])
        return None


def allocate_for_job(
    ssn: Session,
    stmt: Statement,
    job: int,
    pending_tasks: PendingTasks,
    attempt: OpenAttempt,
    budget: Budget | None = None,
) -> PendingTasks | None:
    """Place the job in the best domain of the first group that has one, among those for which ``budget`` has steps.

    Return the tasks that are left, or None if no domain works; then nothing has been placed.
    """
    if not pending_tasks:
        return None
    trials = JobTrials(ssn, stmt, job, pending_tasks, attempt, budget)
    for gradient in gradients_for_job(ssn, job, ALLOCATE):
        working, is_cut = trials.of_all(gradient)
        trials.end()
        if not working and is_cut:
            return None
        if not working:
            continue
        best = max(working, key=lambda candidate: candidate.score)  # the first of equals
        found = best.found()
        if stmt.recover(found.plan) is not None:
            return None
        _decide(ssn, job, best.hypernode, found.subs)
        return found.pending_tasks
    return None


def _cost(ssn: Session, sub_queue: SubJobQueue) -> int:
    """Return the steps of a trial of tasks in a domain."""
    return _TRIAL_STEPS * (1 + len(set(sub_queue.classes))) + _steps_alone(ssn, sub_queue.rows)


def _steps_alone(ssn: Session, rows: Iterable[int]) -> int:
    """Return the steps of tasks that are tried one by one in a trial, for terms about other pods or claims."""
    specs = [ssn.tables.tasks.pods[row].spec for row in rows]
    alone = (
        each.affinity.anti_required or each.affinity.pod_required or each.spread or each.resource_claims
        for each in specs
    )
    return _ALONE_STEPS * sum(map(bool, alone))


def steps_in_domains(ssn: Session, job: int) -> int:
    """Return the steps that a job may need: of a trial in each hypernode."""
    tables = ssn.tables
    rows = tables.jobs.tasks[job].tolist()
    trial = _TRIAL_STEPS * (1 + len(set(tables.tasks.cls[rows].tolist()))) + _steps_alone(ssn, rows)
    return len(tables.tree.names) * (_QUERY_STEPS + trial)


def is_for_allocate(ssn: Session, job: int, budget: Budget | None = None) -> bool:
    """Return True if ``allocate`` comes later in the cycle and has room for the job without evictions."""
    if not ssn.policy.comes_after(ssn.trace.action, "allocate"):
        return False
    # If the job were pipelined by this action, allocate would not place it, and the same would happen in every cycle
    # (decision 0017). The statement is discarded at the end of the block.
    with ssn.statement() as trial:
        left = allocate_for_job(ssn, trial, job, PendingTasks(ssn, job), OpenAttempt(ssn, job), budget)
        return left is not None and job_ready(ssn, job)


def is_let_in(ssn: Session, stmt: Statement, start: Mark, job: int, budget: Budget | None = None) -> bool:
    """Return True if a job for which tasks were evicted since ``start`` can be placed once they are gone. The
    statement does not change."""
    # Evictions are found node by node, while a job with a hard topology needs all of its nodes in one hypernode. Only
    # then is the placement checked as a whole.
    plan = stmt.save(start)
    evictions = tuple(op for op in plan if op.kind is Kind.EVICT)
    if not evictions or not has_hard(ssn.tables, job):
        return True
    stmt.rollback(start, remember=False)
    with ssn.statement() as gone, ssn.statement() as trial:
        gone.recover(evictions)
        attempt, left = OpenAttempt(ssn, job), PendingTasks(ssn, job)
        found = allocate_for_job(ssn, trial, job, left, attempt, budget) is not None
    return stmt.recover(plan) is None and found


def _moved(plan: Plan, row_of: Callable[[int], int]) -> Plan:
    """Return the same operations for other rows."""
    return tuple(
        Operation(
            op.kind, Placement([row_of(row) for row in op.placement.rows], op.placement.nodes), op.reason, op.evicted
        )
        for op in plan
    )


def _decide(ssn: Session, job: int, hypernode: int, of_subs: dict[int, int]) -> None:
    """Record which hypernodes the job and its sub-jobs occupy. Source: Volcano recorder.UpdateDecision."""
    tables, put = ssn.tables, ssn.journal.put
    jobs, subs = tables.jobs, tables.subs
    # Journalled: if the job is not committed, rolling back its statement restores them.
    put(jobs["hypernode"], job, tables.tree.lca(int(jobs.hypernode[job]), hypernode))
    for sub, taken in of_subs.items():
        put(subs["hypernode"], sub, tables.tree.lca(int(subs.hypernode[sub]), taken))
        put(subs["nominated"], sub, -1)
