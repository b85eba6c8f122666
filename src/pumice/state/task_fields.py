"""The fields of a task that depend on its pod alone. Source: Volcano ``NewTaskInfo``."""

from __future__ import annotations

from pumice.columns.tasks import GATED, NO_GATE, QUEUE_GATE_ONLY
from pumice.model.pod import PREEMPTABLE_KEY, QUEUE_GATE, TASK_PRIORITY_ANNOTATION, Pod, is_true

_INT32 = 2**31


def task_fields(pod: Pod) -> tuple[int, int, bool, bool]:
    """Return the priority, the gate, whether the queue removes the gate, and whether the task is preemptable."""
    # The annotation goes before the label; a pod with neither is preemptable.
    mark = pod.annotations.get(PREEMPTABLE_KEY, pod.labels.get(PREEMPTABLE_KEY))
    may_go = (mark is None or is_true(mark)) and not pod.stays
    return task_priority(pod), gate_of(pod), pod.annotations.get(QUEUE_GATE) == "true", may_go


def task_priority(pod: Pod) -> int:
    """Return the priority of a task within its job: the annotation's, else the pod's, else 1.

    An annotation that is not a 32-bit number is ignored, as in Volcano.
    """
    text = pod.annotations.get(TASK_PRIORITY_ANNOTATION)
    if text is not None:
        try:
            value = int(text)
        except ValueError:
            value = _INT32  # out of range, so ignored below
        if -_INT32 <= value < _INT32:
            return value
    return 1 if pod.spec.priority is None else pod.spec.priority


def gate_of(pod: Pod) -> int:
    """Return which scheduling gates the pod has: none, Volcano's queue gate alone, or others."""
    if not pod.gates:
        return NO_GATE
    return QUEUE_GATE_ONLY if pod.gates == (QUEUE_GATE,) else GATED
