"""Search victims for pending jobs, one job after the other. Source: KAI reclaim, preempt and consolidation actions."""

from __future__ import annotations

from typing import NamedTuple

from pumice.columns.counting import ACTIVE
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.delay import note_evictions, past_delay
from pumice.kai.engine.budget import budget_for, in_turn, steps_of
from pumice.kai.engine.counters import (
    ActionBudget,
    ExhaustedBudgets,
    SearchedJobs,
    SearchResult,
    Tally,
    tally,
)
from pumice.kai.engine.equivalence import EqualJobs
from pumice.kai.engine.job_order import SortedJobs
from pumice.kai.engine.next_queue import Waiting
from pumice.kai.engine.parts import Part, active_count
from pumice.kai.engine.placement.other_groups import other_parts
from pumice.kai.engine.refutation import is_too_large, lacks_empty_domain
from pumice.kai.engine.single_task import Following
from pumice.kai.engine.solve import NoSolution, Rules, Solution
from pumice.kai.engine.tree_order import TreeOrder, queue_tree, waiting_jobs
from pumice.model.blockers import Blocker, NoCase, NoVictims


def search(ssn: Session, rules: Rules, steps: int) -> None:
    """Search victims once for each pending job in queue order, and commit each solution before the next search.

    ``steps``: the action's ``maxSearchSteps``.
    """
    results = _Results(ssn)
    ssn.trace.counts[ActionBudget(ssn.trace.action)] = max(steps, 0)
    rows = waiting_jobs(ssn)
    # A job that had a place and whose bind was refused has room without victims, and its next attempt comes later.
    eligible = ssn.world.without_refused(past_delay(ssn, rows))
    groups = ssn.tables.jobs.groups
    eligible = eligible[[not groups[row].never_preempts for row in eligible.tolist()]]
    if not len(eligible):
        return
    # All waiting jobs, and not only those that may evict now: a job within its delay still takes part in the order of
    # queues.
    waiting, job_of = Waiting(ssn, rows), ssn.tables.tasks.job
    sorted_jobs = SortedJobs(ssn, preemptible_jobs(ssn))
    order, equal = TreeOrder(ssn, eligible), EqualJobs(ssn, eligible, rules.asks)
    following, budget = Following(ssn, rules, waiting, sorted_jobs), budget_for(ssn, eligible, steps)
    for job, part in in_turn(order, budget, skipped=results.skipped):
        if part is None or equal.failed(job):
            order.drop(job, equal.leading)
            continue
        tally(ssn, Tally.TRIED)
        with ssn.fault_scope(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
            found = _solve(ssn, rules, following, stmt, part)
            if isinstance(found, _Failure):
                # A generator, since each search takes steps of the budget: victims for other groups are searched only
                # until some find room.
                others = (_solve(ssn, rules, following, stmt, each) for each in other_parts(ssn, part))
                found = next((each for each in others if isinstance(each, Solution)), found)
            results.count(found)
            if isinstance(found, Solution):
                stmt.commit()
                note_evictions(ssn, found.evicted)
                # Evictions have released resources, so equal jobs may succeed from now on.
                equal.forget()
                equal.placed(job)
                tally(ssn, Tally.PLACED)
                changed = {job, *job_of[list(found.evicted)].tolist()}
                waiting.changed(changed)
                sorted_jobs.put(changed, there=[each for each in changed if may_be_victim(ssn, each)])
            else:
                equal.fails(job, found.why, equal=found.of_equal)
        order.drop(job, equal.leading)
    equal.tell()
    budget.end()


class _Failure(NamedTuple):
    """Why no victims were found. ``of_equal``: equal jobs fail in the same way. ``is_searched``: the job was searched
    for."""

    why: Blocker
    of_equal: bool
    is_searched: bool = False


class _Results:
    """Count how the searches of the current action end, for KAI's metrics."""

    def __init__(self, ssn: Session) -> None:
        self._counts, self._action, self._steps = ssn.trace.counts, ssn.trace.action, steps_of(ssn)

    def count(self, found: Solution | _Failure) -> None:
        """Count a job that was tried. KAI counts it from where its search begins."""
        # Before the commit, as in KAI: what the cluster refuses was solved all the same.
        if isinstance(found, Solution):
            self._add(SearchResult.SOLVED)
        elif found.is_searched:
            cut = self._steps.cut
            self._add(SearchResult.DEADLINE_EXHAUSTED if cut else SearchResult.GENERATORS_EXHAUSTED)

    # KAI counts the first such job alone, since it ends the action there. Here other accounts may have steps left.
    def skipped(self, _job: int) -> None:
        """Count a job that had no step left."""
        self._add(SearchResult.NOT_ATTEMPTED)

    def _add(self, result: SearchResult) -> None:
        self._counts[SearchedJobs(self._action, result)] += 1
        if result in (SearchResult.DEADLINE_EXHAUSTED, SearchResult.NOT_ATTEMPTED):
            # Once in a run of the action: in KAI it ends the action.
            self._counts[ExhaustedBudgets(self._action)] = 1


def _solve(ssn: Session, rules: Rules, following: Following, stmt: Statement, part: Part) -> Solution | _Failure:
    """Place a part of a job by evictions, in the statement, or change nothing."""
    if is_too_large(ssn, part) or lacks_empty_domain(ssn, part):
        # Not shared with equal jobs: they are found as quickly, and KAI does not remember it either.
        return _Failure(NoVictims(), of_equal=False)
    if not rules.may_try(ssn, part):
        return _Failure(NoCase(), of_equal=True)
    found = following.solve(stmt, part)
    if isinstance(found, Solution):
        return found
    # After simulations the outcome depends on the queue's position in the order; it then says nothing about equal jobs.
    return _Failure(NoVictims(), of_equal=found is NoSolution.WITHOUT_A_TRY, is_searched=True)


def preemptible_jobs(ssn: Session) -> AnyArray:
    """Return the rows of preemptible jobs that hold resources."""
    jobs = ssn.tables.jobs
    found = jobs.alive & jobs.preemptible & ~jobs.quarantined & (jobs.queue >= 0) & (jobs.counts @ ACTIVE > 0)
    # A job of a queue that is no leaf has no place in the order of queues.
    rows: AnyArray = (found & queue_tree(ssn).leaf[jobs.queue]).nonzero()[0]
    return rows


def may_be_victim(ssn: Session, job: int) -> bool:
    """Return True if a job is preemptible and holds resources."""
    jobs = ssn.tables.jobs
    return bool(jobs.preemptible[job] and not jobs.quarantined[job]) and active_count(jobs.counts[job].tolist()) > 0
