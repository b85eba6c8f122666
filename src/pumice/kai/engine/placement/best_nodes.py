"""Choose the best nodes for tasks, by one sum of scores. Equal tasks are chosen for together.

Whether a task can start at once is only one term of the sum (plugin ``nodeavailability``). Source: KAI allocate
(common/allocate.go), its order of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from pumice.algorithms.top_k import top_k
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.kai.engine.groups import Subset
from pumice.model.blockers import Blocker, NoNode, NoRoom
from pumice.model.blockers.changes import Change
from pumice.placing.derived import nodes_by_name
from pumice.placing.feasibility import ClassFit, Feasibility
from pumice.placing.fill_state import said_of
from pumice.placing.k_best import KBestMerge
from pumice.placing.prefetch import PrefetchedPlacements

_ANYWHERE = Subset()


class TaskScores(NamedTuple):
    """``by_node`` (N,): the score of each node for a task, -inf where it cannot run. ``lacks``: what would help it, if
    hooks about single tasks left no node."""

    by_node: F64
    lacks: tuple[Change, ...] = ()


class BestNodes:
    """Choose nodes in one session."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self.feasible = Feasibility(ssn.world, ssn.hooks, ssn.memo, ssn.snapshot.shard)
        self._prefetched = PrefetchedPlacements(ssn.memo, self.feasible)
        self._by_name = nodes_by_name(ssn)
        self._single = ssn.hooks.answers(points.task_filters) or ssn.hooks.answers(points.task_scores)
        self._outside = self.feasible.outside

    @property
    def is_by_class(self) -> bool:
        """True if all nodes answer equally for all tasks of a class: no hook reads single tasks, and no node is out of
        bounds."""
        return not self._single and self._outside is None

    def for_equal(self, rows: list[int], cls: int, within: Subset, *, virtual: bool) -> list[int] | Blocker:
        """Return nodes for the first of equal tasks, as many as all start at once, or all wait; or why there is none.

        ``virtual``: the tasks are only pipelined. Call ``took`` once the tasks are on their nodes.
        """
        # Without any restriction, the best nodes of a class can be prefetched for jobs to come.
        if within.is_all and not virtual and self.is_by_class:
            return self._ahead(rows, cls) or self._choose(rows, cls, within)
        self._prefetched.none()
        if virtual:
            # In simulations often one node has room, the one just vacated. Then no scores are needed.
            sole = self._sole(cls, within) if len(rows) == 1 else -1
            if sole >= 0:
                return [sole]
            # A simulated placement takes nothing idle, so a node with idle resources stays as good for the next task. A
            # choice for several tasks at once would count them as taken.
            if self.feasible.of(cls).idle_fits.any():
                rows = rows[:1]
        return self._choose(rows, cls, within)

    def took(self, count: int) -> None:
        """Note that the first ``count`` tasks were placed where ``for_equal`` said, and that nothing else moved."""
        self._prefetched.took(count)

    def starts_at_once(self, row: int, cls: int, node: int) -> bool:
        """Return True if a node has idle resources for a task, and not only resources that are being released."""
        tables = self._ssn.tables
        # Two rows as lists: for one node this is faster than comparing arrays.
        idle, future = tables.nodes.books[node, IDLE].tolist(), tables.nodes.books[node, FUTURE].tolist()
        at_once = all(idle[which] > limit and future[which] > limit for which, limit in tables.classes.asked[cls])
        return at_once and not self.feasible.waits_for(Task(tables, row), node)

    def scores(self, row: int, fit: ClassFit, within: Subset, also: Bool | None = None) -> TaskScores | None:
        """Return the scores of a task, or None if no node has room for its class. ``also``: nodes on which other
        conditions hold. Shape (N,)."""
        fits = self._fits(fit, within, also)
        if not fits.any():
            return None
        score: F64 = fit.score
        lacks: tuple[Change, ...] = ()
        if self._single:
            fits, score, lacks = self._of_task(row, fits, fit)
        return TaskScores(np.where(fits, score if within.score is None else score + within.score, -np.inf), lacks)

    def best(self, scores: F64) -> int:
        """Return the node with the highest score; of equal nodes the first by name."""
        if self._by_name is None:
            return int(scores.argmax())
        # argmax returns the first of equal values, so with nodes in name order the first name wins.
        return int(self._by_name[scores[self._by_name].argmax()])

    def no_node(self, row: int, scores: TaskScores, score: float) -> Blocker:
        """Return why a task found no node, given the best score that was left. Raise a plugin's fault if a hook gave
        that score."""
        self.feasible.check_scores(Task(self._ssn.tables, row), score)
        return NoNode(scores.lacks)

    def _ahead(self, rows: list[int], cls: int) -> list[int]:
        """Return nodes for the first of equal tasks on all nodes, from placements that were prefetched."""
        question = ("prefetched by one sum", cls, self._ssn.tables.classes.identity(cls))

        def choose(count: int) -> list[int]:
            found = self._choose(rows, cls, _ANYWHERE, count)
            return [] if isinstance(found, Blocker) else found

        return self._prefetched.next(question, len(rows), choose)

    def _sole(self, cls: int, within: Subset) -> int:
        """Return the only node with room for tasks of a class, or -1 if there is none or more than one."""
        if self._single:
            return -1
        room = self.feasible.capacity(cls) > 0
        for mask in (within.nodes, None if self._outside is None else ~self._outside):
            if mask is not None:
                room &= mask
        return int(room.argmax()) if np.count_nonzero(room) == 1 else -1

    def _choose(self, rows: list[int], cls: int, within: Subset, count: int = 0) -> list[int] | Blocker:
        """Return nodes for the first of equal tasks, as many as all start at once, or all wait; or why there is none.

        ``count``: how many to look for, if more equal tasks follow; 0: the number of tasks.
        """
        fit, count = self.feasible.of(cls), count or len(rows)
        found = self.scores(rows[0], fit, within)
        if found is None:
            return NoRoom()
        scores = found.by_node
        node = self.best(scores)
        if not isfinite(scores[node]):
            return self.no_node(rows[0], found, scores[node])
        if count == 1 or (self._single and len(rows) == 1):
            return [node]
        if not self._single:
            return self._pick(cls, fit, scores, within, count)
        of_class = np.where(
            self._fits(fit, within), fit.score if within.score is None else fit.score + within.score, -np.inf
        )
        picked = _nodes_in_turn(self._ssn, self.feasible, rows, cls, of_class, within.score, self.best) or [node]
        return picked[: self._as_the_first(cls, fit, picked)]

    def _fits(self, fit: ClassFit, within: Subset, also: Bool | None = None) -> Bool:
        """Return where a class fits, now or later. Shape (N,)."""
        fits = fit.allowed & fit.future_fits
        for mask in (within.nodes, None if self._outside is None else ~self._outside, also):
            if mask is not None:
                fits &= mask
        return fits

    def _of_task(self, row: int, fits: Bool, fit: ClassFit) -> tuple[Bool, F64, tuple[Change, ...]]:
        """Return filters and scores of hooks that read single tasks, and what would help if the filters leave no
        node."""
        ssn, task, nodes = self._ssn, Task(self._ssn.tables, row), self.feasible.all_nodes
        lacks: tuple[Change, ...] = ()
        for filter_result in ssn.ask(points.task_filters, task, nodes):
            before, fits = fits, fits & (filter_result.codes == 0)
            if before.any() and not fits.any():
                lacks = filter_result.changes_of_most(before)
        score = ssn.ask(points.task_scores, task, nodes, fit.score)
        return fits, np.broadcast_to(score, fits.shape), lacks

    def _pick(self, cls: int, fit: ClassFit, scores: F64, within: Subset, count: int) -> list[int]:
        """Return nodes for up to ``count`` equal tasks in order, as many as all start at once or all wait."""
        places = top_k(scores if self._by_name is None else scores[self._by_name], count)
        rows = places if self._by_name is None else self._by_name[places]
        if not len(rows):
            return []

        def score_after(rows: AnyArray, after: F64) -> F64:
            look = self.feasible.look(cls, NodeRows(self._ssn.tables, rows, after=after, cls=cls))
            score = look.score if within.score is None else look.score + within.score[rows]
            return np.where(look.allowed & look.future_fits, score, -np.inf)

        picked = KBestMerge(rows, places, [[score] for score in scores[rows].tolist()], count, score_after).climb()
        return picked[: self._as_the_first(cls, fit, picked)]

    def _as_the_first(self, cls: int, fit: ClassFit, picked: list[int]) -> int:
        """Return how many leading tasks start at once like the first, or wait like the first."""
        after, times = [], dict.fromkeys(picked, 0.0)
        for node in picked:
            after.append(times[node])
            times[node] += 1.0
        nodes = NodeRows(self._ssn.tables, np.array(picked), after=np.array(after), cls=cls)
        same = nodes.has_room(cls, IDLE) & nodes.has_room(cls, FUTURE) == fit.idle_fits[picked[0]]
        return len(picked) if same.all() else int(same.argmin())


