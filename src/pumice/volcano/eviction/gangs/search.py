"""Search room for a whole gang: a domain, and victims there, tried out before anything is decided. Source: Volcano
gangpreempt and gangreclaim actions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.rows import TaskRows
from pumice.columns.views import Queue
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.cycle.trace import Kind, Operation
from pumice.model.blockers import RECLAIM, Blocker, NeverPreempts, QueueLimit, RoomIsFree, TooFewVictims, TooSmall
from pumice.volcano import points
from pumice.volcano.eviction.context import EvictionKind
from pumice.volcano.eviction.gangs.places import GangPlace, GangPlaces
from pumice.volcano.eviction.gangs.plans import GangPlan, VictimPrefixes, WaitingTasks, last_of_each, waiting_tasks_of
from pumice.volcano.eviction.gangs.room import GangRoom
from pumice.volcano.eviction.gangs.trees import least_need, tree_of
from pumice.volcano.eviction.gangs.trials import GangTrials
from pumice.volcano.eviction.gangs.victim_sets import amount_of
from pumice.volcano.eviction.gangs.victims_by_place import VictimsByPlace
from pumice.volcano.eviction.node_search import CLASS_STEPS, JOB_STEPS, NodeSearch
from pumice.volcano.gangs.readiness import job_ready


class Limits(NamedTuple):
    """Limits of the search.

    ``domains``: how many to try. ``whole``: jobs may lose tasks below their minimum. ``only_in_need``: evict nothing
    for a gang that fits without. ``promised_kept``: try domains first that contain all nodes to which its tasks are
    nominated (decision 0016). ``all_must_agree``: count the votes of all plugins about victims (decision 0017).
    """

    domains: int
    whole: bool
    only_in_need: bool = False
    promised_kept: bool = True
    all_must_agree: bool = False


#: Pods that are looked at in one step.
PODS_A_STEP = 4
#: Steps of a domain for which it is found out, by sums, whether the gang would fit if all victims left.
DOMAIN_STEPS = 3
#: How many times the steps of a plan a trial takes that is made for what it leaves. It decides nothing, so that it may
#: use a small part of the time of an action.
TIMES_TO_REPORT = 4


class GangSearch:
    """The search of one action. ``kind`` and ``reason`` are those of its evictions."""

    def __init__(
        self, ssn: Session, kind: EvictionKind, reason: str, limits: Limits, budget: Budget, *, cached: bool
    ) -> None:
        self._budget = budget
        self._ssn, self._kind, self._reason, self._limits = ssn, kind, reason, limits
        self._nodes = NodeSearch(ssn, cached=cached, by_score=True)
        self.findings: list[Blocker] = []
        #: What the last search reports rests on nothing else than its job and the cluster.
        self.is_whole = True

    def make_room(self, stmt: Statement, job: int) -> dict[int, int]:
        """Evict and pipeline in the statement so that the job is complete, or do nothing.

        Return the hypernode of each sub-job that was placed. ``findings`` are the reasons for a failure. ``is_whole``
        is False if no steps were left to find all that the trials of Volcano leave.
        """
        self.findings, self.is_whole = [], True
        if self._ssn.tables.jobs.groups[job].never_preempts:
            self.findings.append(NeverPreempts())
            return {}
        sub_queues = list(waiting_tasks_of(self._ssn, job))
        waiting = self._waiting(job, sub_queues)
        if not waiting:
            return {}
        if self._kind is EvictionKind.GANG_RECLAIM and not self._may_take(job, waiting):
            name = self._ssn.tables.queues.names[self._ssn.tables.jobs.queue[job]]
            self.findings.append(QueueLimit(name, RECLAIM))
            return {}
        # What counting refutes takes steps too, since a tenant may have a thousand gangs refuted in each cycle.
        classes = sum(len(each.wanted) for each in sub_queues)
        if not self._budget.spend(JOB_STEPS + CLASS_STEPS // 2 * (classes - 1)):
            return {}
        places, limits = GangPlaces(self._ssn, job), self._limits
        domains = places.of_job(waiting, promised_kept=limits.promised_kept)[: limits.domains]
        trials = GangTrials(self._ssn, places, sub_queues, self._nodes, self._reason, self._budget.spend)
        # A plan without victims succeeds if the gang fits as it is.
        if limits.only_in_need and any(self._plan(stmt, trials, each, []) is not None for each in domains):
            self.findings.append(RoomIsFree())
            return {}
        return self._among(stmt, job, domains, trials, self._need(job, sub_queues, waiting))

    def _among(
        self, stmt: Statement, job: int, domains: Sequence[GangPlace], trials: GangTrials, need: F64
    ) -> dict[int, int]:
        """Make room in the first domain that has enough victims. ``need`` (R,): what the waiting tasks request."""
        victims = VictimsByPlace(
            self._ssn, self._kind, job, whole=self._limits.whole, agreed=self._limits.all_must_agree
        )
        emptied, tried = trials.room(victims.freed), dict[str, VictimPrefixes]()
        for place in domains:
            # A domain that sums refute takes about as long as a few pods that are looked at.
            if self._budget.is_cut() or not self._budget.spend(DOMAIN_STEPS):
                return {}
            # Victims are sought only where the gang would fit if all of them left: listing them costs most.
            if (refuted := _refuted(trials, victims, place, emptied)) is not None:
                self.findings.append(refuted)
                continue
            prefixes = tried[place.name] = self._prefixes(victims, place, need, self._budget.spend)
            for each in _that_may_do(trials, place, prefixes):
                found = self._plan(stmt, trials, place, each)
                if self._budget.is_cut():
                    return {}
                if found is None:
                    continue
                if trials.has_inner_domains:
                    found = self._sparing(stmt, trials, place, each, found)
                # A plan is found in a trial that is rolled back, and then repeated in the statement. A plugin may
                # still refuse it.
                mark = stmt.mark()
                if stmt.recover(found.plan) is None:
                    return found.hypernodes
                stmt.rollback(mark)
            if prefixes.finding is not None:
                self.findings.append(prefixes.finding)
        if not self._budget.is_cut():
            # Where nothing can be evicted Volcano makes no trial.
            promising = [each for each in domains if victims.any_in(each)]
            stmt.undone += self._left_by_trials(stmt, promising, trials, victims, need, emptied, tried)
        return {}

    def _left_by_trials(
        self,
        stmt: Statement,
        domains: Sequence[GangPlace],
        trials: GangTrials,
        victims: VictimsByPlace,
        need: F64,
        emptied: GangRoom,
        tried: dict[str, VictimPrefixes],
    ) -> list[Operation]:
        """Return the last placement of each task in the trials that Volcano makes, after all have failed.

        Volcano tries each domain with more and more victims, task by task. Sums refute most of these trials here, but
        what a trial placed before it failed is reported of its pods, and nominates them.
        """
        known, found = set[int](), list[Operation]()
        # From the last trial on, because the last placement of a task counts. The more leave, the more are placed.
        for place in reversed(domains):
            if not self.is_whole or trials.most_placed(place, emptied) <= known:
                continue
            if place.name not in tried:
                tried[place.name] = self._prefixes(victims, place, need, self._budget.spend_besides)
            for each in reversed(tried[place.name]):
                if trials.most_placed(place, trials.room_without(each, place)) <= known:
                    break
                self.is_whole &= self._budget.spend_besides(TIMES_TO_REPORT * trials.steps(each))
                if not self.is_whole:
                    break
                before = len(stmt.undone)
                trials.plan(stmt, place, each, by_sums=False)
                new = list(last_of_each(stmt.undone[before:], known))
                del stmt.undone[before:]
                if not new:
                    break
                found += new
        return found

    def _waiting(self, job: int, sub_queues: Sequence[WaitingTasks]) -> list[int]:
        """Return the tasks to place: all tasks, or those of the next sub-job if the job is ready."""
        return [
            row for sub_queue in (sub_queues[:1] if job_ready(self._ssn, job) else sub_queues) for row in sub_queue.rows
        ]

    def _need(self, job: int, sub_queues: Sequence[WaitingTasks], waiting: list[int]) -> F64:
        """Return what the tasks to place ask for; of a tree, what the groups do that it needs at least. Shape (R,)."""
        root = tree_of(self._ssn, job)
        if root is None:
            return amount_of(self._ssn, waiting)
        return least_need(self._ssn, root, {each.sub: amount_of(self._ssn, each.rows) for each in sub_queues})

    def _may_take(self, job: int, rows: Sequence[int]) -> bool:
        """Return True if plugins allow the queue to take resources for these tasks."""
        tables = self._ssn.tables
        queue = Queue(tables, int(tables.jobs.queue[job]))
        return self._ssn.ask(points.preemptive, queue, TaskRows(tables, np.array(rows)))

    def _prefixes(
        self, victims: VictimsByPlace, place: GangPlace, need: F64, spend: Callable[[int], bool]
    ) -> VictimPrefixes:
        """Return the victims to try in a place; none if no step is left to look for them."""
        candidates = victims.candidates(place)
        if not spend(1 + len(candidates) // PODS_A_STEP):
            self.is_whole = False
            return VictimPrefixes()
        return victims.prefixes(place, candidates, need)

    def _plan(self, stmt: Statement, trials: GangTrials, place: GangPlace, victims: list[int]) -> GangPlan | None:
        """Return a plan by which the job becomes complete in a place once the victims are gone, or None."""
        # A trial costs one question per task and node. This bound rules out most domains with sums alone.
        if not trials.could_place(place, trials.room_without(victims, place)):
            return None
        return trials.plan(stmt, place, victims) if self._budget.spend(trials.steps(victims)) else None

    def _sparing(
        self, stmt: Statement, trials: GangTrials, place: GangPlace, victims: list[int], found: GangPlan
    ) -> GangPlan:
        """Return a plan without the victims on nodes of other domains than those where the plan puts the gang, or the
        plan itself if there is none."""
        tasks, moves = self._ssn.tables.tasks, (op for op in found.plan if op.kind is Kind.PIPELINE)
        taken = {node for op in moves for node in op.placement.nodes}
        # All victims of a job or none: it may have been counted on that it leaves whole.
        jobs = {int(tasks.job[row]) for row in victims if int(tasks.node[row]) in taken}
        needed = [row for row in victims if int(tasks.job[row]) in jobs]
        return (self._plan(stmt, trials, place, needed) if len(needed) < len(victims) else None) or found


def _refuted(trials: GangTrials, victims: VictimsByPlace, place: GangPlace, emptied: GangRoom) -> Blocker | None:
    """Return why no evictions in a place make room for the job, None if some may. ``emptied``: the room if all victims
    left."""
    if not victims.any_in(place):
        return TooFewVictims(place.name, 0)
    return None if trials.could_place(place, emptied) else TooSmall(place.name)


def _that_may_do(trials: GangTrials, place: GangPlace, victims: VictimPrefixes) -> Iterator[list[int]]:
    """Yield the prefixes that sums do not refute."""
    # The more leave, the more can be placed, so the first number that may do is found by bisection.
    first = bisect_left(victims, True, key=lambda each: trials.could_place(place, trials.room_without(each, place)))
    for i in range(first, len(victims)):
        yield victims[i]
