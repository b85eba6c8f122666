"""Statuses of Kubernetes' own PodGroups: one condition says whether the group has got its minimum.

Source: kubernetes/api ``scheduling``, conditions and reasons of PodGroup; kube-scheduler ``schedule_one_podgroup``.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pumice.model.instants import stamp
from pumice.model.resources import EMPTY
from pumice.model.workloads.native_group import INITIALLY_SCHEDULED
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus

SCHEDULED, UNSCHEDULABLE = "Scheduled", "Unschedulable"


def native_status(status: PodGroupStatus) -> dict[str, Any]:
    """Return the status as in the API. Every condition has all its fields, since Kubernetes requires them."""
    return {
        "conditions": [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "lastTransitionTime": stamp(each.last_transition),
            }
            for each in status.conditions
        ]
    }


def with_native_condition(group: PodGroup, wanted: PodGroupStatus, now: float) -> PodGroupStatus:
    """Return the status of a native PodGroup after a cycle that wants the status ``wanted`` in the policy's own words:
    the group's conditions, with the one about scheduling brought up to date. ``now``: seconds since the epoch."""
    assert group.native is not None
    conditions, type_ = group.status.conditions, group.native.condition
    old = next((each for each in conditions if each.type == type_), None)
    new = _condition(type_, wanted, now)
    # "Initially": it says that the group once had its minimum, and is not taken back.
    if new is None or (old is not None and old.type == INITIALLY_SCHEDULED and old.status == "True"):
        return PodGroupStatus(conditions=conditions)
    if old is None:
        return PodGroupStatus(conditions=(*conditions, new))
    if old.status == new.status:
        new = replace(new, last_transition=old.last_transition)
    return PodGroupStatus(conditions=tuple(new if each is old else each for each in conditions))


def _condition(type_: str, wanted: PodGroupStatus, now: float) -> PodGroupCondition | None:
    """Return the condition that follows from a policy's status, or None if the status says nothing about it."""
    if _has_minimum(wanted):
        return PodGroupCondition(type_, "True", SCHEDULED, last_transition=now)
    waits = unschedulable_message(wanted)
    return PodGroupCondition(type_, "False", UNSCHEDULABLE, waits, last_transition=now) if waits else None


def _has_minimum(wanted: PodGroupStatus) -> bool:
    # Volcano says it by the phase. KAI has no phase: a gang that holds something was placed with its minimum.
    held = wanted.resources.allocated if wanted.resources is not None else EMPTY
    return wanted.phase in ("Running", "Completed") or bool(wanted.running) or held != EMPTY


def unschedulable_message(status: PodGroupStatus) -> str:
    """Return why a group waits, in the words of the policy's language, or ""."""
    of_kai = (each.message for each in reversed(status.scheduling) if each.status == "True")
    of_volcano = (each.message for each in status.conditions if each.type == UNSCHEDULABLE)
    return next(of_kai, "") or next(of_volcano, "")
