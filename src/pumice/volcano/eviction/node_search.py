"""Nodes on which room can be made for a task, in the order in which they should be tried.

What stands against nodes for good is found for a whole class, and what could leave them is summed up beforehand, so
that hopeless nodes are refuted before any plugin is asked about victims. Of the others the votes are asked for some
nodes at a time: first for one, which most often does, then for more and more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.nodes import FUTURE
from pumice.columns.rows import Candidates, NodeRows
from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Named
from pumice.framework.plugin.filter_result import Code
from pumice.placing.choose import placing_of
from pumice.placing.feasibility import can_mend
from pumice.volcano import points
from pumice.volcano.eviction.candidates import Supply, amounts_by_node
from pumice.volcano.eviction.refuted_nodes import Votes

#: Nodes of which votes are asked together: of the first one alone, then of so many times more each time.
_MORE = 4


class Found(NamedTuple):
    """A node that has room for the task once ``victims`` (rows of tasks) have left."""

    node: int
    victims: list[int]


class EvictionStatistics(NamedTuple):
    """``asked``: tasks that might have been evicted; ``named``: those that plugins together allow to be; ``spared``:
    how many of them each plugin does not; ``enough``: nodes on which those that are allowed would be enough."""

    asked: int
    named: int
    spared: tuple[tuple[str, int], ...]
    enough: int


class NodeSearch:
    """For the tasks of one action. ``cached``: a node against which something stands for good for one task of a role
    is not tried for another one of that job and role, whatever it asks for. ``by_score``: nodes will be asked for by
    score."""

    def __init__(self, ssn: Session, *, cached: bool, by_score: bool) -> None:
        self._ssn, self._tables, self._cached, self._by_score = ssn, ssn.tables, cached, by_score
        self._failed: dict[tuple[int, int], Bool] = {}
        self._tried: set[int] = set()

    # -- nodes --------------------------------------------------------------------------------------------------------

    def reachable(self, task: Task) -> Bool:
        """Nodes against which nothing stands that others' leaving cannot mend. Shape (N,)."""
        ssn, feasible, cls = self._ssn, placing_of(self._ssn).feasible, int(self._tables.tasks.cls[task.row])
        self._tried.add(task.row)
        found = feasible.of(cls).allowed.copy() if self._by_score else feasible.mendable(cls).copy()
        if self._by_score and not found.all():
            found |= feasible.mendable(cls)
        filter_results = ssn.ask(points.task_filters, task, feasible.all_nodes)
        if filter_results:
            found &= can_mend(filter_results, len(found))
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
        errors = self._ssn.trace.errors_of(int(self._tables.tasks.job[task.row])).get(task.row)
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
        job, trace = int(self._tables.tasks.job[task.row]), self._ssn.trace
        errors, last_trial = trace.errors_of(job).get(task.row), trace.undone_of(job)
        if task.row in self._tried or (errors is not None and not errors.skipped):
            return True
        return last_trial is not None and bool((last_trial.status[self._tables.jobs.tasks[job] == task.row] >= 0).any())

    def passes(self, task: Task, node: int) -> bool:
        """Whether no filter objects to the node as it is now."""
        return bool(self.passing(task, np.array([node])).all())

    def passing(self, task: Task, nodes: AnyArray) -> Bool:
        """To which nodes no filter objects as they are now. Shape (nodes,)."""
        ssn, rows, found = self._ssn, NodeRows(self._tables, nodes), np.ones(len(nodes), dtype=bool)
        for filter_result in ssn.ask(points.class_filters, task.cls, rows):
            found &= filter_result.codes == 0
        if found.any():
            for filter_result in ssn.ask(points.task_filters, task, rows):
                found &= filter_result.codes == 0
        return found

    def has_room(self, task: Task, node: int) -> bool:
        """Whether what will be idle on the node is enough."""
        future = self._tables.nodes.books[node, FUTURE].tolist()
        return all(future[d] > limit for d, limit in self._tables.classes.asked[self._tables.tasks.cls[task.row]])

    # -- in order -----------------------------------------------------------------------------------------------------

    def best_first(self, task: Task, mask: Bool) -> Iterator[I64]:
        """Nodes by falling score, own shard first, of equal ones the first row: one, then more and more at a time."""
        placing, fit = placing_of(self._ssn), None
        for part in self.by_shard(mask):
            rows = part.nonzero()[0]
            fit = fit or placing.feasible.of(int(self._tables.tasks.cls[task.row]))
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
        own = placing_of(self._ssn).feasible.shard_mask
        parts = (mask,) if own is None else (mask & own, mask & ~own)
        return (part for part in parts if part.any())


