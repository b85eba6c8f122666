"""Keeps the cluster as kube-scheduler's plugins see it in step with what a session does: ``nodes.view`` and
``tasks.view_node``.

Every write goes through the journal, so a rollback needs nothing here. The view differs from the books: a pod that is
evicted leaves it at once, and a pod that is promised resources is in it like any other.
Source: Volcano predicates' event handlers (pods added to and removed from the NodeInfo of kube-scheduler's snapshot).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.runs import TaskRun
from pumice.framework.cycle.session import Session


class View:
    """Moves tasks into and out of the view."""

    __slots__ = ("_add", "_put", "_steps", "_tables", "_view", "_view_node")

    def __init__(self, ssn: Session) -> None:
        self._tables = ssn.tables
        self._put, self._add = ssn.journal.put, ssn.journal.add
        self._steps = ssn.tables.classes.steps
        self._view, self._view_node = ssn.tables.nodes["view"], ssn.tables.tasks["view_node"]
        self._view.per_task = self._steps

    def enter(self, run: TaskRun) -> None:
        """Tasks that are not in the view appear on their nodes; others stay where they are."""
        known = self._view_node.array[run.index]
        if (max(known.tolist()) if len(run) > 1 else known) >= 0:
            there = self._view_node.array[list(run.rows)] >= 0
            run = TaskRun.on_nodes(self._tables, run.rows, np.where(there, -1, run.nodes))
            if not run:
                return
        self._add(self._view, *run.by_node(self._steps))
        self._put(self._view_node, run.index, run.nodes if len(run) > 1 else run.nodes[0])

    def leave(self, rows: Sequence[int]) -> None:
        """Tasks that are in the view leave it."""
        view_node = self._view_node.array
        where = [int(view_node[rows[0]])] if len(rows) == 1 else view_node[list(rows)].tolist()
        run = TaskRun.on_nodes(self._tables, rows, where)
        if run:
            nodes, amounts = run.by_node(self._steps)
            self._add(self._view, nodes, -amounts)
            self._put(self._view_node, run.index, -1)
