"""Decode Kubernetes' own PodGroups and CompositePodGroups, and Workloads of v1alpha1. Source: kubernetes/api,
``scheduling/v1alpha1`` to v1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pumice.model.manifest.jobs import GROUP_QUEUE_ANNOTATION
from pumice.model.manifest.kai import times_of
from pumice.model.manifest.pods import namespace_of, plain_name
from pumice.model.manifest.reading.fields import (
    FieldError,
    Obj,
    at,
    choice,
    instant,
    maybe_table,
    name,
    short_text,
    shown,
    table,
    tables,
    text,
    text_map,
    whole,
    wrong,
)
from pumice.model.workloads.composite import COMPOSITE_PREFIX, CompositePodGroup
from pumice.model.workloads.gang import Gang, TopologyConstraint, gang_at
from pumice.model.workloads.native_group import (
    INITIALLY_SCHEDULED,
    SCHEDULED_IN_V1ALPHA2,
    GroupClaim,
    GroupRef,
    NativeGroup,
)
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.model.workloads.workload import POD_GROUPS_MAX, Workload, WorkloadPodGroup

#: Label with the queue, if the annotation of Volcano's is not there. Source: KAI.
QUEUE_LABEL = "kai.scheduler/queue"
#: Claims of a PodGroup. Source: kubernetes/api.
_CLAIMS_MAX = 4
#: Conditions that are read. Bounded, because a status has no limit of its own.
_CONDITIONS_MAX = 64


def read_native_pod_group(obj: Obj, api_version: str, default_queue: str) -> PodGroup:
    """Return a PodGroup of that version. Raises: FieldError."""
    metadata, spec, status = table(obj, "metadata", ""), table(obj, "spec", ""), table(obj, "status", "")
    own_name = name(metadata, "name", "metadata")
    is_gang, minimum = _policy(spec, "minCount")
    conditions, about = _conditions(status), _about(metadata, default_queue)
    return PodGroup(
        **about,
        name=own_name,
        uid=text(metadata, "uid", "metadata") or f"{about['namespace']}/{own_name}",
        # Of the gang, or 1: pods of a basic group are placed one by one, and each is enough for itself.
        min_member=minimum,
        priority_class_name=short_text(spec, "priorityClassName", "spec"),
        status=PodGroupStatus(phase="Running" if _is_scheduled(conditions) else "Pending", conditions=conditions),
        gang=gang_at(Gang(topology=_topology(spec)), times_of(about["annotations"])),
        native=NativeGroup(
            api_version=api_version,
            parent=short_text(spec, "parentCompositePodGroupName", "spec"),
            is_gang=is_gang,
            leaves_whole=_leaves_whole(spec),
            never_preempts=_never_preempts(spec),
            generation=whole(metadata, "generation", "metadata", 0, 0),
            claims=tuple(_claims(GroupRef(own_name, text(metadata, "uid", "metadata"), api_version), spec, status)),
        ),
    )


def _claims(group: GroupRef, spec: Obj, status: Obj) -> Iterator[GroupClaim]:
    """Yield the claims that the pods of a PodGroup share. Raises: FieldError."""
    made = {
        short_text(each, "name", where): short_text(each, "resourceClaimName", where)
        for i, each in enumerate(tables(status, "resourceClaimStatuses", "status"))
        for where in (f"status.resourceClaimStatuses[{i}]",)
    }
    listed = tables(spec, "resourceClaims", "spec")
    if len(listed) > _CLAIMS_MAX:
        raise FieldError("spec.resourceClaims", f"a list of {len(listed)}", f"at most {_CLAIMS_MAX}")
    for i, each in enumerate(listed):
        where = f"spec.resourceClaims[{i}]"
        entry = short_text(each, "name", where)
        own = short_text(each, "resourceClaimName", where)
        template = short_text(each, "resourceClaimTemplateName", where)
        if bool(own) == bool(template):
            raise FieldError(where, shown(each), "one of resourceClaimName and resourceClaimTemplateName")
        yield GroupClaim(group, entry, own or f"template/{template}", made.get(entry, ""))


def read_composite_pod_group(obj: Obj, api_version: str, default_queue: str) -> CompositePodGroup:
    """Return a CompositePodGroup of that version. Raises: FieldError."""
    metadata, spec, status = table(obj, "metadata", ""), table(obj, "spec", ""), table(obj, "status", "")
    own_name, about = name(metadata, "name", "metadata"), _about(metadata, default_queue)
    return CompositePodGroup(
        **about,
        name=own_name,
        uid=text(metadata, "uid", "metadata") or f"{about['namespace']}/{COMPOSITE_PREFIX}{own_name}",
        api_version=api_version,
        parent=short_text(spec, "parentCompositePodGroupName", "spec"),
        min_groups=_policy(spec, "minGroupCount")[1],
        topology=_topology(spec),
        leaves_whole=_leaves_whole(spec),
        never_preempts=_never_preempts(spec),
        priority_class_name=short_text(spec, "priorityClassName", "spec"),
        conditions=_conditions(status),
        generation=whole(metadata, "generation", "metadata", 0, 0),
    )


def read_workload(obj: Obj, default_queue: str) -> Workload:
    """Return a Workload of v1alpha1. Raises: FieldError."""
    metadata, spec = table(obj, "metadata", ""), table(obj, "spec", "")
    own_name, about = plain_name(metadata, "name", "metadata"), _about(metadata, default_queue)
    return Workload(
        **about,
        name=own_name,
        uid=text(metadata, "uid", "metadata") or f"{about['namespace']}/{own_name}",
        groups=_workload_groups(spec),
    )


def _about(metadata: Obj, default_queue: str) -> dict[str, Any]:
    """Return what metadata say of each kind. The API has no queues: an annotation or label names it, as on pods."""
    labels, annotations = text_map(metadata, "labels", "metadata"), text_map(metadata, "annotations", "metadata")
    return {
        "namespace": namespace_of(metadata),
        "queue": named_queue(labels, annotations) or default_queue,
        "creation": instant(metadata, "creationTimestamp", "metadata") or 0.0,
        "labels": labels,
        "annotations": annotations,
        "resource_version": text(metadata, "resourceVersion", "metadata"),
    }


def _workload_groups(spec: Obj) -> tuple[WorkloadPodGroup, ...]:
    listed = tables(spec, "podGroups", "spec")
    if len(listed) > POD_GROUPS_MAX:
        raise FieldError("spec.podGroups", f"a list of {len(listed)}", f"at most {POD_GROUPS_MAX}")
    # By name, since two pod groups of one name would leave it open which minimum its pods have.
    found: dict[str, WorkloadPodGroup] = {}
    for i, each in enumerate(listed):
        path = f"spec.podGroups[{i}]"
        group = plain_name(each, "name", path)
        if group in found:
            raise wrong(each, "name", path, "a name that no other pod group of the Workload has")
        is_gang, minimum = _policy(each, "minCount", "policy", path)
        found[group] = WorkloadPodGroup(group, minimum if is_gang else None)
    return tuple(found.values())


def named_queue(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return the queue that a group names, "" for none."""
    # The keys of both languages, so that a group keeps its queue when the policy changes its language.
    return annotations.get(GROUP_QUEUE_ANNOTATION) or labels.get(QUEUE_LABEL) or ""


