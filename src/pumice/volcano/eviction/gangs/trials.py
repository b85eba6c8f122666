"""Try to place one gang in one place, with other tasks evicted; sums refute most tries before they begin. Source:
Volcano gangpreempt and gangreclaim actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.nodes import FUTURE
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.placing.batch import placing_of
from pumice.placing.gang_tree import Member
from pumice.volcano import points
from pumice.volcano.eviction.gangs.places import GangPlace, GangPlaces
from pumice.volcano.eviction.gangs.plans import GangPlan, WaitingTasks, joined
from pumice.volcano.eviction.gangs.room import GangRoom
from pumice.volcano.eviction.gangs.trees import is_met, may_be_met, tree_of
from pumice.volcano.eviction.node_search import NodeSearch
from pumice.volcano.gangs.readiness import job_pipelined, job_ready, sub_missing, sub_pipelined

#: Steps for each pod that a trial evicts. It is counted out of its node, its queue and what plugins keep, and back in
#: at the end of the trial, which costs about four times as much as a question about one task and one node.
STEPS_AN_EVICTION = 4


class GangTrials:
    """Trials of one job. ``sub_queues``: its tasks to place. ``reason``: the reason of evictions. ``spend``: takes
    steps, for groups of a tree that are tried in several places; returns False if none are left."""

    def __init__(
        self,
        ssn: Session,
        places: GangPlaces,
        sub_queues: Sequence[WaitingTasks],
        nodes: NodeSearch,
        reason: str,
        spend: Callable[[int], bool],
    ) -> None:
        self._ssn, self._job, self._places, self._sub_queues = ssn, places.job, places, sub_queues
        self._nodes, self._reason, self._spend = nodes, reason, spend
        self._tree, self._by_sub = tree_of(ssn, places.job), {each.sub: each for each in sub_queues}

    @property
    def has_inner_domains(self) -> bool:
        """True if groups of the job have domains within a place, which the choice of victims there does not know."""
        return self._places.has_inner_domains

    # -- sums ---------------------------------------------------------------------------------------------------------

    def room(self, future: F64, nodes: AnyArray | None = None) -> GangRoom:
        """Return the room on some nodes, or on all, that have ``future`` (N, R) to give."""
        return GangRoom(placing_of(self._ssn).feasible, future, nodes)

    def room_without(self, victims: Iterable[int], place: GangPlace) -> GangRoom:
        """Return the room in a place with the victims gone as well."""
        tables, rows = self._ssn.tables, list(victims)
        future: F64 = tables.nodes.books[:, FUTURE].copy()
        # ``add.at`` and not ``+=``, which would count only one of several victims on a node.
        np.add.at(future, tables.tasks.node[rows], tables.classes.req[tables.tasks.cls[rows]])
        return self.room(future, place.nodes.rows)

    def could_place(self, place: GangPlace, room: GangRoom) -> bool:
        """Return True unless some sub-job that is needed has no place with room for it alone."""

        def fits(sub: int) -> bool:
            sub_queue = self._by_sub.get(sub)
            within = self._places.before_trials(sub, place) if sub_queue is not None else ()
            return any(sub_queue is not None and room.holds(sub_queue, each.nodes.rows) for each in within)

        if self._tree is not None:
            return may_be_met(self._ssn, self._tree, fits)
        # With sub-group policies the job may be complete after the first sub-job, so only that one must fit.
        has_policy = self._ssn.tables.jobs.has_policy[self._job]
        return all(fits(each.sub) for each in (self._sub_queues[:1] if has_policy else self._sub_queues))

    def most_placed(self, place: GangPlace, room: GangRoom) -> set[int]:
        """Return the tasks that a trial may place before it fails, by sums: each sub-job alone."""
        found = set[int]()
        for sub_queue in self._sub_queues:
            places = self._places.before_trials(sub_queue.sub, place)
            most = max((room.first_refused(sub_queue, each.nodes.rows) for each in places), default=0)
            found.update(sub_queue.rows[:most])
            if most < len(sub_queue.rows):
                break
        return found

    def steps(self, victims: Sequence[int]) -> int:
        """Return the steps of a trial."""
        # Groups of a tree take theirs as they are tried.
        rows = sum(len(each.rows) for each in self._sub_queues) if self._tree is None else 0
        return rows + STEPS_AN_EVICTION * len(victims)

    # -- trials -------------------------------------------------------------------------------------------------------

    def plan(self, stmt: Statement, place: GangPlace, victims: list[int], *, by_sums: bool = True) -> GangPlan | None:
        """Evict the victims and place the job, in a trial. Return the plan, or None if the job stays incomplete.

        ``by_sums`` False: try also the places of sub-jobs that sums refute.
        """
        ssn, found = self._ssn, None
        with stmt.trial():
            mark, was_ready, hypernodes, placed = stmt.mark(), job_ready(ssn, self._job), {}, False
            if victims:
                stmt.evict(victims, self._reason)
            if self._tree is not None:
                if not self._advance(stmt, self._tree, place, bool(victims)):
                    return None
                placed = True
            for sub_queue in self._sub_queues if self._tree is None else ():
                took = self._place_sub_job(stmt, sub_queue, place, evicts=bool(victims), by_sums=by_sums)
                if took is None:
                    return None
                placed = True
                if took.hypernode >= 0:
                    hypernodes[sub_queue.sub] = took.hypernode
                # A job that is ready gets one more sub-job at a time, and one that is not stops once it would be
                # ready.
                if was_ready or job_pipelined(ssn, self._job):
                    break
            if placed and job_pipelined(ssn, self._job):
                found = GangPlan(joined(ssn, stmt.save(mark)), hypernodes)
        return found

    def _advance(self, stmt: Statement, member: Member, place: GangPlace, evicts: bool) -> bool:
        """Place what a group of the tree lacks of its minimum, or if it has that, one more group in it. Return False,
        with nothing placed, if that is not possible."""
        if not member.is_set or not is_met(self._ssn, member):
            return self._complete(stmt, member, place, evicts)
        # As in allocate, what the tree does not need is begun by groups that have nothing.
        order = sorted(member.inside, key=lambda each: is_met(self._ssn, each))
        return any(self._advance(stmt, each, within, evicts) for each in order for within in self._inside(each, place))

    def _complete(self, stmt: Statement, member: Member, place: GangPlace, evicts: bool) -> bool:
        """Place what a group of the tree lacks of its minimum, in one place. Return False, with nothing placed, if that
        is not possible."""
        sub_queue = self._by_sub.get(member.sub)
        if not member.is_set and sub_queue is None:
            return False
        with stmt.trial() as trial:
            if sub_queue is not None:
                nodes = place.nodes
                room = self.room(self._ssn.tables.nodes.books[:, FUTURE], nodes.rows)
                done = self._spend(len(sub_queue.rows)) and room.holds(sub_queue, nodes.rows)
                done = done and self._place_all(stmt, member.sub, sub_queue.rows, nodes, evicts=evicts)
            else:
                met = sum(is_met(self._ssn, each) for each in member.inside)
                for each in member.inside:
                    # A group that fails is left out: others may be enough.
                    if met < member.least and not is_met(self._ssn, each):
                        inside = self._inside(each, place)
                        met += any(self._complete(stmt, each, within, evicts) for within in inside)
                done = met >= member.least
            if done:
                trial.keep()
        return done

    def _inside(self, member: Member, place: GangPlace) -> Sequence[GangPlace]:
        """Return the places to try for a group, none if it has no waiting tasks."""
        return self._places.inside(member, place) if any(sub in self._by_sub for sub in member.subs) else ()

    def _place_sub_job(
        self, stmt: Statement, sub_queue: WaitingTasks, place: GangPlace, *, evicts: bool, by_sums: bool
    ) -> GangPlace | None:
        """Place a sub-job in the first place that takes all of it. Return that place, or None."""
        ssn = self._ssn
        for each in self._places.of_sub_job(sub_queue.sub, place):
            nodes = each.nodes.rows
            if by_sums and not self.room(ssn.tables.nodes.books[:, FUTURE], nodes).holds(sub_queue, nodes):
                continue
            with stmt.trial() as trial:
                if self._place_all(stmt, sub_queue.sub, sub_queue.rows, each.nodes, evicts=evicts):
                    trial.keep()
                    return each
        return None

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
