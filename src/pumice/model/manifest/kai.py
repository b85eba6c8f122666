"""Decode KAI's kinds: Queue, PodGroup, Topology, BindRequest. Source: KAI's API types."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pumice.model.bind_request import REGULAR, BindRequest
from pumice.model.instants import epoch_of
from pumice.model.manifest.pods import namespace_of
from pumice.model.manifest.reading.fields import (
    FieldError,
    Obj,
    amount,
    at,
    flag,
    instant,
    maybe_resource,
    maybe_table,
    maybe_whole,
    name,
    short_text,
    shown,
    table,
    tables,
    text,
    text_map,
    texts,
    whole,
    wrong,
)
from pumice.model.quantity import DurationError, parse_duration
from pumice.model.queue import Queue, QueueSharing, QueueUsage, Quota
from pumice.model.resources import EMPTY
from pumice.model.topology import Topology
from pumice.model.workloads.gang import (
    GROUP_RESOURCES,
    LAST_EVICTION_ANNOTATION,
    LAST_START_ANNOTATION,
    NON_PREEMPTIBLE,
    PREEMPTIBLE,
    STALE_ANNOTATION,
    SUB_GROUPS_MAX,
    Gang,
    GangTimes,
    GroupResources,
    SchedulingCondition,
    SubGroup,
    TopologyConstraint,
    gang_at,
    tree_problem,
)
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus

DEFAULT_QUEUE_PRIORITY = 100
#: Levels of one Topology. Bounded, because each is a column over all nodes.
LEVELS_MAX = 16
#: Groups of shared devices in one BindRequest.
GPU_GROUPS_MAX = 1024

#: Conditions of one PodGroup (one per node pool) and reasons of each that are read. The newest count.
CONDITIONS_MAX = 64

_AMOUNT_MAX = 1e12
_UNLIMITED = -1.0
_STAMP_MAX = 40


# -- Queue


def read_kai_queue(obj: Obj) -> Queue:
    """Return a queue. The API has milli-cores, 10^6 bytes and devices; -1 is unlimited, and the default is 0."""
    metadata, spec, status = table(obj, "metadata", ""), table(obj, "spec", ""), table(obj, "status", "")
    resources, path = table(spec, "resources", "spec"), "spec.resources"
    return Queue(
        name=name(metadata, "name", "metadata"),
        priority=whole(spec, "priority", "spec", DEFAULT_QUEUE_PRIORITY),
        parent=short_text(spec, "parentQueue", "spec"),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        annotations=text_map(metadata, "annotations", "metadata"),
        labels=text_map(metadata, "labels", "metadata"),
        uid=text(metadata, "uid", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        allocated=maybe_resource(status, "allocated", "status"),
        usage=_usage(status),
        sharing=QueueSharing(
            cpu=_quota(resources, "cpu", path, 1.0),
            memory=_quota(resources, "memory", path, 1e6),
            gpu=_quota(resources, "gpu", path, 1e3),
            preempt_min_runtime=_runtime(spec, "preemptMinRuntime"),
            reclaim_min_runtime=_runtime(spec, "reclaimMinRuntime"),
            display_name=short_text(spec, "displayName", "spec"),
        ),
    )


def _usage(status: Obj) -> QueueUsage | None:
    """Return the status of a queue, or None if it was never written."""
    # None and not an empty status: an empty one would look as if every queue had to be written anew.
    if not status.keys() & {"allocatedNonPreemptible", "requested", "childQueues"}:
        return None
    fast, asked = (maybe_resource(status, key, "status") or EMPTY for key in ("allocatedNonPreemptible", "requested"))
    return QueueUsage(fast, asked, texts(status, "childQueues", "status"))


def _quota(resources: Obj, key: str, path: str, unit: float) -> Quota:
    found, path = table(resources, key, path), at(path, key)
    # A missing field is 0 in KAI, not unlimited, so that a new queue takes nothing from others.
    own, limit, weight = (
        amount(found, field, path, 0.0, 0.0, _AMOUNT_MAX, or_else=_UNLIMITED)
        for field in ("quota", "limit", "overQuotaWeight")
    )
    return Quota(_in_units(own, unit), _in_units(limit, unit), weight)


def _in_units(value: float, unit: float) -> float | None:
    return None if value == _UNLIMITED else value * unit


def _runtime(spec: Obj, key: str) -> float | None:
    """Return seconds, 0 or more, or None if the field is absent."""
    seconds = _duration(spec, key)
    if seconds is not None and seconds < 0:
        raise wrong(spec, key, "spec", "a duration of 0 or more")
    return seconds


def _duration(spec: Obj, key: str) -> float | None:
    """Return seconds, or None if the field is absent. Source: Kubernetes' metav1.Duration."""
    if spec.get(key) is None:
        return None
    try:
        return parse_duration(text(spec, key, "spec"))
    except DurationError as error:
        raise wrong(spec, key, "spec", f"a duration ({error})") from None


# -- PodGroup


