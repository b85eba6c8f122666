"""Trials that need not be done again: equal tasks in a domain whose nodes have not changed fit in the same way."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pumice.columns.column import Column
from pumice.columns.dtypes import AnyArray
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework import points
from pumice.framework.hooks import Hooks
from pumice.framework.memo import Ground, Memo, ground, ground_of_rows
from pumice.framework.point import SIGNATURE, Question
from pumice.framework.world import World

_ABOUT_NODES: tuple[Any, ...] = (points.predicate, points.node_order, points.batch_node_order)


class Trials:
    """What trials came to, by what was tried and where. A trial asks hooks about tasks and nodes, and at ``asks``."""

    __slots__ = ("_about_tasks", "_columns", "_hooks", "_memo", "_tables", "_world")

    def __init__(self, world: World, hooks: Hooks, memo: Memo, asks: tuple[Question, ...]) -> None:
        self._world, self._tables, self._hooks, self._memo = world, world.tables, hooks, memo
        about_nodes = hooks.at(*_ABOUT_NODES)
        self._about_tasks = [hook for hook in about_nodes if hook.form in ("task", "task_node")]
        others = [hook for hook in about_nodes if hook.form in ("class", "class_node")]
        self._columns = hooks.read(world, (*others, *hooks.at(points.pre_predicate, *asks)))

    def rest_on(self, task: Task, nodes: NodeRows) -> list[Column[Any]] | None:
        """What plugins keep that trials of tasks like this rest on; None where a hook has something to say about the
        single task, so that no other is like it."""
        spoke = []
        for hook in self._about_tasks:
            answer = self._hooks.ask_one(hook, task, nodes) if hook.form == "task" else nodes
            if answer is None:
                continue
            like_others = hook.reads is not None and SIGNATURE in hook.reads
            if not like_others and not isinstance(answer, int | float):
                return None
            spoke.append(hook)
        return self._columns + self._hooks.read(self._world, spoke)

    def recall(self, kind: Hashable, columns: list[Column[Any]], nodes: AnyArray) -> Any | None:
        """What trying it on these nodes came to, None where that is not known or may be otherwise now.

        ``kind`` names all that the trial depends on besides the nodes, the topology and what plugins keep.
        """
        return self._memo.recall(kind, self._ground(columns, nodes))

    def keep(self, kind: Hashable, columns: list[Column[Any]], nodes: AnyArray, found: object) -> None:
        """Keep what a trial came to, once it is undone."""
        self._memo.keep(kind, self._ground(columns, nodes), found)

    def _ground(self, columns: list[Column[Any]], nodes: AnyArray) -> Ground:
        tables = self._tables
        return (
            tables.nodes.facts.version,
            tables.tree.version,
            ground_of_rows(tables.nodes.stamps, nodes),
            *ground(*columns),
        )