def _never_preempts(spec: Obj) -> bool:
    return choice(spec, "preemptionPolicy", "spec", ("Never", "PreemptLowerPriority"), "") == "Never"


def _policy(group: Obj, minimum: str, key: str = "schedulingPolicy", parent: str = "spec") -> tuple[bool, int]:
    """Return whether the group is a gang, and its minimum, which is the field ``minimum``. Without a gang each member
    is enough for itself. ``parent``: path of ``group``, whose field ``key`` is the policy."""
    policy, path = table(group, key, parent), at(parent, key)
    gang, basic = maybe_table(policy, "gang", path), maybe_table(policy, "basic", path)
    # A union of which exactly one member is set. With both or none the author's intent is unknown, and to place pods
    # one by one could break a gang.
    if (gang is None) == (basic is None):
        found = "basic and gang" if gang is not None else shown(group.get(key))
        raise FieldError(path, found, "one of basic and gang")
    if gang is None:
        return False, 1
    if gang.get(minimum) is None:
        raise wrong(gang, minimum, at(path, "gang"), "an integer of at least 1")
    return True, whole(gang, minimum, at(path, "gang"), 1, 1)


def _topology(spec: Obj) -> TopologyConstraint | None:
    """Return the constraint to one domain of a node label, or None. It names no Topology: the label is all of it."""
    constraints, path = table(spec, "schedulingConstraints", "spec"), "spec.schedulingConstraints"
    # v1alpha2 has longer names for both fields.
    field, key = ("topology", "key") if "topology" in constraints else ("topologyConstraints", "topologyKey")
    listed = tables(constraints, field, path)
    if len(listed) > 1:
        raise FieldError(at(path, field), f"{len(listed)} constraints", "at most one")
    if not listed:
        return None
    label = short_text(listed[0], key, f"{path}.{field}[0]")
    if not label:
        raise wrong(listed[0], key, f"{path}.{field}[0]", "the key of a node label")
    return TopologyConstraint("", label)


def _leaves_whole(spec: Obj) -> bool:
    # v1alpha2 has a word for it, later versions a union.
    if type(spec.get("disruptionMode")) is str:
        return choice(spec, "disruptionMode", "spec", ("Pod", "PodGroup")) == "PodGroup"
    mode, path = maybe_table(spec, "disruptionMode", "spec"), "spec.disruptionMode"
    if mode is None:
        return False
    found = [key for key in ("single", "all") if mode.get(key) is not None]
    if len(found) != 1:
        raise FieldError(path, " and ".join(found) or shown(mode), "one of single and all")
    return found == ["all"]


def _conditions(status: Obj) -> tuple[PodGroupCondition, ...]:
    # The newest are last, and only these say how the group is now.
    listed = tables(status, "conditions", "status")[-_CONDITIONS_MAX:]
    return tuple(
        PodGroupCondition(
            type=text(item, "type", path),
            status=text(item, "status", path),
            reason=text(item, "reason", path),
            message=text(item, "message", path),
            last_transition=instant(item, "lastTransitionTime", path) or 0.0,
            observed_generation=whole(item, "observedGeneration", path, 0, 0),
        )
        for i, item in enumerate(listed)
        for path in (f"status.conditions[{i}]",)
    )


def _is_scheduled(conditions: tuple[PodGroupCondition, ...]) -> bool:
    # Either name, because a cluster may have been upgraded since the condition was written.
    types = (INITIALLY_SCHEDULED, SCHEDULED_IN_V1ALPHA2)
    return any(each.type in types and each.status == "True" for each in conditions)
