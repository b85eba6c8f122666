"""Choose nodes for several tasks together, each as if those before it had been placed. Equal to ``choose`` for each.

Nodes for the tasks of a gang are chosen together, and the tasks are then placed in one operation. For a run of equal
tasks, all nodes are examined once, which gives exactly what one task after the other would give (``k_best``). Otherwise
tasks are booked on their nodes while the others are chosen. ``tests/properties/test_one_is_many.py`` holds both equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np

from pumice.algorithms.groups import all_equal
from pumice.algorithms.top_k import top_k
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.placement import Placement
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.world import World
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.hooks import At, Hook, Hooks
from pumice.framework.plugin.point import JOBS, QUEUES
from pumice.placing.choose import Chooser
from pumice.placing.feasibility import ClassFit, Feasibility
from pumice.placing.fill_state import BatchSteps, Filling, IncrementalHooks, said_of
from pumice.placing.k_best import KBestMerge
from pumice.placing.speculative import SpeculativeBatch, portions, tasks_at_once

_ABOUT_NODES = (*points.ABOUT_NODES, points.node_map, points.node_reduce, points.best_node)


class Placing(Chooser):
    """Chooses nodes for one task or for several by the answers of the hooks of a session."""

    __slots__ = ("_apart", "_asked", "_by_class", "_notified", "_tries")

    def __init__(self, world: World, hooks: Hooks, memo: Memo, feasible: Feasibility) -> None:
        super().__init__(world, hooks, memo, feasible)
        self._apart = hooks.known("tell equal tasks apart", points.ABOUT_NODES, _tells_equal_tasks_apart)
        # A reduction normalises over the candidates of one task, and the candidates of the next task differ. So its
        # scores cannot be known before each task is booked.
        self._by_class = feasible.at_once and not self._reduces
        self._asked, looks_beyond = hooks.known("placing", _ABOUT_NODES, _who_looks_at_nodes)
        # Trial bookings are invisible to a hook that reads queues or jobs, or whose plugin keeps state that the journal
        # cannot take back. Then each task must really be placed before the next is chosen.
        self._tries = not looks_beyond and self._asked.isdisjoint(hooks.with_python_state)
        self._notified: list[Hook] | None = None  # found when the first task is booked

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
        self._prefetched.none()
        classes = self._tables.tasks.cls[rows].tolist()
        equal, cls = all_equal(classes), classes[0]
        # Only an answer about all nodes and any role can serve the jobs to come.
        ahead_of_need = equal and open_to is None and nodes is self.feasible.all_nodes
        said = self._said(rows, nodes) if equal else None
        if said is not None and said.is_plain and ahead_of_need:
            return self._prefetched.next(self._run_of(cls), len(rows), lambda ahead: self._equal(cls, ahead, nodes))
        if said is not None:
            found = self._foreseen(rows, nodes, said, open_to, between)
            if found is not None:
                return found
        # An empty list makes the caller place the first task by ``choose``, which needs no trial booking.
        if len(rows) == 1 or not self._tries:
            return []
        mark = self._world.journal.mark()
        try:
            if equal:
                return self._one_by_one(rows, nodes, open_to, between)
            return self._in_turn(rows, classes, nodes, open_to, between)
        finally:
            # The statement of the caller books the tasks for good, with all plugins. Here they were booked only as far
            # as the choice of the next task could see it.
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
        steps = BatchSteps(
            self._hooks, Filling(self.feasible, cls, nodes, len(rows), said.on_top), said, roles, open_to
        )
        return [int(nodes.rows[place]) for place in steps.choose()]

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
            # A task without a node ends the list: its failure may change which task the caller tries next.
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
        equal: list[float] = []
        for row in rows:
            same = self._same_everywhere(Task(self._tables, row), nodes)
            if same is None:
                break
            equal.append(same)
        # One task alone gains nothing from a guess, and without room for the first the guess ends at once.
        if len(equal) < 2 or not self.feasible.fits_some(int(self._tables.tasks.cls[rows[0]]), nodes):
            return []
        return SpeculativeBatch(self.feasible, nodes, rows[: len(equal)], equal, open_to).choose(
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
        if self._notified is None:
            # Only plugins that are asked about nodes are notified. What others count changes no choice, and is costly.
            self._notified = [hook for hook in self._hooks.at(points.on_allocate) if hook.plugin in self._asked]
        run = TaskRun(self._tables, Placement(rows, nodes))
        self._world.ledger.hold(run)
        return all(self._hooks.ask_one(hook, run) is None for hook in self._notified)

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
        assert fit.next_score is not None
        # Whole nodes are frequent. None of them takes a second task, so the order of the scores is the choice.
        if (fit.next_score[rows] == -np.inf).all():
            found: list[int] = rows[np.lexsort((rows, -score[top]))][:count].tolist()
            return found

        def score_after(rows: AnyArray, after: F64) -> F64:
            return self.feasible.look(cls, NodeRows(self._tables, rows, after=after, cls=cls)).where_idle()

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

    def took(self, count: int) -> None:
        """Note that the first ``count`` nodes that ``run`` returned have been taken."""
        self._prefetched.took(count)


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
