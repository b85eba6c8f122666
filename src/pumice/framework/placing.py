"""Choosing nodes: for a run of equal tasks in one go, or for one task with everything that looks at the single task.

``pick_run`` gives exactly the nodes that picking one task after the other would give. That holds because the score of a
node depends on that node alone: at every step at most k-1 of the k best nodes have changed, so one of them is still at
least as good as any outsider. Source: Volcano's choice of the best node (idle first, then what is being released); of
equal nodes the first row, where Volcano draws lots.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

import numpy as np

from pumice.algorithms.top_k import top_k
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework import points
from pumice.framework.feasible import ClassFit, fit_errors
from pumice.framework.verdict import FitErrors, Verdict

if TYPE_CHECKING:
    from pumice.framework.session import Session

#: Virtual rows looked at in one call; more cost more than they save.
_LOOK_MAX = 256

#: A plan that was used up is followed by one that looks so many times as far ahead, up to ``_LOOK_MAX`` tasks.
_FURTHER = 4


class Plans:
    """Picks ahead of need: equal gangs one after the other go on picking where the last one stopped.

    A plan over all nodes holds as long as nothing but its own picks was placed, which the stamp of the change log
    shows.
    """

    __slots__ = ("_known", "_ssn")

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._known: dict[int, _Plan] = {}

    def pick(self, cls: int, count: int) -> list[int]:
        """``pick_run`` over all nodes. Call ``placed`` when all of them have been placed, and nothing else."""
        now = self._ssn.tables.nodes.changed.stamp
        plan = self._known.get(cls)
        if plan is None or plan.holds_at != now:
            plan = self._known[cls] = _Plan(now, count)
        elif len(plan.nodes) < count:
            plan.ahead = min(_FURTHER * plan.ahead, _LOOK_MAX)
            plan.nodes = []
        if not plan.nodes:
            plan.nodes = pick_run(self._ssn, cls, max(count, plan.ahead), None)
        return plan.nodes[:count]

    def placed(self, cls: int, count: int) -> None:
        """The first ``count`` nodes of the plan have been taken."""
        plan = self._known[cls]
        plan.nodes = plan.nodes[count:]
        plan.holds_at = self._ssn.tables.nodes.changed.stamp


class _Plan:
    __slots__ = ("ahead", "holds_at", "nodes")

    def __init__(self, holds_at: int, ahead: int) -> None:
        self.holds_at, self.ahead = holds_at, ahead
        self.nodes: list[int] = []


def pick_run(ssn: Session, cls: int, count: int, domain: AnyArray | None) -> list[int]:
    """Nodes for up to ``count`` tasks of a class on idle resources, in order of picking; fewer when no node is left.

    ``domain``: node rows to choose from, None for all.
    """
    fit = ssn.feasibility.of(cls, ahead=count > 1)
    score = fit.idle_score if domain is None else fit.idle_score[domain]
    if count == 1:
        best = int(score.argmax())
        picked = [] if score[best] == -np.inf else [best]
        return picked if domain is None else [int(domain[i]) for i in picked]
    top = top_k(score, count)
    if not len(top):
        return []
    rows = top if domain is None else domain[top]
    ladder = _Ladder(ssn, fit, cls, rows, score[top], count)
    return ladder.climb()


class _Ladder:
    """For each of the best nodes the score after 0, 1, 2 … more tasks of the class, made as far as needed."""

    def __init__(self, ssn: Session, fit: ClassFit, cls: int, rows: AnyArray, score: F64, count: int) -> None:
        self._ssn, self._fit, self._cls, self._count = ssn, fit, cls, count
        self._rows: list[int] = rows.tolist()
        self._steps = [list(both) for both in zip(score.tolist(), fit.next_score[rows].tolist(), strict=True)]
        self._has_more = False

    def _look_further(self) -> None:
        """Some node gets a second task: then others may, too."""
        rows, self._has_more = np.array(self._rows), True
        width = max(1, min(self._count - 2, _LOOK_MAX // len(rows)))
        which, after = _rungs(len(rows), width)
        found = self._look(rows[which], after).reshape(len(rows), width).tolist()
        for steps, more in zip(self._steps, found, strict=True):
            steps += more

    def _look(self, rows: AnyArray, after: F64) -> F64:
        nodes = NodeRows(self._ssn.tables, rows, after=after, cls=self._cls)
        allowed, idle_fits, _, score = self._fit.look(nodes)
        return np.where(allowed & idle_fits, score, -np.inf)

    def _step(self, i: int, level: int) -> float:
        steps = self._steps[i]
        if level >= len(steps) and not self._has_more and level < self._count:
            self._look_further()
        if level >= len(steps):
            more = np.arange(len(steps), min(2 * len(steps) + 16, self._count), dtype=np.float64)
            if not len(more):
                return -np.inf
            rows = np.full(len(more), self._rows[i], dtype=np.int64)
            steps += self._look(rows, more).tolist()
        found: float = steps[level]
        return found

    def climb(self) -> list[int]:
        """Pick the best head again and again."""
        heap = [(-steps[0], row, i, 0) for i, (row, steps) in enumerate(zip(self._rows, self._steps, strict=True))]
        heapify(heap)
        picked: list[int] = []
        while len(picked) < self._count and heap[0][0] < np.inf:
            _, row, i, level = heap[0]
            picked.append(row)
            heapreplace(heap, (-self._step(i, level + 1), row, i, level + 1))
        return picked


@lru_cache(maxsize=256)
def _rungs(count: int, width: int) -> tuple[AnyArray, F64]:
    """For ``count`` nodes with ``width`` rungs each: which node a rung belongs to, and its number from 2 on."""
    which, after = np.repeat(np.arange(count), width), np.tile(np.arange(2.0, width + 2), count)
    which.setflags(write=False)
    after.setflags(write=False)
    return which, after


def constant_scores(ssn: Session, task: Task, candidates: NodeRows) -> bool:
    """Whether the scores that look at the task are the same for every candidate, and stay so for its whole class."""
    return all(not isinstance(hook(task, candidates), np.ndarray) for hook in ssn.task_scores)


def unopposed(ssn: Session, task: Task, nodes: NodeRows) -> bool:
    """Whether no filter that looks at the task objects to it or to further tasks of its class."""
    return all(hook(task, nodes) is None for hook in ssn.task_predicates)


class Choice:
    """Where one task can go: ``node`` and whether on idle resources (else on what is being released), or ``errors``."""

    __slots__ = ("errors", "idle", "node")

    def __init__(self, node: int = -1, *, idle: bool = False, errors: FitErrors | None = None) -> None:
        self.node, self.idle, self.errors = node, idle, errors


def choose_node(
    ssn: Session, row: int, nodes: NodeRows, *, blocked: Bool | None = None, hypernode: str = "", resources: bool = True
) -> Choice:
    """The best node for one task among ``nodes``.

    ``blocked`` (N,): nodes that failed this role before. ``resources`` False leaves out the check of resources
    (backfill). A Choice without node and without errors: candidates there were, but none was scored.
    """
    task = Task(ssn.tables, row)
    fit = ssn.feasibility.of(int(ssn.tables.tasks.cls[row]))
    rows = nodes.rows
    verdicts = [v for hook in ssn.task_predicates if (v := hook(task, nodes)) is not None]
    passes = fit.allowed[rows].copy()
    if resources:
        passes &= fit.future_fits[rows]
    for verdict in verdicts:
        passes &= verdict.codes == 0
    if ssn.shard_mask is not None and ssn.snapshot.shard is not None and ssn.snapshot.shard.hard:
        passes &= ssn.shard_mask[rows]
    if blocked is not None:
        passes &= ~blocked[rows]
    nominated = int(ssn.tables.tasks.nominated[row])
    if nominated >= 0 and passes[rows == nominated].any() and fit.future_fits[nominated]:
        passes &= rows == nominated
    candidates = rows[passes]
    if not len(candidates):
        if not resources:
            return Choice(errors=fit_errors(ssn, task.cls, nodes, verdicts, hypernode, resources=False))
        return Choice(errors=_errors(ssn, fit, task, nodes, verdicts, hypernode))
    for idle, group in _groups(ssn, fit, candidates, resources):
        best = best_of(ssn, task, fit, group)
        if best >= 0:
            return Choice(best, idle=idle)
    return Choice()


def _errors(
    ssn: Session, fit: ClassFit, task: Task, nodes: NodeRows, verdicts: list[Verdict], hypernode: str
) -> FitErrors:
    if nodes is ssn.all_nodes and not verdicts and not hypernode:
        return fit.errors()
    return fit_errors(ssn, task.cls, nodes, verdicts, hypernode)


def _groups(ssn: Session, fit: ClassFit, candidates: AnyArray, resources: bool) -> Iterator[tuple[bool, AnyArray]]:
    """Candidates by preference: idle before releasing; inside each the own shard before others."""
    idle = fit.idle_fits[candidates]
    kinds = ((True, candidates[idle]), (False, candidates[~idle])) if resources else ((True, candidates),)
    for is_idle, group in kinds:
        if ssn.shard_mask is None:
            parts: tuple[AnyArray, ...] = (group,)
        else:
            mine = ssn.shard_mask[group]
            parts = (group[mine], group[~mine])
        for part in parts:
            if len(part):
                yield is_idle, part


def best_of(ssn: Session, task: Task, fit: ClassFit, group: AnyArray) -> int:
    """The candidate to take: the only one, what a plugin names, else the highest score (first row among equals)."""
    if len(group) == 1:
        return int(group[0])
    nodes = NodeRows(ssn.tables, group)
    score = fit.score[group].copy()
    for hook in ssn.task_scores:
        answer = hook(task, nodes)
        if answer is not None:
            score += answer
    score += ssn.reduced_scores(task, nodes)
    named = ssn.ask(points.best_node, task, nodes, score)
    if named is not None:
        return int(named)
    return int(group[int(score.argmax())])
