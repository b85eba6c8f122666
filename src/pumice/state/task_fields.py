"""The fields of a task that follow from its pod alone. Source: Volcano NewTaskInfo."""

from __future__ import annotations

from pumice.columns.tasks import GATED, NO_GATE, QUEUE_GATE_ONLY
from pumice.model.pod import PREEMPTABLE_KEY, QUEUE_GATE, TASK_PRIORITY_ANNOTATION, Pod, is_true

_INT32 = 2**31


def task_fields(pod: Pod) -> tuple[int, int, bool, bool]:
    """Its priority, its gate, whether it asks its queue to take that off, and whether it is preemptable."""
    mark = pod.annotations.get(PREEMPTABLE_KEY, pod.labels.get(PREEMPTABLE_KEY))
    may_go = (mark is None or is_true(mark)) and not pod.stays
    return task_priority(pod), gate_of(pod), pod.annotations.get(QUEUE_GATE) == "true", may_go


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
