"""Statuses and annotations of KAI's objects in the API. Source: KAI's API types."""

from __future__ import annotations

from typing import Any

from pumice.model.instants import stamp
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource
from pumice.model.workloads.gang import (
    LAST_EVICTION_ANNOTATION,
    LAST_START_ANNOTATION,
    STALE_ANNOTATION,
    GangTimes,
)


def kai_queue_status(allocated: Resource | None, usage: QueueUsage | None) -> dict[str, Any]:
    """Return the status of a Queue, without what was never written."""
    found: dict[str, Any] = {} if allocated is None else {"allocated": allocated.to_list()}
    if usage is not None:
        found |= {
            "allocatedNonPreemptible": usage.non_preemptible.to_list(),
            "requested": usage.requested.to_list(),
            "childQueues": list(usage.children),
        }
    return found


def time_annotations(times: GangTimes) -> dict[str, str | None]:
    """Return annotations of a PodGroup to be merged; None removes one."""
    each = {
        LAST_START_ANNOTATION: times.last_start,
        STALE_ANNOTATION: times.stale_since,
        LAST_EVICTION_ANNOTATION: times.last_eviction,
    }
    return {key: None if at is None else stamp(at) for key, at in each.items()}
