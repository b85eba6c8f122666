"""Write the statuses of PodGroups as in the API: the same for what is sent to a server and for what a dump has.

Empty fields are left out, but for conditions of Kubernetes' own groups, of which the API wants every field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.model.instants import stamp
from pumice.model.manifest.reading.fields import Obj
from pumice.model.resources import EMPTY
from pumice.model.workloads.gang import GROUP_RESOURCES, SchedulingCondition
from pumice.model.workloads.native_group import GroupClaim
from pumice.model.workloads.podgroup import PodGroupCondition, PodGroupStatus


def volcano_group_status(status: PodGroupStatus) -> Obj:
    """Return the status of a PodGroup of Volcano, without counts of 0."""
    found: Obj = {"phase": status.phase}
    if status.conditions:
        found["conditions"] = [_filled(_condition(each)) for each in status.conditions]
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    return found | _filled(counts)


def kai_group_status(status: PodGroupStatus) -> Obj:
    """Return the status of a PodGroup of KAI, as far as a scheduler writes it, without counts of 0."""
    found = _filled({name: getattr(status, name) for name in ("pending", "running", "succeeded", "failed")})
    if status.scheduling:
        found["schedulingConditions"] = [_filled(_scheduling_condition(each)) for each in status.scheduling]
    if status.resources is not None:
        amounts = zip(GROUP_RESOURCES, status.resources, strict=True)
        found["resourcesStatus"] = {name: amount.to_list() for name, amount in amounts if amount != EMPTY}
    return found


def native_group_status(conditions: Iterable[PodGroupCondition], claims: Sequence[GroupClaim] = ()) -> Obj:
    """Return the status of a PodGroup or CompositePodGroup of Kubernetes. ``claims``: those that its pods share."""
    made = [{"name": each.entry, "resourceClaimName": each.made} for each in claims if each.made]
    return _filled({"conditions": [_native_condition(each) for each in conditions], "resourceClaimStatuses": made})


def _condition(condition: PodGroupCondition) -> Obj:
    return {**_common(condition), "transitionID": condition.transition_id, **_transition(condition)}


def _native_condition(condition: PodGroupCondition) -> Obj:
    when = {**_transition(condition), "observedGeneration": condition.observed_generation}
    return _common(condition) | _filled(when)


def _scheduling_condition(condition: SchedulingCondition) -> Obj:
    return {
        **_common(condition),
        "nodePool": condition.node_pool,
        "reasons": [{"reason": reason, "message": message} for reason, message in condition.reasons],
        "transitionID": condition.transition_id,
        **_transition(condition),
    }


def _common(condition: PodGroupCondition | SchedulingCondition) -> Obj:
    """Return what every condition has."""
    return {name: getattr(condition, name) for name in ("type", "status", "reason", "message")}


def _transition(condition: PodGroupCondition | SchedulingCondition) -> Obj:
    at = condition.last_transition
    return {"lastTransitionTime": stamp(at) if at else ""}


def _filled(fields: Obj) -> Obj:
    """Return the fields that are not empty."""
    return {name: value for name, value in fields.items() if value}
