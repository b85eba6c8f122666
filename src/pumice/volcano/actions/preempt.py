"""preempt: evict tasks of other jobs in the queue for starving jobs, and tasks of the same job for its pending tasks.
Source: Volcano preempt action.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np

from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.views import Task
from pumice.framework.cycle.budget import SEARCH_STEPS_MAX, Budget
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.cycle.trace import Kind
from pumice.model.blockers import TASK, Refused
from pumice.model.status import PREEMPTABLE_STATUSES
from pumice.volcano import points
from pumice.volcano.eviction.candidates import Supply, evictable
from pumice.volcano.eviction.evict_for_task import EvictForTask, WhyNot
from pumice.volcano.eviction.node_search import (
    IN_VAIN_STEPS,
    MORE_VICTIMS_STEPS,
    NodeSearch,
    VictimChoice,
    Victims,
    begin_search,
    least_steps,
    waiting_tasks,
)
from pumice.volcano.eviction.nominations import never_preempts, pipelined_again, why_not_eligible
from pumice.volcano.eviction.reprieve import needed_victims
from pumice.volcano.eviction.topology_aware import Limits, least_harmful_first
from pumice.volcano.eviction.victim_order import eviction_order
from pumice.volcano.eviction.why_no_victims import why_no_victims
from pumice.volcano.failures.evictions import equal_failures, note_failure
from pumice.volcano.gangs.attempt import PREEMPTIONS_TRIED, VICTIMS_LOOKED_AT, discarded, promised
from pumice.volcano.gangs.starving import all_of, queues_in_order, starving_jobs
from pumice.volcano.topology.domains import is_for_allocate

REASON = "preempt"
_EVICTABLE = sorted(map(int, PREEMPTABLE_STATUSES))


def preempt(
    ssn: Session,
    *,
    predicateErrorCacheEnable: bool = True,
    promisedKept: bool = True,
    allMustAgree: bool = False,
    lowerPriorityOnly: bool = False,
    sparesUnneeded: bool = False,
    enableTopologyAwarePreemption: bool = False,
    allocatableAsked: bool = False,
    topologyAwarePreemptWorkerNum: int = 16,
    minCandidateNodesPercentage: int = 10,
    minCandidateNodesAbsolute: int = 1,
    maxCandidateNodesAbsolute: int = 100,
    maxSearchSteps: int = SEARCH_STEPS_MAX,
) -> None:
    """Process queues in order. In each, the starving jobs in order evict tasks of other jobs, all or nothing per job.
    Then each of their pending tasks may evict tasks of its own job.

    ``promisedKept``: a gang counts nodes that earlier evictions vacated for its pods (decision 0016).
    ``allMustAgree``: count the votes of all plugins about victims; Volcano drops some (decision 0017).
    ``sparesUnneeded``: evict only those victims of a node that are needed (decision 0017).
    ``lowerPriorityOnly``: evict no task of the same or a higher priority, whatever plugins name (decision 0017).
    ``allocatableAsked``: topology-aware preemption asks the queue again after the evictions (decision 0017).
    ``maxSearchSteps``: counted steps in a cycle, shared out over queues and namespaces; 0 for no limit. They are
    weighted by what costs (``begin_search``, ``NodeSearch.cost``). The searches within jobs have as many beside these.
    ``topologyAwarePreemptWorkerNum`` has no effect: a cycle is one thread.
    """
    # Preempt knows no hypernodes: it would vacate nodes anywhere for a gang that must stay in one domain. gangpreempt
    # serves these jobs.
    starving = starving_jobs(ssn, with_topology=False)
    limits = Limits(minCandidateNodesPercentage, minCandidateNodesAbsolute, maxCandidateNodesAbsolute)
    if starving:
        compare = limits if enableTopologyAwarePreemption else None
        _Preemption(
            ssn,
            starving,
            compare,
            cached=predicateErrorCacheEnable,
            promised_kept=promisedKept,
            all_must_agree=allMustAgree,
            lower_priority_only=lowerPriorityOnly,
            spares_unneeded=sparesUnneeded,
            allocatable_asked=allocatableAsked,
            steps=maxSearchSteps,
        ).run()


class _Preemption:
    """One run of the action. ``compare``: how many nodes to compare by their victims; None: take the first node that
    works."""

    def __init__(
        self,
        ssn: Session,
        starving: dict[int, list[int]],
        compare: Limits | None,
        *,
        cached: bool,
        promised_kept: bool,
        all_must_agree: bool,
        lower_priority_only: bool,
        spares_unneeded: bool,
        allocatable_asked: bool,
        steps: int,
    ) -> None:
        self.ssn, self.starving, self.compare, self.promised_kept = ssn, starving, compare, promised_kept
        self.search = NodeSearch(ssn, cached=cached, by_score=compare is None)
        self.allocatable_asked, self.lower_priority_only = allocatable_asked, lower_priority_only
        self.spares_unneeded = spares_unneeded
        self.votes = points.preemptable_agreed if all_must_agree else points.preemptable_victims
        # A failure that is remembered for equal jobs holds only under the same switches, so they are a part of its key.
        switches = promised_kept, all_must_agree, allocatable_asked, lower_priority_only, spares_unneeded
        kind = f"{REASON} {compare} {switches}"
        self.budget = Budget(ssn, all_of(starving), steps, least=least_steps(ssn))
        self.making = EvictForTask(ssn, REASON, kind, points.preemptable, self.budget)
        self.within = equal_failures(ssn, f"{kind} within", points.preemptable)
        # What the attempt of another job within itself costs is paid when the job begins.
        own = _with_victims(ssn, all_of(starving))
        self.with_victims = frozenset(own.tolist())
        self.own = Budget(ssn, own, steps, of="within a job") if len(own) else None
        #: Whose steps the search for a task takes.
        self.counting: Budget | None = None
        self.allocate_follows = ssn.policy.comes_after(REASON, "allocate")

    def run(self) -> None:
        """Process all queues."""
        ssn = self.ssn
        for queue in queues_in_order(ssn, self.starving, but_overused=False):
            jobs = Heap(ssn.order.job_keys(), self.starving[queue])
            for job in self.budget.jobs(jobs):
                if self.making.for_job(job, self._from_other_jobs):
                    self.making.equal.go_on(jobs)
            self.budget.close(np.array(self.starving[queue]))
            # The second phase of Volcano follows the first queue by queue, so a later queue sees what both have
            # changed.
            # Jobs that were cut wait for the next cycle here too, since their steps include this phase.
            left = [job for job in self.starving[queue] if not self.budget.was_cut(job)]
            if self.own is not None:
                left = self.own.resumed_first(left)
            while left and not self.within.all_fail(left):
                self._within(left[0])
                left = left[1:]
        self.budget.end()
        if self.own is not None:
            self.own.end()

    def _within(self, job: int) -> None:
        """Evict tasks of a job for its own pending tasks, one by one, up to the first that fails."""
        ssn, fresh, some = self.ssn, self.within.is_fresh(job), False
        own = self.counting = self.own if job in self.with_victims else None
        if (own is not None and not own.begin(job)) or self.within.fails(job) or is_for_allocate(ssn, job, own):
            return
        supply = evictable(ssn).of_job(job)
        for row in waiting_tasks(ssn, job):
            with ssn.fault_scope(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
                refused = self._preempt(stmt, row, supply)
                if own is not None and own.is_cut():
                    # It proves nothing, and the budget says why the task waits.
                    stmt.discard()
                    return
                if refused is not None:
                    note_failure(ssn, self.within, job, discarded(ssn, job, stmt), fresh=fresh and not some)
                    return
                if self.allocate_follows and not any(op.kind is Kind.EVICT for op in stmt.operations):
                    # The task fits without evictions. Then allocate should decide, in its own order, which job gets
                    # these resources.
                    continue
                promised(ssn, job, stmt)
                some = True

    def _from_other_jobs(self, stmt: Statement, row: int) -> WhyNot | None:
        """Pipeline a task by evicting tasks of other jobs in the queue. Return why that fails, or None."""
        job = int(self.ssn.tables.tasks.job[row])
        queue = int(self.ssn.tables.jobs.queue[job])
        if self.promised_kept and pipelined_again(stmt, Task(self.ssn.tables, row), self.search.fits):
            return None
        self.counting = self.budget
        return self._preempt(stmt, row, evictable(self.ssn).of_queue(queue), but_job=job)

    def _is_nomination_void(self, task: Task) -> bool:
        """Return True if the task has no room on its nominated node: the evictions failed, or another task has taken
        it."""
        node = int(self.ssn.tables.tasks.nominated[task.row])
        return self.promised_kept and node >= 0 and not self.search.has_room(task, node)

    def _preempt(self, stmt: Statement, row: int, supply: Supply, but_job: int = -1) -> WhyNot | None:
        """Pipeline a task on the first node that works. Return why that fails, or None."""
        ssn, search = self.ssn, self.search
        task, why = Task(ssn.tables, row), None
        # Volcano's eligibility rules concern only pods with a nominated node or a preemption policy.
        if task.pod.nominated_node or never_preempts(task):
            why = why_not_eligible(ssn, task, was_tried=search.was_tried(task), is_void=self._is_nomination_void(task))
        unfit = ssn.ask(points.task_refused, task) if why is None else None
        if why is not None or unfit is not None:
            return lambda: why or (Refused(TASK, unfit.reason) if unfit is not None else None)
        # A node may suffice without victims, as in Volcano (ValidateVictims), so nodes without candidates are kept.
        victims = Victims(
            ssn,
            task,
            supply,
            self.votes,
            but_job=but_job,
            only_best_effort=bool(ssn.tables.tasks.best_effort[row]),
            only_below=self.lower_priority_only,
        )
        reachable = search.reachable(task)
        budget = self.counting
        if budget is not None and not begin_search(budget, task, alone=search.is_alone):
            return lambda: None
        if self._anywhere(stmt, task, victims, reachable):
            return None
        if budget is not None:
            budget.spend(search.cost(victims, reachable))
        queue = task.queue.name
        # Reasons are computed when they are read. Most are replaced by a later action's before that.
        return lambda: why_no_victims(ssn, victims, reachable, queue)

    def _anywhere(self, stmt: Statement, task: Task, victims: Victims, reachable: Bool) -> bool:
        """Return True if the task was pipelined to a node."""
        search, promising = self.search, reachable & victims.nodes()
        if self.compare is None:
            batches = (list(victims.on((nodes,))) for nodes in search.best_first(task, promising))
            found = (each for batch in batches for each in self._worth_a_trial(task, batch))
            return any(self._on_node(stmt, task, each) for each in takewhile(self._goes_on, found))
        # The number of nodes to compare depends on all reachable nodes, as in Volcano, and not only on those with
        # victims.
        for part in search.by_shard(reachable):
            least = least_harmful_first(
                self.ssn,
                task,
                victims.on(search.in_row_order(part & promising)),
                self.compare.of(int(np.count_nonzero(part))),
            )
            if any(self._all_of(stmt, task, each) for each in takewhile(self._goes_on, least)):
                return True
        return False

    def _worth_a_trial(self, task: Task, found: Sequence[VictimChoice]) -> Iterator[VictimChoice]:
        """Yield nodes in order, without those that refuse the task and would not change, for want of victims."""
        # All nodes without victims are asked together: where a filter refuses a task on a whole cluster, a trial of
        # each of them is the whole cost of the action. None of them changes between trials, which leave no trace.
        bare = np.array([each.node for each in found if not each.victims], dtype=np.int64)
        passing = bare[self.search.passing(task, bare)] if len(bare) else bare
        fit = frozenset(passing.tolist() if len(passing) and self.search.may_take(task) else ())
        for each in found:
            if each.victims or each.node in fit:
                yield each
            else:
                self._count(0)

    def _all_of(self, stmt: Statement, task: Task, found: VictimChoice) -> bool:
        """Evict all victims on a node and pipeline the task there, or do nothing. Return True if it worked."""
        self._count(len(found.victims))
        self._spend_for(found.victims)
        with stmt.trial() as trial:
            if found.victims:
                stmt.evict(found.victims, REASON)
            # Filters are asked again: only some plugins take part in Volcano's simulation of victims (decision 0017).
            allowed = not self.allocatable_asked or self.search.may_take(task)
            let_in = allowed and self.search.passes(task, found.node)
            if let_in and stmt.pipeline([task.row], [found.node], evicted=True) is None:
                trial.keep()
        return self._ended(trial.kept)

    def _on_node(self, stmt: Statement, task: Task, found: VictimChoice) -> bool:
        """Evict victims one by one until the task fits, and pipeline it, or do nothing. Return True if it worked."""
        ssn, node, evicted = self.ssn, found.node, list[int]()
        order = eviction_order(ssn, found.victims, task.row)
        self._count(len(order))
        with stmt.trial() as trial:
            left, before = iter(order), stmt.mark()
            # Asked before the first eviction too: a node may have room without victims since an earlier job of this
            # action has evicted more than it needed.
            while not (fits := self.search.fits(task, node)) and (row := next(left, -1)) >= 0:
                evicted.append(row)
                stmt.evict([row], REASON)
            # Victims leave in the order of their importance. So a small one may leave first and turn out not to be
            # needed once a larger one has left.
            if fits and self.spares_unneeded and len(evicted) > 1:
                stmt.rollback(before, remember=False)
                evicted = needed_victims(stmt, evicted, REASON, lambda: self.search.fits(task, node))
                for row in evicted:
                    stmt.evict([row], REASON)
            self._spend_for(evicted)
            # Tasks without requests free nothing, so the pod is not nominated for them.
            freed = not ssn.tables.tasks.best_effort[evicted].all()
            if fits and stmt.pipeline([task.row], [node], evicted=freed) is None:
                trial.keep()
        return self._ended(trial.kept)

    def _ended(self, kept: bool) -> bool:
        """Return whether a trial on a node was kept, and take the steps of one in vain."""
        if self.counting is not None and not kept:
            self.counting.spend(IN_VAIN_STEPS)
        return kept

    def _goes_on(self, _: VictimChoice) -> bool:
        """Return True if steps are left. A search that was cut is discarded, whatever more nodes would give."""
        return self.counting is None or not self.counting.is_cut()

    def _spend_for(self, evicted: list[int]) -> None:
        """Take the steps of victims that were evicted in a trial."""
        if self.counting is not None and len(evicted) > 1:
            self.counting.spend(MORE_VICTIMS_STEPS * (len(evicted) - 1))

    def _count(self, victims: int) -> None:
        """Count an attempt for Volcano's metrics."""
        counts = self.ssn.trace.counts
        counts[PREEMPTIONS_TRIED] += 1
        # A gauge in Volcano: it keeps the number of the last attempt.
        counts[VICTIMS_LOOKED_AT] = victims


def _with_victims(ssn: Session, rows: AnyArray) -> AnyArray:
    """Return those jobs of some that have running or bound tasks."""
    found: AnyArray = rows[ssn.tables.jobs.counts[rows][:, _EVICTABLE].any(axis=1)]
    return found
