"""Describe who asks for victims."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from pumice.columns.views import Job, Task


# The numbers are Volcano's. Only the gang actions ask with a context so far.
class EvictionKind(IntEnum):
    """Kinds of evictions. Source: Volcano unified evictable functions."""

    UNKNOWN = 0
    GANG_PREEMPT = 1
    GANG_RECLAIM = 2
    TASK_PREEMPT = 3
    TASK_RECLAIM = 4


# One value and not four arguments, so that a plugin need not change when Volcano adds a kind of eviction.
class EvictionContext(Struct, frozen=True):
    """The request for victims. ``task`` is None for gang evictions; ``hypernode`` is the domain in question, -1 for
    none."""

    kind: EvictionKind
    job: Job
    task: Task | None = None
    hypernode: int = -1
