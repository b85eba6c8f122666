"""Keep kube-scheduler's view of the cluster up to date with what a session does: ``nodes.view``, ``tasks.view_node``.

All writes go through the journal, so a rollback needs no code here. The view differs from the books: a pod that is
evicted leaves it at once, and a pipelined pod is in it like any other. Source: Volcano predicates' event handlers (pods
added to and removed from the NodeInfo of kube-scheduler's snapshot).
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
        # What one task of each class adds, so that a move is one addition per node.
        self._steps = ssn.tables.classes.steps
        self._view, self._view_node = ssn.tables.nodes["view"], ssn.tables.tasks["view_node"]
        # Tells readers that a plugin keeps the view up to date, and what one task adds to it.
        self._view.per_task = self._steps

    def enter(self, run: TaskRun) -> None:
        """Add tasks to the view on their nodes. Tasks that are in it stay where they are."""
        known = self._view_node.array[run.index]
        # Most runs contain no such task, and a maximum costs less than the mask.
        if (max(known.tolist()) if len(run) > 1 else known) >= 0:
            there = self._view_node.array[list(run.rows)] >= 0
            run = TaskRun.on_nodes(self._tables, run.rows, np.where(there, -1, run.nodes))
            if not run:
                return
        self._add(self._view, *run.by_node(self._steps))
        self._put(self._view_node, run.index, run.nodes if len(run) > 1 else run.nodes[0])

    def leave(self, rows: Sequence[int]) -> None:
        """Remove tasks that are in the view from it."""
        view_node = self._view_node.array
        where = [int(view_node[rows[0]])] if len(rows) == 1 else view_node[list(rows)].tolist()
        run = TaskRun.on_nodes(self._tables, rows, where)
        if run:
            nodes, amounts = run.by_node(self._steps)
            self._add(self._view, nodes, -amounts)
            self._put(self._view_node, run.index, -1)
