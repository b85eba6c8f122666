"""Nodes on which room can be made for a task, in the order in which they should be tried.

What stands against nodes for good is found for a whole class, and what could leave them is summed up beforehand, so that
hopeless nodes are refuted before any plugin is asked about victims. Of the others the votes are asked for some nodes at
a time: first for one, which most often does, then for more and more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.nodes import FUTURE
from pumice.columns.rows import Candidates, NodeRows
from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Task
from pumice.framework.feasible import can_mend
from pumice.framework.point import Asked
from pumice.framework.session import Session
from pumice.framework.verdict import Code
from pumice.volcano.candidates import Supply, amounts_by_node
from pumice.volcano import points

#: Nodes of which votes are asked together: of the first one alone, then of so many times more each time.
_MORE = 4

Votes = Asked[[Task, Candidates], Bool]


class Among(NamedTuple):
    """Who may be victims of a task: ``supply`` but for one job's, and only who asks for nothing where it does itself; of
    these, whom plugins name when they are asked ``votes``. ``somebody``: a node with nobody to ask about is no use."""

    supply: Supply
    votes: Votes
    but_job: int = -1
    only_best_effort: bool = False
    somebody: bool = False

    def on(self, nodes: AnyArray) -> Candidates:
        return self.supply.on(nodes, but_job=self.but_job, only_best_effort=self.only_best_effort)


class Found(NamedTuple):
    """A node that has room for the task once ``victims`` (rows of tasks) have left."""

    node: int
    victims: list[int]


class NodeSearch:
    """For the tasks of one action. ``cached``: a node against which something stands for good for one task of a role is not
    tried for another one of that job and role, whatever it asks for."""

    def __init__(self, ssn: Session, *, cached: bool) -> None:
        self._ssn, self._tables, self._cached = ssn, ssn.tables, cached
        self._failed: dict[tuple[int, int], Bool] = {}
        self._tried: set[int] = set()

    # -- nodes --------------------------------------------------------------------------------------------------------

    def reachable(self, task: Task) -> Bool:
        """Nodes against which nothing stands that others' leaving cannot mend. Shape (N,)."""
        ssn, feasible = self._ssn, self._ssn.placing.feasible
        self._tried.add(task.row)
        found = feasible.mendable(int(self._tables.tasks.cls[task.row])).copy()
        verdicts = ssn.ask(points.task_filters, task, feasible.all_nodes)
        if verdicts:
            found &= can_mend(verdicts, len(found))
        if feasible.outside is not None:
            found &= ~feasible.outside
        looked_at = self.not_given_up(task)
        if looked_at is not None:
            found &= looked_at
        role = int(self._tables.tasks.role[task.row])
        if self._cached and role:
            key = int(self._tables.tasks.job[task.row]), role
            before = self._failed.get(key)
            failed = ~found if looked_at is None else ~found & looked_at
            if before is not None:
                found &= ~before
                failed |= before
            self._failed[key] = failed
        return found

    def not_given_up(self, task: Task) -> Bool | None:
        """Nodes of which no earlier action found that the task can never run there, (N,); None for all."""
        errors = self._ssn.story.errors_of(int(self._tables.tasks.job[task.row])).get(task.row)
        if errors is None or errors.node_rows is None or errors.codes is None:
            return None
        given_up = errors.node_rows[errors.codes == Code.UNRESOLVABLE]
        if not len(given_up):
            return None
        found = np.ones(len(self._tables.nodes.facts), dtype=bool)
        found[given_up] = False
        return found

    def was_tried(self, task: Task) -> bool:
        """Whether nodes have been looked at for the task in this session."""
        job, story = int(self._tables.tasks.job[task.row]), self._ssn.story
        errors, trace = story.errors_of(job).get(task.row), story.undone_of(job)
        if task.row in self._tried or (errors is not None and not errors.skipped):
            return True
        return trace is not None and bool((trace.status[self._tables.jobs.tasks[job] == task.row] >= 0).any())

    def passes(self, task: Task, node: int) -> bool:
        """Whether no filter objects to the node as it is now."""
        ssn, one = self._ssn, NodeRows(self._tables, np.array([node]))
        for verdict in ssn.ask(points.class_filters, task.cls, one):
            if verdict.codes[0]:
                return False
        return not any(verdict.codes[0] for verdict in ssn.ask(points.task_filters, task, one))

    def has_room(self, task: Task, node: int) -> bool:
        """Whether what will be idle on the node is enough."""
        future = self._tables.nodes.books[node, FUTURE].tolist()
        return all(future[d] > limit for d, limit in self._tables.classes.asked[self._tables.tasks.cls[task.row]])

    # -- in order -----------------------------------------------------------------------------------------------------

    def best_first(self, task: Task, mask: Bool) -> Iterator[I64]:
        """Nodes by falling score, own shard first, of equal ones the first row: one, then more and more at a time."""
        placing = self._ssn.placing
        for part in self.by_shard(mask):
            rows = part.nonzero()[0]
            fit = placing.feasible.of(int(self._tables.tasks.cls[task.row]))
            score = placing.scores(task, fit, NodeRows(self._tables, rows))
            best = int(score.argmax())
            yield rows[best : best + 1]
            rest = (-score).argsort(kind="stable")
            yield from _growing(rows[rest[rest != best]])

    def in_row_order(self, mask: Bool) -> Iterator[I64]:
        """Nodes as they come, own shard first."""
        for part in self.by_shard(mask):
            rows = part.nonzero()[0]
            yield rows[:1]
            yield from _growing(rows[1:])

    def by_shard(self, mask: Bool) -> Iterator[Bool]:
        """The nodes of the own shard, then the others; those of them there are."""
        own = self._ssn.placing.feasible.shard_mask
        parts = (mask,) if own is None else (mask & own, mask & ~own)
        return (part for part in parts if part.any())

    # -- victims ------------------------------------------------------------------------------------------------------

    def with_victims(self, task: Task, among: Among, some: Iterator[I64]) -> Iterator[Found]:
        """Nodes in their order that have room for the task once everybody whom plugins name has left."""
        cls = int(self._tables.tasks.cls[task.row])
        for nodes in some:
            candidates = among.on(nodes)
            victims = self._ssn.ask(among.votes, task, candidates)
            future = self._tables.nodes.books[nodes, FUTURE]
            if victims.any():
                future = future + amounts_by_node(candidates, victims)
            enough = np.diff(candidates.starts) > 0 if among.somebody else np.ones(len(nodes), dtype=bool)
            for dimension, limit in self._tables.classes.asked[cls]:
                enough &= future[:, dimension] > limit
            for nth in enough.nonzero()[0].tolist():
                there = slice(int(candidates.starts[nth]), int(candidates.starts[nth + 1]))
                yield Found(int(nodes[nth]), candidates.rows[there][victims[there]].tolist())


def _growing(rows: I64) -> Iterator[I64]:
    start, width = 0, _MORE
    while start < len(rows):
        yield rows[start : start + width]
        start, width = start + width, width * _MORE


# -- tasks


def waiting_tasks(ssn: Session, job: int) -> list[int]:
    """Pending tasks of a job that no gate holds, in order."""
    tasks, rows = ssn.tables.tasks, ssn.tables.jobs.tasks[job]
    found: list[int] = ssn.order.sorted_tasks(rows[(tasks.status[rows] == PENDING) & (tasks.gate[rows] == NO_GATE)]).tolist()
    return found
