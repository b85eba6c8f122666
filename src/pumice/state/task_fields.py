"""The fields of a task that follow from its pod alone. Source: Volcano NewTaskInfo."""

from __future__ import annotations

from pumice.columns.tables import Tables
from pumice.columns.tasks import GATED, NO_GATE, QUEUE_GATE_ONLY
from pumice.model.pod import PREEMPTABLE_KEY, QUEUE_GATE, TASK_PRIORITY_ANNOTATION, Pod

_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_INT32 = 2**31


def fill_task(tables: Tables, row: int, pod: Pod) -> None:
    """Write the fixed columns of a new task; its class is written already."""
    tasks = tables.tasks
    tasks.role[row] = tables.roles.number(pod.role)
    tasks.priority[row] = task_priority(pod)
    tasks.creation[row] = pod.creation
    tasks.gate[row] = gate_of(pod)
    tasks.best_effort[row] = tables.classes.best_effort[tasks.cls[row]]
    mark = pod.annotations.get(PREEMPTABLE_KEY, pod.labels.get(PREEMPTABLE_KEY))
    tasks.preemptable[row] = mark is None or mark in _TRUE


def task_priority(pod: Pod) -> int:
    """1 unless the pod says otherwise; an unreadable annotation is ignored."""
    text = pod.annotations.get(TASK_PRIORITY_ANNOTATION)
    if text is not None:
        try:
            value = int(text)
        except ValueError:
            value = _INT32
        if -_INT32 <= value < _INT32:
            return value
    return 1 if pod.spec.priority is None else pod.spec.priority


def gate_of(pod: Pod) -> int:
    """Whether scheduling gates hold the pod: none, Volcano's queue gate alone, or others."""
    if not pod.gates:
        return NO_GATE
    return QUEUE_GATE_ONLY if pod.gates == (QUEUE_GATE,) else GATED
