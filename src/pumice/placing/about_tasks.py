"""Hooks that look at the single task as nodes are chosen, and for which classes of tasks they do.

Most have something to say of few classes, such as those with wishes about other pods. Which these are they say of
themselves (``concerns=``), so nobody else's tasks are put to them one by one.
"""

from __future__ import annotations

from typing import Any

from pumice.columns.tables import Tables
from pumice.columns.views import TaskClass
from pumice.framework.plugin import points
from pumice.framework.plugin.hooks import At, Hook, Hooks
from pumice.framework.plugin.point import by_signature

ABOUT_NODES: tuple[Any, ...] = (points.predicate, points.node_order, points.batch_node_order)


def hooks_about_tasks(at: At) -> list[Any]:
    """Those of the hooks about nodes that look at the single task."""
    return [hook for hook in at(*ABOUT_NODES) if hook.form not in ("class", "class_node")]


def that_tell_equal_tasks_apart(at: At) -> list[Any]:
    """Hooks about nodes that take Task and declare neither ``concerns=`` nor SIGNATURE: each may read a label, so its
    answer about one task holds for no other."""
    return [hook for hook in hooks_about_tasks(at) if hook.concerns is None and not by_signature(hook.reads)]


class AboutTasks:
    """Those of one session."""

    __slots__ = ("_found", "_hooks", "_listed", "_tables")

    def __init__(self, tables: Tables, hooks: Hooks) -> None:
        self._tables, self._hooks = tables, hooks
        self._listed: list[Hook] | None = None  # until somebody asks
        self._found: dict[int, bool] = {}

    def mind(self, cls: int) -> bool:
        """Whether any of them may object to a node for a task of the class, or prefer one. Raises: PluginFault."""
        found = self._found.get(cls)
        if found is None:
            if self._listed is None:
                wires = self._hooks.known("hooks about tasks", ABOUT_NODES, hooks_about_tasks)
                self._listed = [self._hooks.bound(wire) for wire in wires]
            handle = TaskClass(self._tables, cls)
            found = self._found[cls] = any(self._minds(hook, handle) for hook in self._listed)
        return found

    def _minds(self, hook: Hook, cls: TaskClass) -> bool:
        if hook.concerns is None:
            return True
        return bool(self._hooks.guard(hook.plugin, hook.point.name, hook.concerns, cls))
