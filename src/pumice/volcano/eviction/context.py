"""Who asks for victims, and for what."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from pumice.columns.views import Job, Task


class EvictionKind(IntEnum):
    """Source: Volcano's unified eviction kinds."""

    UNKNOWN = 0
    GANG_PREEMPT = 1
    GANG_RECLAIM = 2
    TASK_PREEMPT = 3
    TASK_RECLAIM = 4


class EvictionContext(Struct, frozen=True):
    """``task`` is None for gang evictions; ``hypernode`` is the domain that is looked at, -1 none."""

    kind: EvictionKind
    job: Job
    task: Task | None = None
    hypernode: int = -1
