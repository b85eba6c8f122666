"""reclaim: evict tasks of queues above their share for starving jobs of other queues. Source: Volcano reclaim
action."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from pumice.columns.rows import TaskRows
from pumice.columns.views import Task
from pumice.framework.cycle.budget import SEARCH_STEPS_MAX, Budget
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.model.blockers import RECLAIM, TASK, NeverPreempts, QueueLimit, Refused
from pumice.volcano import points
from pumice.volcano.eviction.candidates import evictable
from pumice.volcano.eviction.evict_for_task import EvictForTask, MakeRoomForAll, WhyNot
from pumice.volcano.eviction.node_search import (
    IN_VAIN_STEPS,
    MORE_VICTIMS_STEPS,
    NodeSearch,
    VictimChoice,
    Victims,
    begin_search,
    least_steps,
)
from pumice.volcano.eviction.nominations import never_preempts, pipelined_again
from pumice.volcano.eviction.reprieve import needed_victims
from pumice.volcano.eviction.scored_search import ScoredSearch
from pumice.volcano.eviction.victim_order import eviction_order
from pumice.volcano.eviction.why_no_victims import why_no_victims
from pumice.volcano.gangs.starving import all_of, queues_in_order, starving_jobs

REASON = "reclaim"


def reclaim(
    ssn: Session,
    *,
    predicateErrorCacheEnable: bool = True,
    promisedKept: bool = True,
    allMustAgree: bool = False,
    sparesUnneeded: bool = False,
    scoredSearch: bool = False,
    maxSearchSteps: int = SEARCH_STEPS_MAX,
) -> None:
    """Process queues and starving jobs in order, and make room for the tasks of each, all or nothing per job.

    ``predicateErrorCacheEnable`` has no effect: Volcano creates the cache per task here. ``promisedKept``: a gang
    counts nodes that earlier evictions vacated for its pods (decision 0016). ``allMustAgree``: count the votes of all
    plugins about victims; Volcano drops some (decision 0017).
    ``sparesUnneeded``: evict only those victims of a node that are needed (decision 0017). ``scoredSearch``: where no
    room is found for a gang task by task, search placements of all of them, the largest first, where least leaves.
    ``maxSearchSteps``: counted steps in a cycle, as for ``preempt``.
    """
    starving = starving_jobs(ssn, with_topology=True)
    if starving:
        budget = Budget(ssn, all_of(starving), maxSearchSteps, least=least_steps(ssn))
        _Reclamation(
            ssn,
            budget,
            promised_kept=promisedKept,
            all_must_agree=allMustAgree,
            spares_unneeded=sparesUnneeded,
            scored=scoredSearch,
        ).run(starving)


class _Reclamation:
    """One run of the action."""

    def __init__(
        self,
        ssn: Session,
        budget: Budget,
        *,
        promised_kept: bool,
        all_must_agree: bool,
        spares_unneeded: bool,
        scored: bool,
    ) -> None:
        self.budget = budget
        self.ssn, self.search = ssn, NodeSearch(ssn, cached=False, by_score=False)
        self.promised_kept, self.spares_unneeded = promised_kept, spares_unneeded
        self.votes = points.reclaimable_agreed if all_must_agree else points.reclaimable_victims
        # Options are a part of the name, since failures under other options say nothing here.
        kind = f"{REASON} {promised_kept} {all_must_agree} {spares_unneeded} {scored}"
        self.making = EvictForTask(ssn, REASON, kind, points.reclaimable, budget)
        found = ScoredSearch(ssn, self.search, budget, self._victims, self._may_place, REASON) if scored else None
        self.for_all = None if found is None else self._for_all(found)

    def run(self, starving: dict[int, list[int]]) -> None:
        """Process all queues."""
        ssn = self.ssn
        # An overused queue takes nothing back.
        for queue in queues_in_order(ssn, starving, but_overused=True):
            jobs = Heap(ssn.order.job_keys(), starving[queue])
            for job in self.budget.jobs(jobs):
                if self.making.for_job(job, self._reclaim, self.for_all):
                    self.making.equal.go_on(jobs)
            self.budget.close(np.array(starving[queue]))
        self.budget.end()

    def _reclaim(self, stmt: Statement, row: int) -> WhyNot | None:
        """Pipeline a task on the first node where that works. Return why it fails, or None."""
        ssn, search, task = self.ssn, self.search, Task(self.ssn.tables, row)
        queue = task.queue
        # Before any question to plugins: the preemptionPolicy of the pod forbids evictions for it, whatever shares say.
        if never_preempts(task):
            return NeverPreempts
        if not self._may_take(task):
            return lambda: QueueLimit(queue.name, RECLAIM)
        unfit = ssn.ask(points.task_refused, task)
        if unfit is not None:
            reason = unfit.reason
            return lambda: Refused(TASK, reason)
        if self.promised_kept and pipelined_again(stmt, task, self.search.fits):
            return None
        victims = self._victims(task)
        reachable = search.reachable(task)
        # Nodes are tried unscored, unlike in preempt.
        nodes = search.in_row_order(reachable & victims.nodes())
        # Spent before the search, so that none begins without steps.
        if not begin_search(self.budget, task, alone=search.is_alone):
            return lambda: None
        # A search that was cut is discarded, whatever the nodes left to try would give.
        tries = takewhile(lambda _: not self.budget.is_cut(), victims.on(nodes))
        if any(self._on_node(stmt, task, each) for each in tries):
            return None
        self.budget.spend(search.cost(victims, reachable))
        return lambda: why_no_victims(ssn, victims, reachable)

    def _victims(self, task: Task) -> Victims:
        # Only running tasks of reclaimable queues; preempt also takes bound ones.
        supply = evictable(self.ssn).of_other_queues(task.queue.row)
        return Victims(self.ssn, task, supply, self.votes, needs_any=True)

    def _for_all(self, search: ScoredSearch) -> MakeRoomForAll:
        def place(stmt: Statement, job: int, rows: Sequence[int]) -> bool:
            ssn, tasks = self.ssn, [Task(self.ssn.tables, row) for row in rows]
            # What refuses a task whatever is evicted refuses it here too.
            if any(never_preempts(task) or ssn.ask(points.task_refused, task) is not None for task in tasks):
                return False
            return search.place(stmt, job, rows)

        return place

    def _may_place(self, task: Task, node: int) -> bool:
        return self._may_take(task) and self.search.fits(task, node)

    def _may_take(self, task: Task) -> bool:
        """Return True if the queue of the task may reclaim for it."""
        tables = self.ssn.tables
        rows = TaskRows(tables, np.array([task.row]))
        return self.ssn.ask(points.preemptive, task.queue, rows)

    def _on_node(self, stmt: Statement, task: Task, found: VictimChoice) -> bool:
        """Evict victims one by one until the task fits, and pipeline it, or do nothing. Return True if it worked."""
        node, evicted, had_room = found.node, list[int](), False
        with stmt.trial() as trial:
            left, before = iter(eviction_order(self.ssn, found.victims, task.row)), stmt.mark()
            while not (fits := self.search.fits(task, node)) and (row := next(left, -1)) >= 0:
                had_room |= self.search.has_room(task, node)
                evicted.append(row)
                stmt.evict([row], REASON)
            # Volcano evicts no more once there is room, and waits for ever if a filter still refuses. Here more victims
            # may leave for that, so the ones that are not needed are spared.
            if fits and len(evicted) > 1 and (self.spares_unneeded or had_room):
                stmt.rollback(before, remember=False)
                evicted = needed_victims(stmt, evicted, REASON, lambda: self.search.fits(task, node))
                for row in evicted:
                    stmt.evict([row], REASON)
            if len(evicted) > 1:
                self.budget.spend(MORE_VICTIMS_STEPS * (len(evicted) - 1))
            # A task that fits without evictions is pipelined too, but no node is vacated for it.
            if fits and stmt.pipeline([task.row], [node], evicted=bool(evicted)) is None:
                trial.keep()
        if not trial.kept:
            self.budget.spend(IN_VAIN_STEPS)
        return trial.kept