def read_kai_pod_group(obj: Obj, default_queue: str) -> PodGroup:
    metadata, spec, status = table(obj, "metadata", ""), table(obj, "spec", ""), table(obj, "status", "")
    own_name, namespace = name(metadata, "name", "metadata"), namespace_of(metadata)
    annotations = text_map(metadata, "annotations", "metadata")
    return PodGroup(
        namespace=namespace,
        name=own_name,
        uid=text(metadata, "uid", "metadata") or f"{namespace}/{own_name}",
        queue=short_text(spec, "queue", "spec", default_queue),
        min_member=whole(spec, "minMember", "spec", 1, 0),
        priority_class_name=short_text(spec, "priorityClassName", "spec"),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        labels=text_map(metadata, "labels", "metadata"),
        annotations=annotations,
        status=_group_status(status),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        gang=gang_at(_gang(spec), times_of(annotations)),
    )


def times_of(annotations: Mapping[str, str]) -> GangTimes:
    """Return the times that a scheduler noted in a PodGroup's annotations."""
    return GangTimes(
        last_start=_stamp(annotations.get(LAST_START_ANNOTATION)),
        stale_since=_stamp(annotations.get(STALE_ANNOTATION)),
        last_eviction=_stamp(annotations.get(LAST_EVICTION_ANNOTATION)),
    )


def _group_status(status: Obj) -> PodGroupStatus:
    # Cut and not refused: a status that grew too long must not make the whole group unreadable.
    listed = tables(status, "schedulingConditions", "status")[-CONDITIONS_MAX:]
    return PodGroupStatus(
        # Any text: a phase that is unknown here must not make the group unreadable.
        phase=text(status, "phase", "status") or "Pending",
        running=whole(status, "running", "status", 0, 0),
        succeeded=whole(status, "succeeded", "status", 0, 0),
        failed=whole(status, "failed", "status", 0, 0),
        pending=whole(status, "pending", "status", 0, 0),
        scheduling=tuple(_condition(item, "status.schedulingConditions") for item in listed),
        resources=_group_resources(status),
    )


def _group_resources(status: Obj) -> GroupResources | None:
    """Return the amounts in a status, or None if they were never written."""
    if not status.get("resourcesStatus"):
        return None
    written, path = table(status, "resourcesStatus", "status"), "status.resourcesStatus"
    return GroupResources(*(maybe_resource(written, key, path) or EMPTY for key in GROUP_RESOURCES))


def _condition(item: Obj, path: str) -> SchedulingCondition:
    # The first ones: unlike conditions, reasons do not grow with time.
    reasons = tables(item, "reasons", path)[:CONDITIONS_MAX]
    return SchedulingCondition(
        node_pool=text(item, "nodePool", path),
        message=text(item, "message", path),
        reasons=tuple((text(each, "reason", path), text(each, "message", path)) for each in reasons),
        transition_id=text(item, "transitionID", path),
        last_transition=instant(item, "lastTransitionTime", path) or 0.0,
        reason=text(item, "reason", path),
        type=text(item, "type", path),
        status=text(item, "status", path),
    )


def _gang(spec: Obj) -> Gang:
    return Gang(
        sub_groups=_sub_groups(spec),
        topology=_constraint(spec, "spec"),
        min_sub_group=maybe_whole(spec, "minSubGroup", "spec", 0, SUB_GROUPS_MAX),
        preemptibility=_preemptibility(spec),
        mark_unschedulable=flag(spec, "markUnschedulable", "spec", True),
        # -1 means that the group is tried in every cycle.
        scheduling_backoff=whole(spec, "schedulingBackoff", "spec", -1, -1),
        staleness_grace=_duration(spec, "stalenessGracePeriod"),
        # A negative delay is none. Refused, it would make the group unreadable for a field that only postpones.
        preemption_delay=max(_duration(spec, "preemptionDelay") or 0.0, 0.0),
    )


def _sub_groups(spec: Obj) -> tuple[SubGroup, ...]:
    # Checked before the tree is built, whose cost grows with their number.
    listed = tables(spec, "subGroups", "spec")
    if len(listed) > SUB_GROUPS_MAX:
        raise FieldError("spec.subGroups", f"{len(listed)} sub-groups", f"at most {SUB_GROUPS_MAX}")
    found = [_sub_group(item, f"spec.subGroups[{i}]") for i, item in enumerate(listed)]
    # KAI's webhook checks this too, but a file has not passed it.
    problem = tree_problem(found)
    if problem is not None:
        place, what, wanted = problem
        raise FieldError(f"spec.subGroups[{place}]", what, wanted)
    return tuple(found)


def _sub_group(item: Obj, path: str) -> SubGroup:
    """Return a sub-group. Names are in lower case, in which KAI compares them with those of parents."""
    return SubGroup(
        name=name(item, "name", path).lower(),
        min_member=whole(item, "minMember", path, 0, 0),
        parent=short_text(item, "parent", path).lower(),
        topology=_constraint(item, path),
        min_sub_group=maybe_whole(item, "minSubGroup", path, 0, SUB_GROUPS_MAX),
    )


