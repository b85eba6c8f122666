"""Choose the node for one task: the reference for ``batch``, which must choose the same nodes for many tasks at once.

Source: Volcano's choice of the best node (actions/allocate, prioritizeNodes): idle nodes first, then nodes on which
resources are being released. Of equal nodes the first row is taken, where Volcano draws at random.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import isfinite, isnan

import numpy as np

from pumice.columns.dtypes import F64, I64, AnyArray, Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task, TaskClass
from pumice.framework.cycle.world import World
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.adapters import score_node_by_node
from pumice.framework.plugin.combine import Tiers
from pumice.framework.plugin.errors import HookFunction, WrongAnswer
from pumice.framework.plugin.filter_result import ByHook, FitErrors
from pumice.framework.plugin.hooks import Hooks
from pumice.placing.feasibility import ClassFit, Feasibility
from pumice.placing.prefetch import PrefetchedPlacements


class Choice:
    """Where one task can go: ``node``, and whether it is ``idle`` there (otherwise it waits for what is being
    released), or ``errors``. ``passed`` (rows,): nodes to which no filter objects."""

    __slots__ = ("errors", "idle", "node", "passed")

    def __init__(self, passed: Bool) -> None:
        self.passed = passed
        self.node = -1
        self.idle = False
        self.errors: FitErrors | None = None


class Chooser:
    """Chooses nodes for single tasks by the answers of the hooks of a session."""

    __slots__ = ("_hooks", "_names_best", "_prefetched", "_reduces", "_tables", "_world", "feasible")

    def __init__(self, world: World, hooks: Hooks, memo: Memo, feasible: Feasibility) -> None:
        self._world, self._tables, self._hooks, self.feasible = world, world.tables, hooks, feasible
        self._prefetched = PrefetchedPlacements(memo, feasible, to_the_last=True)
        self._reduces, self._names_best = hooks.has(points.node_reduce), hooks.has(points.best_node)

    def choose(
        self,
        row: int,
        nodes: NodeRows,
        *,
        open_to: Bool | None = None,
        hypernode: str = "",
        resources: bool = True,
        explain: bool = True,
    ) -> Choice:
        """Return the best node for one task among ``nodes``.

        ``open_to`` (rows,): nodes that have not failed its role. ``hypernode``: name of the hypernode that ``nodes``
        are, for messages. ``resources`` False leaves out the check of resources (backfill). A Choice without a node and
        without errors means that candidates existed and none was scored, or that ``explain`` is False.
        """
        # By identity: all nodes need no indexing, and comparing rows would cost as much as it saves.
        task, every, rows = Task(self._tables, row), nodes is self.feasible.all_nodes, nodes.rows
        cls = int(self._tables.tasks.cls[row])
        filter_results = self._hooks.ask(points.task_filters_by_hook, task, nodes)
        # Known from an equal task. In a full cluster, most tasks end here.
        if every and resources and not filter_results and self._none_is_left(cls):
            choice = Choice(np.zeros(len(nodes), dtype=bool))
            choice.errors = self._errors(task, nodes, [], hypernode, resources) if explain else None
            return choice
        fit = self.feasible.of(cls)
        if resources:
            fits = fit.allowed & fit.future_fits
            passes = fits if every else fits[rows]
        else:
            passes = fit.allowed.copy() if every else fit.allowed[rows]
        for _, filter_result in filter_results:
            passes &= filter_result.codes == 0
        if self.feasible.outside is not None:
            passes &= ~self.feasible.outside[rows]
        if open_to is not None:
            passes &= open_to
        choice = Choice(passes)
        # A nominated node goes first: others were evicted for the task there. If it no longer fits, all are looked at.
        nominated = int(self._tables.tasks.nominated[row])
        if nominated >= 0 and passes[rows == nominated].any() and fit.future_fits[nominated]:
            passes = passes & (rows == nominated)
        candidates = passes.nonzero()[0] if every else rows[passes]
        if not len(candidates):
            if explain:
                choice.errors = self._errors(task, nodes, filter_results, hypernode, resources)
            return choice
        # In groups and not by one score: any idle node goes before every node that must first become free. Source:
        # Volcano allocate.go, prioritizeNodes.
        for idle, group in self._groups(task, fit, candidates, resources):
            choice.node, choice.idle = self.best(task, fit, group), idle
            if choice.node >= 0:
                break
        return choice

    def _none_is_left(self, cls: int) -> bool:
        """Return True if it is known that no node takes a task of a class, neither now nor after others have left."""
        return not self._world.futures_differ and self._prefetched.none_is_left(self._run_of(cls))

    def _errors(self, task: Task, nodes: NodeRows, objects: ByHook, hypernode: str, resources: bool) -> FitErrors:
        """Return why none of the nodes takes the task."""
        # Over all nodes, equal tasks share one answer; it is kept until a node changes.
        if nodes is self.feasible.all_nodes and resources and not objects and not hypernode:
            return self.feasible.errors(task.cls.row)
        of_task = self._hooks.with_plugins(points.task_filters_by_hook, objects)
        return self.feasible.errors_of(task.cls, nodes, of_task, hypernode, resources=resources)

    def _groups(
        self, task: Task, fit: ClassFit, candidates: AnyArray, resources: bool
    ) -> Iterator[tuple[bool, AnyArray]]:
        """Yield candidates by preference: idle before releasing, and within each this scheduler's shard before
        others."""
        mask = self.feasible.shard_mask
        kinds = [(True, candidates)]
        if resources and self._world.futures_differ:
            idle = self.feasible.idle_for(task, fit, candidates)
            kinds = [(True, candidates[idle]), (False, candidates[~idle])]
        for is_idle, group in kinds:
            # Of each kind, nodes of other shards come last: their own schedulers may be placing pods there now, and one
            # of two binds would fail.
            parts: tuple[AnyArray, ...] = (group,) if mask is None else (group[mask[group]], group[~mask[group]])
            for part in parts:
                if len(part):
                    yield is_idle, part

    def best(self, task: Task, fit: ClassFit, group: AnyArray) -> int:
        """Return the node to take: the only candidate, or the one that a plugin names, or the first with the best
        score."""
        # Plugins are not asked for scores that cannot change the choice, as in Volcano.
        if len(group) == 1:
            return int(group[0])
        nodes = NodeRows(self._tables, group)
        score = self.scores(task, fit, nodes)
        if self._names_best:
            named = self._hooks.ask(points.best_node, task, nodes, score)
            if named is not None:
                return int(named)
        # The first of equals, in the order of rows, so that the same cluster always gives the same node. Volcano picks
        # one at random.
        best = int(score.argmax())
        # Only the best is checked, since a NaN or an infinite score would be the best. The slow check then finds the
        # plugin.
        if not isfinite(score[best]):
            self._finite(fit.cls, np.nan)
            self._hooks.ask(points.task_scores_checked, task, nodes, 0.0)
        return int(group[best])

    def scores(self, task: Task, fit: ClassFit, nodes: NodeRows) -> F64:
        """Return the score of each of some nodes for the task. Shape (rows,). They are not checked to be numbers."""
        score: F64 = np.asarray(self._hooks.ask(points.task_scores, task, nodes, fit.score[nodes.rows]))
        return score + self._reduced(task, nodes) if self._reduces else score

    def _reduced(self, task: Task, nodes: NodeRows) -> F64 | float:
        """Return the sum of mapped scores after the reduction of each plugin; a map without one counts as nothing."""
        total: F64 | float = 0.0
        pairs = zip(
            self._hooks.by_plugin(points.node_map),
            self._hooks.by_plugin(points.node_reduce, points.node_map),
            strict=True,
        )
        for maps, reduces in pairs:
            for mapper, reducer in zip(maps, reduces, strict=False):
                mapped = self._hooks.ask_alone(mapper, whole_scores, task, nodes)
                total = total + self._hooks.ask_alone(reducer, rewritten_scores, task, nodes, mapped)
        return total

    def _finite(self, cls: int, best: float) -> float:
        """Return the best score of a class, or a sum of scores, as it is.

        NumPy takes a score that is not a number for the greatest, so every such score is found by checking the best
        one. Raises: PluginFault if the score is not a number or is infinite.
        """
        if best == np.inf or isnan(best):
            self._hooks.ask(points.class_scores_checked, TaskClass(self._tables, cls), self.feasible.all_nodes)
        return best

    def _run_of(self, cls: int) -> Hashable:
        return "prefetched", cls, self._tables.classes.identity(cls)


def whole_scores(tiers: Tiers, task: Task, nodes: NodeRows) -> I64:
    """Return the scores of single nodes by one hook, as whole numbers. Shape (rows,). Raises: WrongAnswer."""
    ((hook,),) = tiers
    # As whole numbers: a reduction in Volcano takes a NodeScoreList, whose scores are int64.
    return _finite_scores(hook, score_node_by_node(hook)(task, nodes)).astype(np.int64)


def rewritten_scores(tiers: Tiers, task: Task, nodes: NodeRows, mapped: I64) -> F64:
    """Return what one hook makes of scores. Shape (rows,). Raises: WrongAnswer."""
    ((hook,),) = tiers
    answer = hook(task, nodes, mapped)
    if not isinstance(answer, np.ndarray) or answer.shape != (len(nodes),) or answer.dtype.kind not in "biuf":
        raise WrongAnswer(hook, answer, f"one number for each of {len(nodes)} rows")
    return _finite_scores(hook, answer)


def _finite_scores(hook: HookFunction, scores: F64) -> F64:
    if not np.isfinite(scores).all():
        raise WrongAnswer(hook, scores, "finite numbers")
    return scores
