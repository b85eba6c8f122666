"""Place the tree of a CompositePodGroup: each group of it whole or not at all, up to the minimum of the groups above.

Volcano knows no trees. Source of the rules: ``scheduling.k8s.io``, KEP-6012.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import SubJob
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.placing.gang_tree import Member, members_of
from pumice.placing.small_trees import SmallTrees
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.pending_tasks import PendingTasks, SubJobQueue
from pumice.volcano.gangs.readiness import sub_missing
from pumice.volcano.gangs.search import put_found
from pumice.volcano.gangs.sub_job import Domain, Progress, allocate_tasks
from pumice.volcano.topology.label_domains import domains_with_room

_Step = Callable[[Member, Bool | None], bool]


class TreePlacer:
    """One attempt to place tasks of a tree. ``pending``: what is left to place, which the attempt advances."""

    def __init__(
        self, ssn: Session, stmt: Statement, job: int, pending: PendingTasks, attempt: OpenAttempt, budget: Budget
    ) -> None:
        self._ssn, self._stmt, self._attempt, self._budget = ssn, stmt, attempt, budget
        self._queues: dict[int, SubJobQueue] = pending.sub_queues
        self._root = members_of(ssn.tables, job)

    def advance(self) -> bool:
        """Place what the tree lacks of its minimum; if it has that, one more group or pod. Return True if something was
        placed."""
        before = len(self._stmt.operations)
        return self._in_domain(self._root, None, self._advance) and len(self._stmt.operations) > before

    def search(self, trees: SmallTrees) -> bool:
        """Place groups that make up the minimum of a small tree, where placing them in order found no room. Return True
        if they were placed."""
        found = trees.search(self._root, self._needed)
        self._attempt.unlike_others = self._attempt.unlike_others or not found.is_refuted
        return put_found(self._ssn, self._stmt, found, self._attempt)

    def _needed(self, member: Member) -> list[int] | None:
        """Return the tasks that a PodGroup lacks of its minimum, None if it has too few."""
        if self._is_met(member):
            return []
        if member.sub not in self._queues:
            return None
        missing = sub_missing(self._ssn, member.sub)
        rows = [row for row in self._left(member.sub) if not self._queues[member.sub].is_gated(row)][:missing]
        return rows if len(rows) == missing else None

    def _advance(self, member: Member, nodes: Bool | None) -> bool:
        if not self._is_met(member):
            return self._complete(member, nodes)
        if not member.is_set:
            return self._place_tasks(member.sub, nodes)
        return any(self._in_domain(each, nodes, self._advance) for each in sorted(member.inside, key=self._is_met))

    def _complete(self, member: Member, nodes: Bool | None) -> bool:
        """Place what a member lacks of its minimum. Return False, with nothing placed, if that is not possible."""
        if not member.is_set:
            return member.sub >= 0 and self._place_tasks(member.sub, nodes) and self._is_met(member)
        undo = self._mark()
        met = sum(map(self._is_met, member.inside))
        for each in member.inside:
            # A group that fails is left out: others may be enough.
            if met < member.least and not self._is_met(each) and self._in_domain(each, nodes, self._complete):
                met += 1
        if met < member.least:
            undo()
            return False
        return True

    def _in_domain(self, member: Member, nodes: Bool | None, step: _Step) -> bool:
        """Do a step on a member on these nodes, None: all, or in the first domain of its label where it succeeds."""
        label = _label(member)
        if not label:
            return step(member, nodes)
        tasks = [row for sub in member.subs for row in self._ssn.tables.subs.tasks[sub].tolist()]
        rows = [row for sub in member.subs if sub in self._queues for row in self._left(sub)]
        for within in domains_with_room(self._ssn, label, tasks, rows, 1, nodes) if rows else ():
            undo = self._mark()
            if step(member, within):
                return True
            undo()
        return False

    def _left(self, sub: int) -> list[int]:
        return self._queues[sub].rows[self._queues[sub].position :]

    def _place_tasks(self, sub: int, nodes: Bool | None) -> bool:
        """Place tasks of a PodGroup up to its minimum, or one beyond it. Return True if something was placed."""
        ssn, queue = self._ssn, self._queues.get(sub)
        if not queue or not self._budget.spend(1 + len(set(queue.classes))):
            return False
        before, position = len(self._stmt.operations), queue.position
        only = None if nodes is None else NodeRows(ssn.tables, np.flatnonzero(nodes))
        self._attempt.forget(sub)
        domain = Domain(ssn, ssn.tables.tree.top, only)
        reached = allocate_tasks(ssn, self._stmt, sub, queue, domain, self._attempt)
        if reached is Progress.NOTHING:
            queue.position = position
        return len(self._stmt.operations) > before

    def _is_met(self, member: Member) -> bool:
        """Return True if a member has its minimum, with tasks that were promised a place."""
        if member.is_set:
            return sum(map(self._is_met, member.inside)) >= member.least
        return member.sub >= 0 and SubJob(self._ssn.tables, member.sub).is_pipelined

    def _mark(self) -> Callable[[], None]:
        """Return a function that undoes what is placed from now on."""
        mark, positions = self._stmt.mark(), {sub: queue.position for sub, queue in self._queues.items()}

        def undo() -> None:
            self._stmt.rollback(mark)
            for sub, position in positions.items():
                self._queues[sub].position = position

        return undo


def _label(member: Member) -> str:
    """Return the node label of which all pods of a member must be in one domain, "" for none."""
    return member.topology.required if member.topology is not None else ""
