"""Search room for a whole gang: a domain, and victims there, tried out before anything is decided. Source: Volcano
gangpreempt and gangreclaim actions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import EPS, F64, AnyArray, Bool
from pumice.columns.nodes import FUTURE, IDLE, RELEASING
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Job, Queue, Task
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.cycle.trace import Operation
from pumice.model.blockers import RECLAIM, Blocker, NeverPreempts, QueueLimit, RoomIsFree, TooFewVictims, TooSmall
from pumice.placing.batch import placing_of
from pumice.volcano import points
from pumice.volcano.eviction.candidates import Supply, evictable
from pumice.volcano.eviction.context import EvictionContext, EvictionKind
from pumice.volcano.eviction.gang_places import GangPlace, GangPlaces
from pumice.volcano.eviction.gang_plans import (
    GangPlan,
    VictimPrefixes,
    WaitingTasks,
    joined,
    last_of_each,
    waiting_tasks_of,
)
from pumice.volcano.eviction.gang_room import GangRoom
from pumice.volcano.eviction.gang_victims import amount_of, victim_sets_of
from pumice.volcano.eviction.node_search import CLASS_STEPS, JOB_STEPS, NodeSearch
from pumice.volcano.gangs.readiness import job_pipelined, job_ready, sub_missing, sub_pipelined


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
#: Steps for each pod that a trial evicts. It is counted out of its node, its queue and what plugins keep, and back in
#: at the end of the trial, which costs about four times as much as a question about one task and one node.
STEPS_AN_EVICTION = 4
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
        self._places = GangPlaces(ssn, promised_kept=limits.promised_kept)
        self.findings: list[Blocker] = []
        #: What the last search reports rests on nothing else than its job and the cluster.
        self.is_whole = True
        self._tried: dict[tuple[int, str], list[GangPlace]] = {}  # by sub-job and place, outside of trials

    def make_room(self, stmt: Statement, job: int) -> dict[int, int]:
        """Evict and pipeline in the statement so that the job is complete, or do nothing.

        Return the hypernode of each sub-job that was placed. ``findings`` are the reasons for a failure. ``is_whole``
        is False if no steps were left to find all that the trials of Volcano leave.
        """
        self.findings, self.is_whole, self._tried = [], True, {}
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
        need = amount_of(self._ssn, waiting)
        domains = self._places.of_job(job, waiting)[: self._limits.domains]
        # A plan without victims succeeds if the gang fits as it is.
        if self._limits.only_in_need and any(
            self._plan(stmt, job, sub_queues, each, []) is not None for each in domains
        ):
            self.findings.append(RoomIsFree())
            return {}
        emptied, sets = self._room(self._supply(job).freed()), dict[str, VictimPrefixes]()
        have_victims = self._have_victims(job)
        for place in domains:
            # A domain that sums refute takes about as long as a few pods that are looked at.
            if self._budget.is_cut() or not self._budget.spend(DOMAIN_STEPS):
                return {}
            # Victims are sought only where the gang would fit if all of them left: listing them costs most.
            if (refuted := self._refuted(job, sub_queues, place, emptied, have_victims)) is not None:
                self.findings.append(refuted)
                continue
            victim_sets = sets[place.name] = self._victims(job, place, need, self._budget.spend)
            for victims in self._that_may_do(job, sub_queues, place, victim_sets):
                found = self._plan(stmt, job, sub_queues, place, victims)
                if self._budget.is_cut():
                    return {}
                if found is None:
                    continue
                # A plan is found in a trial that is rolled back, and then repeated in the statement. A plugin may
                # still refuse it.
                mark = stmt.mark()
                if stmt.recover(found.plan) is None:
                    return found.hypernodes
                stmt.rollback(mark)
            if victim_sets.finding is not None:
                self.findings.append(victim_sets.finding)
        if not self._budget.is_cut():
            # Where nothing can be evicted Volcano makes no trial.
            promising = [each for each in domains if have_victims[each.nodes.rows].any()]
            stmt.undone += self._left_by_trials(stmt, job, sub_queues, promising, need, emptied, sets)
        return {}

    def _left_by_trials(
        self,
        stmt: Statement,
        job: int,
        sub_queues: Sequence[WaitingTasks],
        domains: list[GangPlace],
        need: F64,
        emptied: GangRoom,
        sets: dict[str, VictimPrefixes],
    ) -> list[Operation]:
        """Return the last placement of each task in the trials that Volcano makes, after all have failed.

        Volcano tries each domain with more and more victims, task by task. Sums refute most of these trials here, but
        what a trial placed before it failed is reported of its pods, and nominates them.
        """
        known, found = set[int](), list[Operation]()
        # From the last trial on, because the last placement of a task counts. The more leave, the more are placed.
        for place in reversed(domains):
            if not self.is_whole or self._most_placed(job, sub_queues, place, emptied) <= known:
                continue
            if place.name not in sets:
                sets[place.name] = self._victims(job, place, need, self._budget.spend_besides)
            for victims in reversed(sets[place.name]):
                if self._most_placed(job, sub_queues, place, self._room_without(victims, place)) <= known:
                    break
                self.is_whole &= self._budget.spend_besides(TIMES_TO_REPORT * _cost(sub_queues, victims))
                if not self.is_whole:
                    break
                before = len(stmt.undone)
                self._try(stmt, job, sub_queues, place, victims, count=False)
                new = list(last_of_each(stmt.undone[before:], known))
                del stmt.undone[before:]
                if not new:
                    break
                found += new
        return found

    # -- what is asked for, and where ---------------------------------------------------------------------------------

    def _waiting(self, job: int, sub_queues: Sequence[WaitingTasks]) -> list[int]:
        """Return the tasks to place: all tasks, or those of the next sub-job if the job is ready."""
        return [
            row for sub_queue in (sub_queues[:1] if job_ready(self._ssn, job) else sub_queues) for row in sub_queue.rows
        ]

    def _may_take(self, job: int, rows: Sequence[int]) -> bool:
        """Return True if plugins allow the queue to take resources for these tasks."""
        tables = self._ssn.tables
        queue = Queue(tables, int(tables.jobs.queue[job]))
        return self._ssn.ask(points.preemptive, queue, TaskRows(tables, np.array(rows)))

    def _victims(self, job: int, place: GangPlace, need: F64, spend: Callable[[int], bool]) -> VictimPrefixes:
        """Return victims in a domain: more and more victim sets, from the first number that may free enough."""
        ssn, nodes = self._ssn, place.nodes.rows
        outside = placing_of(ssn).feasible.outside
        # An eviction on a node of another shard frees nothing for this scheduler.
        if outside is not None:
            nodes = nodes[~outside[nodes]]
        if not len(nodes):
            return VictimPrefixes()
        candidates = self._candidates(job, nodes)
        if not spend(1 + len(candidates) // PODS_A_STEP):
            self.is_whole = False
            return VictimPrefixes()
        context = EvictionContext(self._kind, Job(ssn.tables, job), hypernode=place.hypernode)
        whole, agreed = self._limits.whole, self._limits.all_must_agree
        victim_sets = victim_sets_of(ssn, context, candidates, need, whole=whole, agreed=agreed)
        if not victim_sets:
            return VictimPrefixes(finding=TooFewVictims(place.name, len(candidates)))
        books = ssn.tables.nodes.books[nodes]
        # One running sum tests all prefixes of the victim sets. A sum over the domain ignores fragmentation, so a
        # prefix that passes is still tried out.
        room = np.cumsum([(books[:, IDLE] + books[:, RELEASING]).sum(axis=0), *(b.freed for b in victim_sets)], axis=0)
        enough = (need - room[1:] < EPS).all(axis=1).nonzero()[0].tolist()
        chosen = [row for each in victim_sets for row in each.rows]
        ends = np.cumsum([len(each.rows) for each in victim_sets]).tolist()
        found = TooFewVictims(place.name, len(candidates), len(chosen), len(victim_sets), enough=bool(enough))
        return VictimPrefixes(chosen, [ends[last] for last in enough], found)

    def _that_may_do(
        self, job: int, sub_queues: Sequence[WaitingTasks], place: GangPlace, victims: VictimPrefixes
    ) -> Iterator[list[int]]:
        """Yield the prefixes that sums do not refute."""
        # The more leave, the more can be placed, so the first number that may do is found by bisection.
        first = bisect_left(
            victims,
            True,
            key=lambda each: self._could_place(job, sub_queues, place, self._room_without(each, place)),
        )
        for i in range(first, len(victims)):
            yield victims[i]

    def _candidates(self, job: int, nodes: AnyArray) -> TaskRows:
        """Return the tasks on these nodes that the kind of eviction may touch."""
        tables = self._ssn.tables
        jobs, supply = tables.jobs, self._supply(job)
        if self._kind is EvictionKind.GANG_RECLAIM:
            return supply.on(nodes)
        # Strictly lower priority, by job and not by task.
        rows = supply.on(nodes, but_job=job).rows
        return TaskRows(tables, rows[jobs.priority[tables.tasks.job[rows]] < jobs.priority[job]])

    def _supply(self, job: int) -> Supply:
        """Return the tasks, on all nodes, among which the kind of eviction looks for victims."""
        queue, running = int(self._ssn.tables.jobs.queue[job]), evictable(self._ssn)
        reclaims = self._kind is EvictionKind.GANG_RECLAIM
        return running.of_other_queues(queue, gangs=True) if reclaims else running.of_queue(queue, gangs=True)

    def _refuted(
        self, job: int, sub_queues: Sequence[WaitingTasks], place: GangPlace, emptied: GangRoom, have_victims: Bool
    ) -> Blocker | None:
        """Return why no evictions in a place make room for the job, None if some may."""
        if not have_victims[place.nodes.rows].any():
            return TooFewVictims(place.name, 0)
        return None if self._could_place(job, sub_queues, place, emptied) else TooSmall(place.name)

    def _have_victims(self, job: int) -> Bool:
        """Return the nodes with tasks among which victims may be found. Shape (N,)."""
        outside, found = placing_of(self._ssn).feasible.outside, self._supply(job).has_any()
        # An eviction on a node of another shard frees nothing for this scheduler.
        return found if outside is None else found & ~outside

    # -- plans --------------------------------------------------------------------------------------------------------
    def _plan(
        self, stmt: Statement, job: int, sub_queues: Sequence[WaitingTasks], place: GangPlace, victims: list[int]
    ) -> GangPlan | None:
        """Evict the victims and place the job in the domain, in a trial. Return the plan, or None if the job does not
        become complete."""
        # A trial costs one question per task and node. This bound rules out most domains with sums alone.
        if not self._could_place(job, sub_queues, place, self._room_without(victims, place)):
            return None
        if not self._budget.spend(_cost(sub_queues, victims)):
            return None
        return self._try(stmt, job, sub_queues, place, victims)

    def _try(
        self,
        stmt: Statement,
        job: int,
        sub_queues: Sequence[WaitingTasks],
        place: GangPlace,
        victims: list[int],
        *,
        count: bool = True,
    ) -> GangPlan | None:
        """Make a plan in a trial. ``count`` False: try also the hypernodes that sums refute."""
        ssn, found = self._ssn, None
        with stmt.trial():
            mark, was_ready, hypernodes, placed = stmt.mark(), job_ready(ssn, job), {}, False
            if victims:
                stmt.evict(victims, self._reason)
            for sub_queue in sub_queues:
                took = self._place_sub_job(stmt, job, sub_queue, place, evicts=bool(victims), count=count)
                if took is None:
                    return None
                placed = True
                if took.hypernode >= 0:
                    hypernodes[sub_queue.sub] = took.hypernode
                # A job that is ready gets one more sub-job at a time, and one that is not stops once it would be
                # ready.
                if was_ready or job_pipelined(ssn, job):
                    break
            if placed and job_pipelined(ssn, job):
                found = GangPlan(joined(ssn, stmt.save(mark)), hypernodes)
        return found

    def _place_sub_job(
        self, stmt: Statement, job: int, sub_queue: WaitingTasks, place: GangPlace, *, evicts: bool, count: bool
    ) -> GangPlace | None:
        """Place a sub-job in the first place that takes all of it. Return that place, or None."""
        ssn = self._ssn
        for each in self._places.of_sub_job(job, sub_queue.sub, place):
            nodes = each.nodes.rows
            if count and not self._room(ssn.tables.nodes.books[:, FUTURE], nodes).holds(sub_queue, nodes):
                continue
            with stmt.trial() as trial:
                if self._place_all(stmt, sub_queue.sub, sub_queue.rows, each.nodes, evicts=evicts):
                    trial.keep()
                    return each
        return None

    def _tries(self, job: int, sub: int, place: GangPlace) -> list[GangPlace]:
        """Return the places of a sub-job, to be asked while nothing of the search is placed or evicted."""
        found = self._tried.get((sub, place.name))
        if found is None:
            found = self._tried[sub, place.name] = self._places.of_sub_job(job, sub, place)
        return found

    def _room(self, future: F64, nodes: AnyArray | None = None) -> GangRoom:
        """Return the room on some nodes, or on all."""
        return GangRoom(placing_of(self._ssn).feasible, future, nodes)

    def _room_without(self, victims: Iterable[int], place: GangPlace) -> GangRoom:
        """Return the room in a place with the victims gone as well."""
        tables, rows = self._ssn.tables, list(victims)
        future: F64 = tables.nodes.books[:, FUTURE].copy()
        # ``add.at`` and not ``+=``, which would count only one of several victims on a node.
        np.add.at(future, tables.tasks.node[rows], tables.classes.req[tables.tasks.cls[rows]])
        return self._room(future, place.nodes.rows)

    def _could_place(self, job: int, sub_queues: Sequence[WaitingTasks], place: GangPlace, room: GangRoom) -> bool:
        """Return True unless some sub-job that is needed has no place with room for it alone."""
        # With sub-group policies the job may be complete after the first sub-job, so only that one must fit.
        needed = sub_queues if not self._ssn.tables.jobs.has_policy[job] else sub_queues[:1]
        return all(
            any(room.holds(sub_queue, each.nodes.rows) for each in self._tries(job, sub_queue.sub, place))
            for sub_queue in needed
        )

    def _most_placed(self, job: int, sub_queues: Sequence[WaitingTasks], place: GangPlace, room: GangRoom) -> set[int]:
        """Return the tasks that a trial may place before it fails, by sums: each sub-job alone."""
        found = set[int]()
        for sub_queue in sub_queues:
            places = self._tries(job, sub_queue.sub, place)
            most = max((room.first_refused(sub_queue, each.nodes.rows) for each in places), default=0)
            found.update(sub_queue.rows[:most])
            if most < len(sub_queue.rows):
                break
        return found

    def _place_all(self, stmt: Statement, sub: int, rows: list[int], nodes: NodeRows, *, evicts: bool) -> bool:
        """Pipeline all tasks of a sub-job within these nodes. Return False if one fails."""
        ssn = self._ssn
        for row in rows:
            task = Task(ssn.tables, row)
            queue, alone = task.queue, TaskRows(ssn.tables, np.array([row]))
            if not ssn.ask(points.tasks_allowed, queue, alone).tasks or ssn.ask(points.task_refused, task):
                return False
            node = self._best_node(task, nodes)
            if node < 0 or stmt.pipeline([row], [node], evicted=evicts) is not None:
                return False
        return bool(rows) and (sub_missing(ssn, sub) == 0 or sub_pipelined(ssn, sub))

    def _best_node(self, task: Task, nodes: NodeRows) -> int:
        """Return the best node for a task, with no further evictions, or -1."""
        placing, rows = placing_of(self._ssn), nodes.rows
        reachable = self._nodes.reachable(task)
        fit = placing.feasible.of(task.cls.row)
        candidates = rows[reachable[rows] & fit.future_fits[rows]]
        if not len(candidates):
            return -1
        idle, own = placing.feasible.idle_for(task, fit, candidates), placing.feasible.shard_mask
        parts = [candidates[idle], candidates[~idle]]
        # In Volcano's order of groups: idle nodes before nodes that wait for releases, and own shard first in each.
        if own is not None:
            parts = [part for group in parts for part in (group[own[group]], group[~own[group]])]
        for part in parts:
            found = placing.best(task, fit, part) if len(part) else -1
            # Filters are asked for the best node first; the others only if it fails.
            if found >= 0 and not self._nodes.passes(task, found):
                part = part[self._nodes.passing(task, part)]
                found = placing.best(task, fit, part) if len(part) else -1
            if found >= 0:
                return found
        return -1


def _cost(sub_queues: Sequence[WaitingTasks], victims: list[int]) -> int:
    """Return the steps of a trial."""
    return sum(len(each.rows) for each in sub_queues) + STEPS_AN_EVICTION * len(victims)
