"""Keeps the cluster as kube-scheduler's plugins see it in step with what a session does: ``nodes.view`` and
``tasks.view_node``.

Every write goes through the journal, so a rollback needs nothing here. The view differs from the books: a pod that is
evicted leaves it at once, and a pod that is promised resources is in it like any other.
Source: Volcano predicates' event handlers (pods added to and removed from the NodeInfo of kube-scheduler's snapshot).
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.columns.ledger import Tally, tally
from pumice.columns.rows import TaskRun
from pumice.framework.session import Session


class View:
    """Moves tasks of one class into and out of the view."""

    __slots__ = ("_add", "_put", "_steps", "_tables")

    def __init__(self, ssn: Session) -> None:
        self._tables = ssn.tables
        self._put, self._add = ssn.journal.put, ssn.journal.add
        self._steps = ssn.tables.classes.steps
        ssn.tables.nodes.view_follows = True

    def enter(self, run: TaskRun) -> None:
        """Tasks that are not in the view appear on their nodes; others stay where they are."""
        view_node = self._tables.tasks.view_node
        if len(run) == 1:
            if view_node[run.rows[0]] < 0:
                self._move_one(run.rows[0], run.nodes[0], run.nodes[0], 1.0)
            return
        present = [view_node[row] >= 0 for row in run.rows]
        if any(present):
            new = [(row, node) for row, node, there in zip(run.rows, run.nodes, present, strict=True) if not there]
            run = TaskRun(self._tables, [row for row, _ in new], [node for _, node in new])
        if len(run):
            self._move(run.rows, run.tally, 1.0)
            self._put(view_node, run.rows, run.nodes)

    def leave(self, rows: Sequence[int]) -> None:
        """Tasks that are in the view leave it."""
        view_node = self._tables.tasks.view_node
        if len(rows) == 1:
            node = int(view_node[rows[0]])
            if node >= 0:
                self._move_one(rows[0], node, -1, -1.0)
            return
        present = [row for row in rows if view_node[row] >= 0]
        if present:
            self._move(present, tally(view_node[present].tolist()), -1.0)
            self._put(view_node, present, -1)

    def _move_one(self, row: int, node: int, now: int, sign: float) -> None:
        view = self._tables.nodes.view
        self._add(view, node, sign * self._steps[self._tables.tasks.cls[row]])
        self._put(self._tables.tasks.view_node, row, now)

    def _move(self, rows: Sequence[int], nodes: Tally, sign: float) -> None:
        step = self._steps[self._tables.tasks.cls[rows[0]]]
        self._add(self._tables.nodes.view, nodes.where, nodes.of_each(step if sign > 0 else -step))