def _nodes_in_turn(
    ssn: Session,
    feasible: Feasibility,
    rows: Sequence[int],
    cls: int,
    key: F64,
    on_top: F64 | None,
    best: Callable[[F64], int],
) -> list[int]:
    """Return nodes for the first of equal tasks, as if each were placed before the next, or [] if a hook must be asked
    about each of them.

    ``key`` (N,): the score of each node for the class, -inf where it does not fit; it is changed. ``on_top`` (N,): what
    is added to scores. ``best``: returns the node with the highest score.
    """
    tables = ssn.tables
    said = said_of(ssn.hooks, TaskRows(tables, np.array(rows)), feasible.all_nodes)
    # Scores of single tasks would have to be added in the order of their hooks; none of KAI's plugins has one that
    # follows placements.
    if said is None or said.scores:
        return []
    filters = [each for _, each in said.filters]
    picked: list[int] = []
    count = said.count(len(rows))
    #: By node that was picked: its score with one more task on it, and one more, and so on.
    scores: dict[int, list[float]] = {}
    current, differs = key, True
    for step in range(count):
        # Most placements change nothing but the node itself.
        if differs:
            current = key
            for each in filters:
                current = np.where(each.open_to(step), current, -np.inf)
        node = best(current)
        if not isfinite(current[node]):
            break
        picked.append(node)
        # All of them before any, which would stop at the first, and the others would miss the placement.
        changes = [each.placed(step, node) for each in filters]
        differs = any(changes)
        # Only this node is another one for the class than before.
        if node not in scores:
            # For all that may follow at once, because a hook costs about the same for several rows.
            after = np.arange(1.0, count - step + 1)
            look = feasible.look(cls, NodeRows(tables, np.full(len(after), node), after=after, cls=cls))
            score = look.score if on_top is None else look.score + on_top[node]
            scores[node] = np.where(look.allowed & look.future_fits, score, -np.inf).tolist()
        key[node] = current[node] = scores[node].pop(0)
    return picked