def _constraint(owner: Obj, path: str) -> TopologyConstraint | None:
    """Return a topology constraint, or None. In KAI, a constraint without a topology or without levels has no
    effect."""
    found, path = maybe_table(owner, "topologyConstraint", path), at(path, "topologyConstraint")
    if found is None:
        return None
    required, preferred = (short_text(found, key, path) for key in ("requiredTopologyLevel", "preferredTopologyLevel"))
    topology = short_text(found, "topology", path)
    # Before the topology is checked: a constraint without levels restricts nothing.
    if not (required or preferred):
        return None
    if not topology:
        raise wrong(found, "topology", path, "the name of a Topology")
    return TopologyConstraint(topology, required, preferred)


def _preemptibility(spec: Obj) -> str:
    value = text(spec, "preemptibility", "spec").lower()
    if value not in ("", PREEMPTIBLE, NON_PREEMPTIBLE):
        raise wrong(spec, "preemptibility", "spec", f"{PREEMPTIBLE} or {NON_PREEMPTIBLE}")
    return value


def _stamp(value: str | None) -> float | None:
    """Return a time that a scheduler noted, or None if it is unreadable."""
    # None and no error: schedulers write these annotations, and a gang must not wait because one of them is damaged.
    return epoch_of(value) if value and len(value) <= _STAMP_MAX else None


# -- Topology


def read_topology(obj: Obj) -> Topology:
    metadata, spec = table(obj, "metadata", ""), table(obj, "spec", "")
    listed = tables(spec, "levels", "spec")
    if len(listed) > LEVELS_MAX:
        raise FieldError("spec.levels", f"{len(listed)} levels", f"at most {LEVELS_MAX}")
    levels = tuple(_level(item, f"spec.levels[{i}]") for i, item in enumerate(listed))
    # A level that is listed twice divides no domain any further.
    for i, level in enumerate(levels):
        if level in levels[:i]:
            raise FieldError(f"spec.levels[{i}].nodeLabel", shown(level), "labels that differ")
    return Topology(
        aliases=_aliases(listed, levels),
        name=name(metadata, "name", "metadata"),
        levels=levels,
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def _aliases(listed: list[Obj], levels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the alias of each level, or nothing if no level has one."""
    found = tuple(short_text(item, "alias", f"spec.levels[{i}]") for i, item in enumerate(listed))
    for i, alias in enumerate(found):
        # An alias that is also another name would make a constraint mean two levels.
        if alias and (alias in found[:i] or alias in levels):
            raise FieldError(f"spec.levels[{i}].alias", shown(alias), "a name that no other level and no label has")
    return found if any(found) else ()


def _level(item: Obj, path: str) -> str:
    label = short_text(item, "nodeLabel", path)
    if not label:
        raise wrong(item, "nodeLabel", path, "a string that is not empty")
    return label


# -- BindRequest


def read_bind_request(obj: Obj) -> BindRequest:
    metadata, spec, status = table(obj, "metadata", ""), table(obj, "spec", ""), table(obj, "status", "")
    received = table(spec, "receivedGPU", "spec")
    # Bounded, since the object comes from the API and every group becomes an entry of a ledger.
    groups = texts(spec, "selectedGPUGroups", "spec")
    if len(groups) > GPU_GROUPS_MAX:
        raise FieldError("spec.selectedGPUGroups", f"{len(groups)} groups", f"at most {GPU_GROUPS_MAX}")
    return BindRequest(
        namespace=namespace_of(metadata),
        name=name(metadata, "name", "metadata"),
        pod=short_text(spec, "podName", "spec"),
        node=short_text(spec, "selectedNode", "spec"),
        received_type=short_text(spec, "receivedResourceType", "spec", REGULAR),
        gpu_count=whole(received, "count", "spec.receivedGPU", 0, 0),
        # A text in KAI's API as well, so that what is written is equal to what was read.
        gpu_portion=short_text(received, "portion", "spec.receivedGPU"),
        gpu_groups=groups,
        backoff_limit=maybe_whole(spec, "backoffLimit", "spec", 0),
        phase=text(status, "phase", "status"),
        reason=text(status, "reason", "status"),
        failed_attempts=whole(status, "failedAttempts", "status", 0, 0),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        resource_version=text(metadata, "resourceVersion", "metadata"),
        uid=text(metadata, "uid", "metadata"),
        pod_uid=_owning_pod(metadata),
        numa_zones=_numa_zones(spec),
    )


def _numa_zones(spec: Obj) -> str:
    zones = tables(spec, "predictedNUMAZones", "spec")
    # As a text, since values must be hashable.
    return json.dumps(zones, separators=(",", ":")) if zones else ""


def _owning_pod(metadata: Obj) -> str:
    # The pod's UID is only there as an owner; the spec has just its name.
    owners = tables(metadata, "ownerReferences", "metadata")
    return next((text(each, "uid", "metadata") for each in owners if each.get("kind") == "Pod"), "")
