"""Room that queues keep for pods whose gate they had taken off, until these are placed. Source: Volcano capacity, the
reserved tasks of the queue's gate (spec 04 §8.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.rows import TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.volcano.queues.admitted import fitting
from pumice.volcano.queues.tree import QueueTree


def asks_anybody(ssn: Session) -> bool:
    """Whether any pod waits, or has waited, behind its queue's gate."""
    tasks = ssn.tables.tasks
    return bool((tasks.alive & tasks.asks_queue).any())


class ReservedRoom:
    """``amount`` (Q, R): what is kept in a queue and those below it; ``kept`` (T,): for whom."""

    def __init__(self, ssn: Session, tree: QueueTree) -> None:
        self._ssn, self._tree = ssn, tree
        tables = ssn.tables
        tasks = tables.tasks
        kept = tasks.alive & tasks.asks_queue & (tasks.status == PENDING) & (tasks.gate == NO_GATE) & (tasks.job >= 0)
        kept[kept] = tables.jobs.queue[tasks.job[kept]] >= 0
        rows = kept.nonzero()[0]
        amount = np.zeros((len(tables.queues), len(tables.axis.names)))
        np.add.at(amount, tables.jobs.queue[tasks.job[rows]], tables.classes.req[tasks.cls[rows]])
        self.amount = ssn.column("capacity.kept_room", "queue", values=tree.summed_up(amount))
        self.kept = ssn.column("capacity.kept_for", "task", values=kept)

    def fitting(self, line: Sequence[int], tasks: TaskRows, room: F64) -> int:
        """How many of the first of some tasks there is room for in a queue and its ancestors (``line``), each with so
        much ``room`` (line, R), less what is kept for others: nobody stands in his own way."""
        left = (room - self.amount.array[line]).min(axis=0)
        for count, row in enumerate(tasks.rows.tolist()):
            req = Task(tasks.tables, row).req
            kept = bool(self.kept.array[row])
            if not fitting(TaskRows(tasks.tables, tasks.rows[count : count + 1]), left + req if kept else left):
                return count
            if not kept:
                left = left - req
        return len(tasks)

    def keep(self, task: Task) -> None:
        """The gate of a task is taken off."""
        self._change([task.row], task.queue.row, 1.0)

    def placed(self, run: TaskRun) -> None:
        """Tasks are placed: what they hold is counted elsewhere from now on."""
        self._change([row for row in run.rows if self.kept.array[row]], run.queue, -1.0)

    def left(self, run: TaskRun) -> None:
        """Tasks are on no node any more. Room is kept anew for those that wait again."""
        tasks = self._ssn.tables.tasks
        again = [row for row in run.rows if tasks.asks_queue[row] and tasks.status[row] == PENDING]
        self._change(again, run.queue, 1.0)

    def _change(self, rows: Sequence[int], queue: int, sign: float) -> None:
        if not rows or queue < 0:
            return
        index: AnyArray = np.array(rows)
        tables = self._ssn.tables
        total = tables.classes.req[tables.tasks.cls[index]].sum(axis=0)
        self._ssn.journal.add(self.amount, self._tree.line(queue), sign * total)
        self._ssn.journal.put(self.kept, index, sign > 0)
