"""Where a task and a pod group can be.

Source: the task states and their bit values are Volcano's (``TaskStatus``).
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class TaskStatus(IntEnum):
    """State of one task. The values are dense so that a state can index a counter column."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def label(self) -> str:
        """The name users see, as in ``Pending``."""
        return self.name.capitalize()


STATUS_COUNT = len(TaskStatus)

#: Resources are held on a node.
ALLOCATED_STATUSES = frozenset({TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED})
#: A victim may be chosen from these.
PREEMPTABLE_STATUSES = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})
COMPLETED_STATUSES = frozenset({TaskStatus.FAILED, TaskStatus.SUCCEEDED})


def status_of_pod(phase: str, *, node_name: str, deleting: bool) -> TaskStatus:
    """The task state that a pod's own fields stand for. Source: Volcano ``getTaskStatus``."""
    if phase in ("Running", "Pending", ""):
        if deleting:
            return TaskStatus.RELEASING
        if phase == "Running":
            return TaskStatus.RUNNING
        return TaskStatus.BOUND if node_name else TaskStatus.PENDING
    if phase == "Succeeded":
        return TaskStatus.SUCCEEDED
    if phase == "Failed":
        return TaskStatus.FAILED
    return TaskStatus.UNKNOWN


class PodGroupPhase(StrEnum):
    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"
