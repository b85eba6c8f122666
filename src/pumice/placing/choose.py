"""Choose nodes: for a run of equal tasks at once, or for one task with all hooks that look at a single task.

Nodes for the tasks of a gang are chosen together, and the tasks are then placed in one operation. Each task is chosen
as if those before it had been placed. For a run of equal tasks, all nodes are examined once, which gives exactly what
one task after the other would give (``k_best``). Otherwise tasks are booked on their nodes while the others are chosen.
Source: Volcano's choice of the best node (actions/allocate, prioritizeNodes): idle nodes first, then nodes on which
resources are being released. Of equal nodes the first row is taken, where Volcano draws at random.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from math import isfinite, isnan

import numpy as np

from pumice.algorithms.groups import all_equal
from pumice.algorithms.top_k import top_k
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.placement import Placement
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.world import World
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import ByHook, FitErrors
from pumice.framework.plugin.hooks import At, Hook, Hooks
from pumice.framework.plugin.point import JOBS, QUEUES
from pumice.placing.feasibility import ClassFit, Feasibility
from pumice.placing.fill_state import Filling, IncrementalHooks, Turns, said_of
from pumice.placing.k_best import KBestMerge
from pumice.placing.prefetch import PrefetchedPlacements
from pumice.placing.speculative import SpeculativeBatch, portions, tasks_at_once

_ABOUT_NODES = (*points.ABOUT_NODES, points.node_map, points.node_reduce, points.best_node)


class Choice:
    """Where one task can go: ``node``, and whether it is ``idle`` there (otherwise it waits for what is being
    released), or ``errors``. ``passed`` (rows,): nodes to which no filter objects."""

    __slots__ = ("errors", "idle", "node", "passed")

    def __init__(self, passed: Bool) -> None:
        self.passed = passed
        self.node = -1
        self.idle = False
        self.errors: FitErrors | None = None


class Placing:
    """Chooses nodes by the answers of the hooks of a session."""

    __slots__ = (
        "_apart",
        "_asked",
        "_by_class",
        "_hooks",
        "_names_best",
        "_picks",
        "_reduces",
        "_tables",
        "_told",
        "_tries",
        "_world",
        "feasible",
    )

    def __init__(self, world: World, hooks: Hooks, memo: Memo, feasible: Feasibility) -> None:
        self._world, self._tables, self._hooks, self.feasible = world, world.tables, hooks, feasible
        self._apart = hooks.known("tell equal tasks apart", points.ABOUT_NODES, _tells_equal_tasks_apart)
        self._picks = PrefetchedPlacements(memo, feasible, to_the_last=True)
        self._by_class = feasible.at_once and not hooks.has(points.node_reduce)
        self._reduces, self._names_best = hooks.has(points.node_reduce), hooks.has(points.best_node)
        self._asked, looks_beyond = hooks.known("placing", _ABOUT_NODES, _who_looks_at_nodes)
        # Trial bookings are invisible to a hook that reads queues or jobs, or whose plugin keeps state that the journal
        # cannot take back. Then each task must really be placed before the next is chosen.
        self._tries = not looks_beyond and self._asked.isdisjoint(hooks.with_python_state)
        self._told: list[Hook] | None = None  # found when the first task is booked

    # -- several tasks ------------------------------------------------------------------------------------------------

    def run(
        self,
        rows: Sequence[int],
        nodes: NodeRows,
        open_to: dict[int, Bool] | None = None,
        between: Callable[[int, int, int], None] | None = None,
    ) -> list[int]:
        """Return nodes with idle resources for tasks of one sub-job, in order, each chosen as if those before it had
        been placed. The list ends before the first task that finds no node, or that must be placed by itself.

        ``open_to``: for each role, the nodes that have not failed one of its tasks; what these tasks find is written
        there. None: every task looks at all nodes. ``between``: called with a task, its node and the next task, to put
        into the journal what hooks see of the latter; the entries are taken back. Call ``took`` when all nodes have
        been taken.
        """
        self._picks.none()
        classes = self._tables.tasks.cls[rows].tolist()
        alike, cls = all_equal(classes), classes[0]
        ahead_of_need = alike and open_to is None and nodes is self.feasible.all_nodes
        said = self._said(rows, nodes) if alike else None
        if said is not None and said.is_plain and ahead_of_need:
            return self._picks.next(self._run_of(cls), len(rows), lambda ahead: self._equal(cls, ahead, nodes))
        if said is not None:
            found = self._foreseen(rows, nodes, said, open_to, between)
            if found is not None:
                return found
        if len(rows) == 1 or not self._tries:
            return []
        mark = self._world.journal.mark()
        try:
            if alike:
                return self._one_by_one(rows, nodes, open_to, between)
            return self._in_turn(rows, classes, nodes, open_to, between)
        finally:
            self._world.journal.rollback(mark)

    def _said(self, rows: Sequence[int], nodes: NodeRows) -> IncrementalHooks | None:
        """Return what hooks say of single tasks of one class as they are placed one after the other, or None if that,
        or how nodes change, is only known after each has been booked."""
        if not self._by_class or (self._apart and len(rows) > 1):
            return None
        return said_of(self._hooks, TaskRows(self._tables, np.array(rows)), nodes)

    def _foreseen(
        self,
        rows: Sequence[int],
        nodes: NodeRows,
        said: IncrementalHooks,
        open_to: dict[int, Bool] | None,
        between: Callable[[int, int, int], None] | None,
    ) -> list[int] | None:
        """Return nodes for tasks of one class without booking any, or None if each must be booked."""
        cls = int(self._tables.tasks.cls[rows[0]])
        if said.is_plain and open_to is None:
            return self._equal(cls, len(rows), nodes)
        if len(rows) == 1 or between is not None or not self._tries:
            return None
        roles = self._tables.tasks.role[rows].tolist()
        turns = Turns(self._hooks, Filling(self.feasible, cls, nodes, len(rows), said.on_top), said, roles, open_to)
        return [int(nodes.rows[place]) for place in turns.choose()]

    def is_plain(self, task: Task, nodes: NodeRows) -> bool:
        """Return True if the class decides: no hook about single tasks objects to a node or prefers one."""
        return not self._apart and self._same_everywhere(task, nodes) is not None

    def _same_everywhere(self, task: Task, nodes: NodeRows) -> float | None:
        """Return what hooks about single tasks add to the score of every node, or None if one objects to a node or
        prefers one."""
        if self._hooks.ask(points.task_filters, task, nodes):
            return None
        score = self._hooks.ask(points.task_scores, task, nodes, 0.0)
        return None if isinstance(score, np.ndarray) else score

    def _in_turn(
        self,
        rows: Sequence[int],
        classes: list[int],
        nodes: NodeRows,
        open_to: dict[int, Bool] | None,
        between: Callable[[int, int, int], None] | None,
    ) -> list[int]:
        """Return nodes for tasks of several classes, in order. Each is booked before the next is chosen; the caller
        takes the bookings back."""
        picked: list[int] = []
        mixes = between is None and self.feasible.at_once and not self._reduces and not self._apart
        for few in portions(classes, mixes=mixes, roles_matter=open_to is not None):
            some = [rows[i] for i in few]
            if picked and between is not None:
                between(rows[len(picked) - 1], picked[-1], some[0])
            if not all_equal(classes[few.start : few.stop]):
                found = self._mixed(some, nodes, open_to)
            else:
                found = self._of_one_class(some, nodes, open_to, between)
            picked += found
            if len(found) < len(some):
                break
        return picked

    def _of_one_class(
        self,
        rows: Sequence[int],
        nodes: NodeRows,
        open_to: dict[int, Bool] | None,
        between: Callable[[int, int, int], None] | None,
    ) -> list[int]:
        """Return nodes for tasks of one class, and leave the tasks booked there."""
        said = self._said(rows, nodes) if len(rows) > 1 else None
        found = None if said is None else self._foreseen(rows, nodes, said, open_to, between)
        if found is None:
            return self._one_by_one(rows, nodes, open_to, between)
        # Nodes that were foreseen are booked now, so that tasks of the next class see them as taken.
        return found if not found or self._hold(rows[: len(found)], found) else []

    def _mixed(self, rows: Sequence[int], nodes: NodeRows, open_to: dict[int, Bool] | None) -> list[int]:
        """Return nodes for tasks of several classes, and leave the tasks booked there."""
        picked: list[int] = []
        while len(picked) < len(rows):
            left = rows[len(picked) :]
            found = self._guessed(left[: tasks_at_once(len(nodes))], nodes, open_to)
            if not found:
                # A task to which the guess does not apply is chosen by itself; the guess goes on after it.
                found = self._one_by_one(left[:1], nodes, open_to, None)
                if not found:
                    break
            picked += found
        return picked

    def _guessed(self, rows: Sequence[int], nodes: NodeRows, open_to: dict[int, Bool] | None) -> list[int]:
        """Return nodes for the first tasks to which no hook about single tasks objects, and leave them booked there;
        empty if the first task must be examined by itself."""
        alike: list[float] = []
        for row in rows:
            same = self._same_everywhere(Task(self._tables, row), nodes)
            if same is None:
                break
            alike.append(same)
        # One task alone gains nothing from a guess, and without room for the first the guess ends at once.
        if len(alike) < 2 or not self.feasible.fits_some(int(self._tables.tasks.cls[rows[0]]), nodes):
            return []
        return SpeculativeBatch(self.feasible, nodes, rows[: len(alike)], alike, open_to).choose(
            self._world.journal, self._hold
        )

    def _one_by_one(
        self,
        rows: Sequence[int],
        nodes: NodeRows,
        open_to: dict[int, Bool] | None,
        between: Callable[[int, int, int], None] | None,
    ) -> list[int]:
        """Return nodes for tasks, each examined by itself, and leave the tasks booked there."""
        picked: list[int] = []
        for row in rows:
            if picked and between is not None:
                between(rows[len(picked) - 1], picked[-1], row)
            role = int(self._tables.tasks.role[row])
            mask = open_to.get(role) if open_to is not None else None
            choice = self.choose(row, nodes, open_to=mask, explain=False)
            # A node without idle resources ends the run: a task that waits there is placed by its caller.
            if choice.node < 0 or not choice.idle or not self._hold([row], [choice.node]):
                break
            if open_to is not None and role:
                open_to[role] = choice.passed
            picked.append(choice.node)
        return picked

    def _hold(self, rows: Sequence[int], nodes: Sequence[int]) -> bool:
        """Book tasks on nodes as far as hooks about nodes can see it. Return True if all plugins accept that."""
        if self._told is None:
            # Only plugins that are asked about nodes are told. What others count cannot change a choice, and is costly.
            self._told = [hook for hook in self._hooks.at(points.on_allocate) if hook.plugin in self._asked]
        run = TaskRun(self._tables, Placement(rows, nodes))
        self._world.ledger.hold(run)
        return all(self._hooks.ask_one(hook, run) is None for hook in self._told)

    def _equal(self, cls: int, count: int, nodes: NodeRows) -> list[int]:
        """Return nodes for up to ``count`` tasks of a class, in the order of choice; fewer if no node is left."""
        fit = self.feasible.of(cls, ahead=count > 1)
        everywhere = nodes is self.feasible.all_nodes
        score = fit.idle_score if everywhere else fit.idle_score[nodes.rows]
        if count == 1:
            best = int(score.argmax())
            if self._finite(cls, score[best]) == -np.inf:
                return self._nowhere(fit)
            return [best] if everywhere else [int(nodes.rows[best])]
        top = top_k(score, count)
        if not len(top):
            return self._nowhere(fit)
        scores: list[float] = score[top].tolist()
        self._finite(cls, sum(scores))
        rows = top if everywhere else nodes.rows[top]

        def score_after(rows: AnyArray, after: F64) -> F64:
            return self.feasible.look(cls, NodeRows(self._tables, rows, after=after, cls=cls)).where_idle()

        assert fit.next_score is not None
        second: list[float] = fit.next_score[rows].tolist()
        # A node leads until its score after one more task falls below the next node's. Most nodes take one or two
        # tasks, so the second score is known beforehand and only later ones are computed.
        steps = [list(both) for both in zip(scores, second, strict=True)]
        return KBestMerge(rows, rows, steps, count, score_after).climb()

    def _nowhere(self, fit: ClassFit) -> list[int]:
        """Return no node. Raises: PluginFault if that is because a score is not a number."""
        if not isfinite(fit.score.min(initial=0.0)):
            self._finite(fit.cls, np.nan)
        return []

    def _finite(self, cls: int, best: float) -> float:
        """Return the best score of a class, or a sum of scores, as it is.

        NumPy takes a score that is not a number for the greatest, so every such score is found by checking the best
        one. Raises: PluginFault if the score is not a number or is infinite.
        """
        if best == np.inf or isnan(best):
            self._hooks.ask(points.class_scores_checked, TaskClass(self._tables, cls), self.feasible.all_nodes)
        return best

    def _run_of(self, cls: int) -> Hashable:
        return "picks", cls, self._tables.classes.identity(cls)

    def took(self, count: int) -> None:
        """Note that the first ``count`` nodes that ``run`` returned have been taken."""
        self._picks.took(count)

    # -- one task -----------------------------------------------------------------------------------------------------

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
        for idle, group in self._groups(task, fit, candidates, resources):
            choice.node, choice.idle = self.best(task, fit, group), idle
            if choice.node >= 0:
                break
        return choice

    def _none_is_left(self, cls: int) -> bool:
        """Return True if it is known that no node takes a task of a class, neither now nor after others have left."""
        return not self._world.futures_differ and self._picks.none_is_left(self._run_of(cls))

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
            parts: tuple[AnyArray, ...] = (group,) if mask is None else (group[mask[group]], group[~mask[group]])
            for part in parts:
                if len(part):
                    yield is_idle, part

    def best(self, task: Task, fit: ClassFit, group: AnyArray) -> int:
        """Return the node to take: the only candidate, or the one that a plugin names, or the first with the best
        score."""
        if len(group) == 1:
            return int(group[0])
        nodes = NodeRows(self._tables, group)
        score = self.scores(task, fit, nodes)
        if self._names_best:
            named = self._hooks.ask(points.best_node, task, nodes, score)
            if named is not None:
                return int(named)
        best = int(score.argmax())
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
                mapped = [int(self._hooks.ask_one(mapper, task, node)) for node in nodes]
                total = total + self._hooks.ask_one(reducer, task, nodes, np.array(mapped, dtype=np.int64))
        return total


def _who_looks_at_nodes(at: At) -> tuple[set[str], bool]:
    """Return the plugins with hooks about nodes, and whether one of them reads what a trial booking does not change."""
    hooks = at(*_ABOUT_NODES)
    looks_beyond = any(hook.reads is not None and not {QUEUES, JOBS}.isdisjoint(hook.reads) for hook in hooks)
    return {hook.plugin for hook in hooks}, looks_beyond


def _tells_equal_tasks_apart(at: At) -> bool:
    """Return True if the answer of a hook about nodes may hold for one task only."""
    return not all(hook.for_equals for hook in at(*points.ABOUT_NODES))


def placing_of(ssn: Session) -> Placing:
    """Return the chooser of the session, made at the first call."""

    def build() -> Placing:
        return Placing(ssn.world, ssn.hooks, ssn.memo, Feasibility(ssn.world, ssn.hooks, ssn.memo, ssn.snapshot.shard))

    return ssn.shared(Placing, build)
