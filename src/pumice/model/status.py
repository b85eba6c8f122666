"""States of tasks and PodGroups. Source: Volcano TaskStatus."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class TaskStatus(IntEnum):
    """State of a task."""

    # Dense, so that a state indexes a column of counters. Volcano's values are bits.
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
    #: KAI's language alone: the pod should have gone long ago, so nothing may wait for its resources.
    STUCK = 10

    @property
    def label(self) -> str:
        """The name that users read, such as ``Pending``."""
        return "StuckInReleasing" if self is TaskStatus.STUCK else self.name.capitalize()


STATUS_COUNT = len(TaskStatus)

#: States in which a task holds resources of a node.
ALLOCATED_STATUSES = frozenset({TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED})
#: States in which a task can be a victim.
PREEMPTABLE_STATUSES = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})
COMPLETED_STATUSES = frozenset({TaskStatus.FAILED, TaskStatus.SUCCEEDED})


def status_of_pod(phase: str, *, node_name: str, deleting: bool) -> TaskStatus:
    """Return the state of a task by the fields of its pod. Source: Volcano ``getTaskStatus``."""
    if phase in ("Running", "Pending", ""):
        # A pod that is being deleted still holds its node until its containers have ended.
        if deleting:
            return TaskStatus.RELEASING
        if phase == "Running":
            return TaskStatus.RUNNING
        # An empty phase occurs before the API server's defaults are applied, for example in files.
        return TaskStatus.BOUND if node_name else TaskStatus.PENDING
    if phase == "Succeeded":
        return TaskStatus.SUCCEEDED
    if phase == "Failed":
        return TaskStatus.FAILED
    return TaskStatus.UNKNOWN


class PodGroupPhase(StrEnum):
    """Phase of a PodGroup. Source: Volcano PodGroupPhase."""

    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"