class Victims:
    """Who might have to leave for one task: of ``supply``, but for the tasks of one job, and only those that ask for
    nothing where the task does so itself; and of these, whom plugins name when they are asked ``votes``.
    ``somebody``: a node on which there is nobody to ask about is no use."""

    def __init__(
        self,
        ssn: Session,
        task: Task,
        supply: Supply,
        votes: Votes,
        *,
        but_job: int = -1,
        only_best_effort: bool = False,
        somebody: bool = False,
    ) -> None:
        self._ssn, self._task, self._supply, self._votes = ssn, task, supply, votes
        self._but_job, self._only_best_effort, self._somebody = but_job, only_best_effort, somebody
        self._cls = int(ssn.tables.tasks.cls[task.row])
        self._refuted = supply.refuted(votes)
        self._offered = but_job >= 0, only_best_effort, somebody

    def nodes(self) -> Bool:
        """Nodes of which it is not known yet that victims there would not be enough. Shape (N,)."""
        found = self._supply.could_hold(self._cls)
        refuted = self._refuted.of(self._task, *self._offered)
        if refuted is not None:
            found &= ~refuted
        if self._somebody:
            found &= self._supply.somebody()
        return found

    def on(self, some: Iterable[I64]) -> Iterator[Found]:
        """Of nodes, in their order, those that have room for the task once all whom plugins name have left."""
        for nodes in some:
            candidates = self.candidates(nodes)
            victims = self._ssn.ask(self._votes, self._task, candidates)
            enough = self._enough(nodes, candidates, victims)
            self._refuted.add(self._task, nodes[~enough], *self._offered)
            for nth in enough.nonzero()[0].tolist():
                there = slice(int(candidates.starts[nth]), int(candidates.starts[nth + 1]))
                yield Found(int(nodes[nth]), candidates.rows[there][victims[there]].tolist())

    def candidates(self, nodes: I64) -> Candidates:
        """Who is asked about on some nodes, as things are now."""
        return self._supply.on(nodes, but_job=self._but_job, only_best_effort=self._only_best_effort)

    def census(self, nodes: I64) -> EvictionStatistics:
        """Who was asked about on some nodes, and what came of it."""
        candidates = self.candidates(nodes)
        victims = self._ssn.ask(self._votes, self._task, candidates)
        spared = []
        for plugin, answer in self._ssn.hooks.each_answer(self._votes, self._task, candidates):
            if answer is not None:
                named = answer.victims if isinstance(answer, Named) else answer
                spared.append((plugin, len(candidates) - int(named.sum())))
        enough = int(self._enough(nodes, candidates, victims).sum())
        return EvictionStatistics(len(candidates), int(victims.sum()), tuple(spared), enough)

    def _enough(self, nodes: I64, candidates: Candidates, victims: Bool) -> Bool:
        future = self._ssn.tables.nodes.books[nodes, FUTURE]
        if np.count_nonzero(victims):
            future += amounts_by_node(candidates, victims)
        found = candidates.starts[1:] > candidates.starts[:-1] if self._somebody else np.ones(len(nodes), dtype=bool)
        for dimension, limit in self._ssn.tables.classes.asked[self._cls]:
            found &= future[:, dimension] > limit
        return found


def _growing(rows: I64) -> Iterator[I64]:
    start, width = 0, _MORE
    while start < len(rows):
        yield rows[start : start + width]
        start, width = start + width, width * _MORE


# -- tasks


def waiting_tasks(ssn: Session, job: int) -> list[int]:
    """Pending tasks of a job that no gate holds, in order."""
    tasks, rows = ssn.tables.tasks, ssn.tables.jobs.tasks[job]
    found: list[int] = ssn.order.sorted_tasks(
        rows[(tasks.status[rows] == PENDING) & (tasks.gate[rows] == NO_GATE)]
    ).tolist()
    return found
