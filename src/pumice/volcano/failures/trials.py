"""Remember trials: equal tasks in a domain whose nodes have not changed fit in the same way."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pumice.columns.column import Column
from pumice.columns.dtypes import AnyArray
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.world import World
from pumice.framework.memo import Ground, Memo, ground, ground_of_rows
from pumice.framework.plugin import points
from pumice.framework.plugin.hooks import Hooks
from pumice.framework.plugin.point import Question
from pumice.framework.plugin.resolution import Reading


class Trials:
    """Results of trials, by what was tried and where. A trial asks hooks about tasks and nodes, and at ``asks``."""

    __slots__ = ("_about_tasks", "_columns", "_hooks", "_memo", "_tables", "_tells_apart", "_world")

    def __init__(self, world: World, hooks: Hooks, memo: Memo, asks: tuple[Question, ...]) -> None:
        self._world, self._tables, self._hooks, self._memo = world, world.tables, hooks, memo
        # Hooks about a class cannot tell equal tasks apart. All others are asked again for each job, which costs little
        # beside a trial in each domain.
        about_nodes = hooks.at(*points.ABOUT_NODES)
        self._about_tasks = [hook for hook in about_nodes if hook.form not in ("class", "class_node")]
        others = [hook for hook in about_nodes if hook.form in ("class", "class_node")]
        before = *hooks.at(points.pre_predicate), *hooks.at(*asks)
        self._tells_apart = not all(hook.for_equals for hook in (*about_nodes, *before))
        self._columns = Reading.of((*others, *before)).columns(world)

    def rest_on(self, task: Task, nodes: NodeRows) -> tuple[list[Column[Any]], tuple[float | None, ...]] | None:
        """Return the columns that trials of equal tasks rest on, and answers that hold for all nodes.

        Return None if a hook has an answer for the single task, so that no other task is equal to it.
        """
        if self._tells_apart:
            return None
        about: dict[str, tuple[object, ...]] = {"task": (task, nodes), "of_tasks": (task.cls,)}
        spoke, equal = [], []
        for hook in self._about_tasks:
            answer = nodes if hook.form == "task_node" else self._hooks.ask_one(hook, *about[hook.form])
            # None or one number for all nodes changes no choice among them, so the trial of any equal task ends in the
            # same way.
            if answer is None or isinstance(answer, int | float):
                equal.append(answer)
            elif hook.form == "of_tasks":
                return None
            else:
                spoke.append(hook)
        return self._columns + Reading.of(spoke).columns(self._world), tuple(equal)

    def recall(self, kind: Hashable, rests_on: Ground) -> Any | None:
        """Return the result of an equal trial, or None if it is unknown or may have changed.

        ``kind`` names all that the trial depends on, besides what ``rests_on`` has: see ``ground``.
        """
        return self._memo.recall(kind, rests_on)

    def keep(self, kind: Hashable, rests_on: Ground, found: object) -> None:
        """Keep the result of a trial. ``rests_on``: the versions before it, which undoing it restores."""
        self._memo.keep(kind, rests_on, found)

    def ground(self, columns: list[Column[Any]], nodes: AnyArray) -> Ground:
        """Return the versions on which a trial on these nodes rests."""
        tables = self._tables
        return (
            tables.nodes.facts.version,
            # The nodes of a domain are rows of the tree, which may mean others after it changed.
            tables.tree.version,
            # Stamps of the domain's rows only: placements elsewhere do not invalidate the trial.
            ground_of_rows(tables.nodes.stamps, nodes),
            *ground(*columns),
        )
