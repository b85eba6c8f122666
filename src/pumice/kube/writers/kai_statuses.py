"""Statuses and annotations of KAI's objects in the API. Source: KAI's API types."""

from __future__ import annotations

from typing import Any

from pumice.model.instants import stamp
from pumice.model.queue import QueueUsage
from pumice.model.resources import EMPTY, Resource
from pumice.model.workloads.gang import (
    GROUP_RESOURCES,
    LAST_EVICTION_ANNOTATION,
    LAST_START_ANNOTATION,
    STALE_ANNOTATION,
    GangTimes,
    SchedulingCondition,
)
from pumice.model.workloads.podgroup import PodGroupStatus


def kai_group_status(status: PodGroupStatus) -> dict[str, Any]:
    """Return the status of a PodGroup, as far as a scheduler writes it, without counts of 0."""
    counts = {name: getattr(status, name) for name in ("pending", "running", "succeeded", "failed")}
    found: dict[str, Any] = {name: count for name, count in counts.items() if count}
    if status.scheduling:
        found["schedulingConditions"] = [_condition(each) for each in status.scheduling]
    if status.resources is not None:
        amounts = zip(GROUP_RESOURCES, status.resources, strict=True)
        found["resourcesStatus"] = {name: amount.to_list() for name, amount in amounts if amount != EMPTY}
    return found


def _condition(condition: SchedulingCondition) -> dict[str, Any]:
    found = {
        "type": condition.type,
        "status": condition.status,
        "nodePool": condition.node_pool,
        "reason": condition.reason,
        "message": condition.message,
        "reasons": [{"reason": reason, "message": message} for reason, message in condition.reasons],
        "transitionID": condition.transition_id,
        "lastTransitionTime": stamp(condition.last_transition) if condition.last_transition else "",
    }
    return {name: value for name, value in found.items() if value}


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
