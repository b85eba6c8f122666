"""Pods that wait behind their queue's gate: it is taken off those that the queue may take on. Source: Volcano allocate,
scheduling gates of queue admission (spec 03 §2.6, 05 §13).

Whoever has a gate taken off is placed in a later cycle, when the API server says that it is gone. Volcano does this
where a feature gate of its scheduler is on; here a pod's annotation is all that it takes (decision 0020).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import AnyArray
from pumice.columns.rows import TaskRows
from pumice.columns.tasks import QUEUE_GATE_ONLY
from pumice.columns.views import Queue, Task
from pumice.framework.cycle.session import Session
from pumice.model.decisions import GateRemoval
from pumice.volcano import points


def gated_jobs(ssn: Session) -> frozenset[int]:
    """Rows of the jobs with pods that have nothing but the gate that their queue is asked to take off."""
    tasks = ssn.tables.tasks
    found = tasks.alive & tasks.asks_queue & (tasks.gate == QUEUE_GATE_ONLY) & (tasks.status == PENDING)
    return frozenset(tasks.job[found & (tasks.job >= 0)].tolist())


def take_gates_off(ssn: Session, job: int) -> None:
    """Take the gate off those pods of a job that its queue may take on, one after the other in task order. That stands
    whatever becomes of the job's turn."""
    tables = ssn.tables
    tasks, queue = tables.tasks, Queue(tables, int(tables.jobs.queue[job]))
    rows: AnyArray = tables.jobs.tasks[job]
    waits = tasks.asks_queue[rows] & (tasks.gate[rows] == QUEUE_GATE_ONLY) & (tasks.status[rows] == PENDING)
    for row in ssn.order.sorted_tasks(rows[waits & ~tasks.gate_off[rows]]).tolist():
        if ssn.ask(points.tasks_allowed, queue, TaskRows(tables, np.array([row]))).tasks:
            ssn.journal.put(tasks["gate_off"], row, True)
            ssn.ask(points.gate_taken_off, Task(tables, row))


def removals(ssn: Session) -> Iterator[GateRemoval]:
    """What the session takes off, in the order of rows."""
    tasks = ssn.tables.tasks
    for row in tasks.gate_off.nonzero()[0].tolist():
        yield GateRemoval(tasks.pods[row].key, tasks.pods[row].uid)
