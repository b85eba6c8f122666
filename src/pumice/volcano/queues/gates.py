"""Remove the scheduling gate of pods that wait for their queue's admission. Source: Volcano allocate action,
scheduling gates of queue admission.

A pod whose gate is removed is placed in a later cycle, after the API server has confirmed it. In Volcano this needs a
feature gate of the scheduler. Here the annotation of the pod suffices (decision 0019).
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
from pumice.framework.memo import ground
from pumice.model.decisions import GateRemoval
from pumice.volcano import points


# Found once and for all jobs, so that allocate does nothing for the others, which are nearly all.
def gated_jobs(ssn: Session) -> frozenset[int]:
    """Return the rows of jobs with pods whose only gate is the one that the queue may remove."""
    columns = [ssn.tables.tasks[name] for name in ("alive", "asks_queue", "gate", "status", "job")]
    return ssn.memo.get("jobs with gated pods", ground(*columns), lambda: _gated_jobs(ssn))


def _gated_jobs(ssn: Session) -> frozenset[int]:
    """Look for them among all tasks."""
    tasks = ssn.tables.tasks
    found = tasks.alive & tasks.asks_queue & (tasks.gate == QUEUE_GATE_ONLY) & (tasks.status == PENDING)
    return frozenset(tasks.job[found & (tasks.job >= 0)].tolist())


def take_gates_off(ssn: Session, job: int) -> None:
    """Remove the gate of those pods of a job that its queue may take, one after the other in task order."""
    tables = ssn.tables
    tasks, queue = tables.tasks, Queue(tables, int(tables.jobs.queue[job]))
    rows: AnyArray = tables.jobs.tasks[job]
    waits = tasks.asks_queue[rows] & (tasks.gate[rows] == QUEUE_GATE_ONLY) & (tasks.status[rows] == PENDING)
    # In task order and one by one, because each removal reserves room that later tasks then lack.
    for row in ssn.order.sorted_tasks(rows[waits & ~tasks.gate_off[rows]]).tolist():
        if ssn.ask(points.tasks_allowed, queue, TaskRows(tables, np.array([row]))).tasks:
            # Written outside of any statement: it stays even if the job is not placed afterwards.
            ssn.journal.put(tasks["gate_off"], row, True)
            ssn.ask(points.gate_taken_off, Task(tables, row))


def removals(ssn: Session) -> Iterator[GateRemoval]:
    """Yield the gates that the session removes, in row order."""
    tasks = ssn.tables.tasks
    for row in tasks.gate_off.nonzero()[0].tolist():
        yield GateRemoval(tasks.pods[row].key, tasks.pods[row].uid)
