"""Decode pods."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.model.manifest.needed_config_maps import needed_config_maps
from pumice.model.manifest.pod_spec import RawPodSpec, SpecCache, gates, read_pod_spec
from pumice.model.manifest.reading.fields import (
    NAME_MAX,
    Obj,
    instant,
    is_name,
    maybe_whole,
    name,
    short_text,
    table,
    tables,
    text,
    text_map,
    wrong,
)
from pumice.model.manifest.terms import Owner
from pumice.model.pod import (
    ENDED,
    GROUP_NAME_ANNOTATION,
    NATIVE_GROUP_MARK,
    NATIVE_SUB_GROUP_MARK,
    Pod,
    PodCondition,
)
from pumice.model.workloads.workload import WorkloadRef

#: Read if ``scheduling.k8s.io/group-name`` is absent. A decoded pod always has the latter.
SECOND_GROUP_NAME_ANNOTATION = "scheduling.volcano.sh/group-name"
#: Read if neither is present. Source: KAI.
KAI_GROUP_NAME_ANNOTATION = "pod-group-name"
_MARKS = frozenset({NATIVE_GROUP_MARK, NATIVE_SUB_GROUP_MARK})


def read_pod(obj: Obj, cache: SpecCache, default_scheduler: str) -> Pod:
    metadata = table(obj, "metadata", "")
    spec = table(obj, "spec", "")
    status = table(obj, "status", "")
    own_name = name(metadata, "name", "metadata")
    namespace = namespace_of(metadata)
    labels = text_map(metadata, "labels", "metadata")
    annotations = text_map(metadata, "annotations", "metadata")
    raw = RawPodSpec(spec, status, "spec", Owner(namespace, labels), own_name, annotations)
    return Pod(
        namespace=namespace,
        name=own_name,
        # A file has no UIDs, and the order of tasks ends in one.
        uid=text(metadata, "uid", "metadata") or f"{namespace}/{own_name}",
        spec=read_pod_spec(raw, cache),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        labels=labels,
        annotations=_with_group_name(annotations, _native_group_names(spec)),
        # A file may leave it out; an API server never does.
        scheduler_name=text(spec, "schedulerName", "spec") or default_scheduler,
        node_name=text(spec, "nodeName", "spec"),
        phase=text(status, "phase", "status") or "Pending",
        deletion=instant(metadata, "deletionTimestamp", "metadata"),
        start_time=instant(status, "startTime", "status"),
        nominated_node=text(status, "nominatedNodeName", "status"),
        gates=gates(spec, "spec"),
        conditions=_conditions(status),
        owner=controller_of(metadata),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        made_claims=_made_claims(spec, status),
        claim_entries=_claim_entries(spec) if spec.get("schedulingGroup") else (),
        finish_time=_finish_time(status),
        active_deadline_s=maybe_whole(spec, "activeDeadlineSeconds", "spec", 1),
        # A pod on a node has been let through, whatever it lacks.
        config_maps=() if spec.get("nodeName") else needed_config_maps(spec, annotations),
    )


def _finish_time(status: Obj) -> float | None:
    """Return when the last container of a finished pod ended, or None."""
    # While the pod runs, containers that have ended may still be restarted.
    if status.get("phase") not in ENDED:
        return None
    found = []
    # The last one decides: until then the pod held its room.
    for i, each in enumerate(tables(status, "containerStatuses", "status")):
        where = f"status.containerStatuses[{i}].state"
        terminated = table(table(each, "state", where.rpartition(".")[0]), "terminated", where)
        found.append(instant(terminated, "finishedAt", f"{where}.terminated"))
    return max((moment for moment in found if moment is not None), default=None)


def _made_claims(spec: Obj, status: Obj) -> tuple[str, ...]:
    """Return the names of claims that were made for the pod, at the positions of its claims, "" for others."""
    if not status.get("resourceClaimStatuses"):
        return ()
    # By the name of the claim in the spec, because the status need not have the same order.
    made = {
        text(each, "name", where): text(each, "resourceClaimName", where)
        for i, each in enumerate(tables(status, "resourceClaimStatuses", "status"))
        for where in (f"status.resourceClaimStatuses[{i}]",)
    }
    return tuple(
        made.get(text(each, "name", f"spec.resourceClaims[{i}]"), "")
        for i, each in enumerate(tables(spec, "resourceClaims", "spec"))
    )


def _claim_entries(spec: Obj) -> tuple[str, ...]:
    """Return the names by which the pod knows its claims."""
    claims = tables(spec, "resourceClaims", "spec")
    return tuple(short_text(each, "name", f"spec.resourceClaims[{i}]") for i, each in enumerate(claims))


def namespace_of(metadata: Obj) -> str:
    """Return the namespace, ``default`` if none is given."""
    value = text(metadata, "namespace", "metadata") or "default"
    if len(value) > NAME_MAX or not is_name(value):
        raise wrong(metadata, "namespace", "metadata", f"at most {NAME_MAX} characters without spaces or /")
    return value


def controller_of(metadata: Obj) -> tuple[str, str, str] | None:
    """Return kind, name and UID of the owner that controls the object, or None."""
    for i, owner in enumerate(tables(metadata, "ownerReferences", "metadata")):
        # A pod may have several owners, and only one of them controls it.
        if owner.get("controller") is True:
            here = f"metadata.ownerReferences[{i}]"
            return text(owner, "kind", here), text(owner, "name", here), text(owner, "uid", here)
    return None


def _native_group_names(spec: Obj) -> tuple[str, str]:
    """Return the PodGroup of ``scheduling.k8s.io`` to which the pod belongs, and another one that the spec names beside
    it, "" for none."""
    found = ""
    if spec.get("schedulingGroup"):
        found = short_text(table(spec, "schedulingGroup", "spec"), "podGroupName", "spec.schedulingGroup")
    # Of an older version of the API, so that no object of a cluster has both.
    older = read_workload_ref(spec).group_name if spec.get("workloadRef") else ""
    return (found, older) if found else (older, "")


def read_workload_ref(spec: Obj) -> WorkloadRef:
    """Return the pod group of a Workload that a pod names. Raises: FieldError."""
    ref, path = table(spec, "workloadRef", "spec"), "spec.workloadRef"
    workload, group = plain_name(ref, "name", path), plain_name(ref, "podGroup", path)
    replica = plain_name(ref, "podGroupReplicaKey", path) if ref.get("podGroupReplicaKey") else ""
    return WorkloadRef(workload, group, replica)


def plain_name(obj: Obj, key: str, path: str) -> str:
    """Return a name that is part of the name of a PodGroup that no object has. Raises: FieldError."""
    found = name(obj, key, path)
    # The parts are joined by colons, and two gangs must not become one.
    if ":" in found:
        raise wrong(obj, key, path, f"a name of 1 to {NAME_MAX} characters without spaces, / or :")
    return found


def _with_group_name(annotations: Mapping[str, str], names: tuple[str, str]) -> Mapping[str, str]:
    """Return the annotations with the name of the pod's group, if it has one.

    ``names``: those in the spec. They count before any annotation, because they cannot be changed.
    """
    native, beside = names
    # One annotation for all, so that no other module needs to know four names.
    # Not of the API, so that no author can set them.
    if not annotations.keys().isdisjoint(_MARKS):
        annotations = {key: value for key, value in annotations.items() if key not in _MARKS}
    own = annotations.get(GROUP_NAME_ANNOTATION)
    second = annotations.get(SECOND_GROUP_NAME_ANNOTATION) or annotations.get(KAI_GROUP_NAME_ANNOTATION)
    if native:
        other = beside or own or second or ""
        mark = other if other != native else ""
        return {**annotations, GROUP_NAME_ANNOTATION: native, NATIVE_GROUP_MARK: mark}
    wanted = own or second
    return annotations if not wanted or wanted == own else {**annotations, GROUP_NAME_ANNOTATION: wanted}


def _conditions(status: Obj) -> tuple[PodCondition, ...]:
    found = tables(status, "conditions", "status")
    if not found:
        return ()
    return tuple(_condition(item, f"status.conditions[{i}]") for i, item in enumerate(found))


def _condition(item: Obj, path: str) -> PodCondition:
    return PodCondition(
        type=text(item, "type", path),
        status=text(item, "status", path),
        reason=text(item, "reason", path),
        message=text(item, "message", path),
        last_transition=instant(item, "lastTransitionTime", path) or 0.0,
    )
