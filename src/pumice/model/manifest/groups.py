"""Decode PodGroups, Queues, PriorityClasses and ResourceQuotas."""

from __future__ import annotations

from pumice.model.devices.shared_devices import counted_in_sums
from pumice.model.manifest.group_limits import group_limits
from pumice.model.manifest.pods import namespace_of
from pumice.model.manifest.reading.fields import (
    INT32_MAX,
    Obj,
    at,
    choice,
    flag,
    instant,
    maybe_resource,
    maybe_table,
    maybe_whole,
    name,
    quantities,
    short_text,
    table,
    tables,
    text,
    text_map,
    texts,
    whole,
    wrong,
)
from pumice.model.manifest.terms import maybe_label_selector
from pumice.model.queue import NodeGroupAffinity, PriorityClass, Queue, ResourceQuota
from pumice.model.resources import Resource
from pumice.model.status import PodGroupPhase
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, PodGroupCondition, PodGroupStatus, SubGroupPolicy

_PHASES = tuple(PodGroupPhase)
_STATES = ("Open", "Closed", "Closing", "Unknown")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


# -- PodGroup


def read_pod_group(obj: Obj, default_queue: str) -> PodGroup:
    metadata = table(obj, "metadata", "")
    spec = table(obj, "spec", "")
    own_name = name(metadata, "name", "metadata")
    namespace = namespace_of(metadata)
    # None and empty differ: Volcano admits a group without minResources without asking its queue.
    minimum = maybe_resource(spec, "minResources", "spec")
    return PodGroup(
        namespace=namespace,
        name=own_name,
        # A file has no UIDs. The key is unique too, and as stable.
        uid=text(metadata, "uid", "metadata") or f"{namespace}/{own_name}",
        queue=short_text(spec, "queue", "spec", default_queue),
        # 0 is allowed, as in Volcano's CRD: such a group is always ready.
        min_member=whole(spec, "minMember", "spec", 0, 0),
        min_task_member=_counts(spec, "minTaskMember", "spec"),
        # Without amounts that are counted per card, since the sum over pods of such amounts means nothing.
        min_resources=None if minimum is None else counted_in_sums(minimum),
        priority_class_name=short_text(spec, "priorityClassName", "spec"),
        topology=maybe_topology(spec, "networkTopology", "spec"),
        sub_groups=tuple(
            _sub_group(item, f"spec.subGroupPolicy[{i}]")
            for i, item in enumerate(tables(spec, "subGroupPolicy", "spec"))
        ),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        labels=text_map(metadata, "labels", "metadata"),
        annotations=text_map(metadata, "annotations", "metadata"),
        status=_status(table(obj, "status", "")),
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def maybe_topology(obj: Obj, key: str, path: str) -> NetworkTopology | None:
    """Return a ``networkTopology``. The default mode is ``hard``, as in the CRD."""
    found = maybe_table(obj, key, path)
    if found is None:
        return None
    path = at(path, key)
    return NetworkTopology(
        choice(found, "mode", path, ("hard", "soft"), "hard"),
        # None and 0 differ: 0 is the lowest tier, and None leaves the bound to the name.
        maybe_whole(found, "highestTierAllowed", path, 0),
        short_text(found, "highestTierName", path),
    )


def _counts(obj: Obj, key: str, path: str) -> dict[str, int]:
    found = table(obj, key, path)
    # The keys are checked as well, because YAML accepts numbers and booleans as keys.
    for role in found:
        if type(role) is not str:
            raise wrong(obj, key, path, "keys that are strings")
    return {role: whole(found, role, at(path, key), 0, 0) for role in found}


def _sub_group(item: Obj, path: str) -> SubGroupPolicy:
    return SubGroupPolicy(
        name=short_text(item, "name", path),
        topology=maybe_topology(item, "networkTopology", path),
        sub_group_size=maybe_whole(item, "subGroupSize", path, 1),
        min_sub_groups=maybe_whole(item, "minSubGroups", path, 0),
        selector=maybe_label_selector(item, "labelSelector", path),
        match_label_keys=texts(item, "matchLabelKeys", path),
    )


def _status(status: Obj) -> PodGroupStatus:
    """Return the status. An empty phase is Pending, as in Volcano."""
    return PodGroupStatus(
        # A phase of another scheduler must not be taken for one of these, since it decides about admission.
        phase=choice(status, "phase", "status", _PHASES, "Pending"),
        conditions=tuple(
            _condition(item, f"status.conditions[{i}]") for i, item in enumerate(tables(status, "conditions", "status"))
        ),
        running=whole(status, "running", "status", 0, 0),
        succeeded=whole(status, "succeeded", "status", 0, 0),
        failed=whole(status, "failed", "status", 0, 0),
    )


def _condition(item: Obj, path: str) -> PodGroupCondition:
    return PodGroupCondition(
        type=text(item, "type", path),
        status=text(item, "status", path),
        reason=text(item, "reason", path),
        message=text(item, "message", path),
        transition_id=text(item, "transitionID", path),
        last_transition=instant(item, "lastTransitionTime", path) or 0.0,
    )


# -- Queue


def read_queue(obj: Obj) -> Queue:
    metadata = table(obj, "metadata", "")
    spec = table(obj, "spec", "")
    status = table(obj, "status", "")
    guarantee = table(spec, "guarantee", "spec")
    annotations = text_map(metadata, "annotations", "metadata")
    return Queue(
        name=name(metadata, "name", "metadata"),
        weight=whole(spec, "weight", "spec", 1, 0, 65_535) or 1,  # the webhook makes 1 of 0
        capability=maybe_resource(spec, "capability", "spec"),
        deserved=maybe_resource(spec, "deserved", "spec"),
        guarantee=maybe_resource(guarantee, "resource", "spec.guarantee"),
        reclaimable=flag(spec, "reclaimable", "spec", True),
        priority=whole(spec, "priority", "spec", 0, 0),
        parent=short_text(spec, "parent", "spec"),
        # Open by default: the state is written by a controller, and without one a queue would take nothing for ever.
        state=choice(status, "state", "status", _STATES, "Open"),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        annotations=annotations,
        labels=text_map(metadata, "labels", "metadata"),
        allocated=maybe_resource(status, "allocated", "status"),
        uid=text(metadata, "uid", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        affinity=_node_group_affinity(spec),
        group_limits=group_limits(annotations),
    )


def _node_group_affinity(spec: Obj) -> NodeGroupAffinity | None:
    found = maybe_table(spec, "affinity", "spec")
    if found is None:
        return None
    near, far = (table(found, key, "spec.affinity") for key in ("nodeGroupAffinity", "nodeGroupAntiAffinity"))
    near_path, far_path = "spec.affinity.nodeGroupAffinity", "spec.affinity.nodeGroupAntiAffinity"
    return NodeGroupAffinity(
        required=texts(near, _REQUIRED, near_path),
        preferred=texts(near, _PREFERRED, near_path),
        anti_required=texts(far, _REQUIRED, far_path),
        anti_preferred=texts(far, _PREFERRED, far_path),
    )


# -- PriorityClass, ResourceQuota


def read_priority_class(obj: Obj) -> PriorityClass:
    metadata = table(obj, "metadata", "")
    # Without a value every pod of the class would silently get priority 0.
    if "value" not in obj:
        raise wrong(obj, "value", "", f"an integer up to {INT32_MAX}")
    return PriorityClass(
        name=name(metadata, "name", "metadata"),
        value=whole(obj, "value", "", 0),
        global_default=flag(obj, "globalDefault", ""),
        preemption_policy=choice(obj, "preemptionPolicy", "", ("Never", "PreemptLowerPriority"), ""),
    )


def read_resource_quota(obj: Obj) -> ResourceQuota:
    metadata = table(obj, "metadata", "")
    spec = table(obj, "spec", "")
    status = table(obj, "status", "")
    # The status first: it is what the quota controller enforces now, and the spec may be newer.
    hard = _quota_amounts(status, "status", "hard") or _quota_amounts(spec, "spec", "hard")
    return ResourceQuota(
        namespace=namespace_of(metadata),
        name=name(metadata, "name", "metadata"),
        hard=Resource.from_list(hard),
        used=Resource.from_list(_quota_amounts(status, "status", "used")),
        # Beside the amounts, because a limit of 0 CPU looks like no limit there.
        limited=tuple(sorted(hard)),
    )


def _quota_amounts(obj: Obj, path: str, key: str) -> Obj:
    """Return the amounts of a quota. ``requests.cpu`` limits the same as ``cpu``; if both are given, the plain name
    counts."""
    found = quantities(obj, key, path) or {}
    trimmed = {k.removeprefix("requests."): amount for k, amount in found.items() if k.startswith("requests.")}
    return trimmed | {k: amount for k, amount in found.items() if not k.startswith("requests.")}
