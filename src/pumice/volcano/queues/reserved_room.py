"""Reserve room in queues for pods whose gate was removed, until they are placed. Source: Volcano capacity plugin,
reserved tasks of the queue gate.
"""

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


def has_gated_pods(ssn: Session) -> bool:
    """Return True if any pod waits, or has waited, behind its queue's gate."""
    tasks = ssn.tables.tasks
    # A cluster without the annotation needs neither the columns nor the sums.
    return bool((tasks.alive & tasks.asks_queue).any())


class ReservedRoom:
    """Reservations. ``amount`` (Q, R): reserved in a queue and the queues below it. ``kept`` (T,): tasks with a
    reservation."""

    def __init__(self, ssn: Session, tree: QueueTree) -> None:
        self._ssn, self._tree = ssn, tree
        tables = ssn.tables
        tasks = tables.tasks
        # The gate is gone and the pod is still pending: its removal was confirmed in an earlier cycle.
        kept = tasks.alive & tasks.asks_queue & (tasks.status == PENDING) & (tasks.gate == NO_GATE) & (tasks.job >= 0)
        kept[kept] = tables.jobs.queue[tasks.job[kept]] >= 0
        rows = kept.nonzero()[0]
        amount = np.zeros((len(tables.queues), len(tables.axis.names)))
        np.add.at(amount, tables.jobs.queue[tasks.job[rows]], tables.classes.req[tasks.cls[rows]])
        self.amount = ssn.column("capacity.kept_room", "queue", values=tree.summed_up(amount))
        self.kept = ssn.column("capacity.kept_for", "task", values=kept)

    def fitting(self, line: Sequence[int], tasks: TaskRows, room: F64) -> int:
        """Return how many of the first tasks fit in a queue and its ancestors, less what is reserved for other tasks.

        ``line``: the queue and its ancestors. ``room`` (line, R): what each may still take.
        """
        # The tightest of the queue and its ancestors decides in each dimension.
        left = (room - self.amount.array[line]).min(axis=0)
        for count, row in enumerate(tasks.rows.tolist()):
            req = Task(tasks.tables, row).req
            # A task's own reservation does not count against it.
            kept = bool(self.kept.array[row])
            if not fitting(TaskRows(tasks.tables, tasks.rows[count : count + 1]), left + req if kept else left):
                return count
            if not kept:
                left = left - req
        return len(tasks)

    def keep(self, task: Task) -> None:
        """Reserve room for a task whose gate is removed."""
        self._change([task.row], task.queue.row, 1.0)

    def placed(self, run: TaskRun) -> None:
        """Release the reservations of tasks that were placed, since what they hold is counted elsewhere."""
        self._change([row for row in run.rows if self.kept.array[row]], run.queue, -1.0)

    def left(self, run: TaskRun) -> None:
        """Reserve room again for tasks that are pending again."""
        tasks = self._ssn.tables.tasks
        again = [row for row in run.rows if tasks.asks_queue[row] and tasks.status[row] == PENDING]
        self._change(again, run.queue, 1.0)

    def _change(self, rows: Sequence[int], queue: int, sign: float) -> None:
        """Add to the reservations or remove from them."""
        if not rows or queue < 0:
            return
        index: AnyArray = np.array(rows)
        tables = self._ssn.tables
        total = tables.classes.req[tables.tasks.cls[index]].sum(axis=0)
        self._ssn.journal.add(self.amount, self._tree.line(queue), sign * total)
        self._ssn.journal.put(self.kept, index, sign > 0)
