"""PodGroups for pods that name one of our schedulers: which one to create, and what to write on the pod.

Source: Volcano's podgroup controller.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.manifest.jobs import GROUP_MIN_MEMBER_ANNOTATION, GROUP_QUEUE_ANNOTATION, podgroup_for_bare_pod
from pumice.model.manifest.pod_spec import RawPodSpec, SpecCache, read_pod_spec
from pumice.model.manifest.pods import SECOND_GROUP_NAME_ANNOTATION, read_pod
from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.model.manifest.terms import Owner
from pumice.model.pod import ENDED, GROUP_NAME_ANNOTATION
from pumice.model.resources import EMPTY, Resource
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.controllers.deadlines import deadline_annotation
from pumice.runtime.controllers.encode import podgroup_object
from pumice.runtime.controllers.gang_owners import GangRequest, gang_request
from pumice.runtime.controllers.writes import (
    Create,
    Delete,
    Emit,
    Patch,
    Write,
    age_key,
    annotations_of,
    controller_uid,
    is_in_native_group,
    labels_of,
    leaving,
    merge_patch,
    meta,
    owner_reference,
    part,
    ref_of,
)

_INHERITING = ("ReplicaSet", "DaemonSet", "StatefulSet", "Job")
_REVISION = "controller-revision-hash"
_DEFAULT_QUEUE = "default"


class GroupSettings(Struct, frozen=True):
    """``inherit``: owners' annotations count. ``gangs``: owners say how large their gang is."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    inherit: bool = True
    gangs: bool = True


def group_name_for(pod: Obj) -> str:
    """Return the name of the group of a pod that names none."""
    return f"podgroup-{controller_uid(pod) or meta(pod).get('uid', '')}".replace("/", "-")


def queue_of_namespace(namespace: Obj | None) -> str:
    """Return the queue that a namespace names for PodGroups without one, or "".

    Source: Volcano's webhook of PodGroups.
    """
    return annotations_of(namespace or {}).get(GROUP_QUEUE_ANNOTATION, "")


def reconcile_pod(
    pod: Obj, owner: Obj | None, group: Obj | None, settings: GroupSettings, cache: SpecCache, queue: str = ""
) -> list[Write]:
    """Return the writes that give a pod its group. ``owner``: its controlling owner, which says how large that is, if
    readable. ``group``: that named by ``group_name_for``, or None. ``queue``: of its namespace."""
    if not _is_ours(pod, settings) or _names_group(pod) or leaving(pod) or part(pod, "status").get("phase") in ENDED:
        return []
    if group is not None and leaving(group):
        return []  # its deletion is an event, after which the pod is examined again
    try:
        wanted = _wanted(pod, owner, settings, cache, queue)
    except (FieldError, KeyError) as error:
        return [Emit(ref_of(pod), "Warning", "PodGroupError", f"the PodGroup cannot be created: {_text_of(error)}")]
    named = Patch(ref_of(pod), {"metadata": {"annotations": {GROUP_NAME_ANNOTATION: group_name_for(pod)}}})
    return [named] if group is not None else [Create(wanted), named]


def reconcile_set(
    owner: Obj, pods: list[Obj], group: Obj | None, settings: GroupSettings, cache: SpecCache, queue: str = ""
) -> list[Write]:
    """Return the writes that keep the group of a ReplicaSet or StatefulSet as its pods require; a set without pods has
    none. ``queue``, of its namespace, counts when a group is created; an existing one is not moved."""
    if part(owner, "spec").get("replicas", 1) == 0:
        return [Delete(ref_of(group))] if group is not None and not leaving(group) else []
    revision = part(owner, "status").get("updateRevision") if owner.get("kind") == "StatefulSet" else None
    pod = next((p for p in sorted(pods, key=age_key) if _speaks_for(p, revision, settings)), None)
    if pod is None or (group is not None and leaving(group)):
        return []
    try:
        there = part(group, "spec").get("queue") if group is not None else queue
        wanted = _wanted(pod, owner, settings, cache, queue if queue == there else "")
    except (FieldError, KeyError):
        return []  # reported by reconcile_pod
    if group is None:
        return [Create(wanted)]
    found = _differences(group, wanted)
    return [Patch(ref_of(group), found)] if found else []


def _differences(group: Obj, wanted: Obj) -> Obj:
    """Return what to merge into the group. Fields that the CRD's defaults filled in, and a user's own keys, stay."""
    patch: Obj = {}
    spec = merge_patch(group.get("spec") or {}, {**(group.get("spec") or {}), **wanted["spec"]})
    if spec:
        patch["spec"] = spec
    for key, old in (("labels", labels_of(group)), ("annotations", annotations_of(group))):
        changed = merge_patch(old, {**old, **meta(wanted).get(key, {})})
        if changed:
            patch.setdefault("metadata", {})[key] = changed
    return patch


def _wanted(pod: Obj, owner: Obj | None, settings: GroupSettings, cache: SpecCache, queue: str) -> Obj:
    inherits = settings.inherit and owner is not None and owner.get("kind") in _INHERITING
    inherited = annotations_of(owner) if inherits and owner is not None else {}
    group, _ = podgroup_for_bare_pod(read_pod(pod, cache, ""), inherited)
    deadline = {} if owner is None else deadline_annotation(pod, [owner])
    group = replace(group, name=group_name_for(pod), annotations={**deadline, **group.annotations})
    request = gang_request(owner) if settings.gangs else GangRequest()
    if request.min_member is not None and GROUP_MIN_MEMBER_ANNOTATION not in inherited:
        group = _as_gang(group, request, pod, cache)
    if queue and group.queue == _DEFAULT_QUEUE:
        group = replace(group, queue=queue)
    owners = list(meta(pod).get("ownerReferences") or ()) if controller_uid(pod) else [owner_reference(pod)]
    return podgroup_object(group, owners)


def _as_gang(group: PodGroup, request: GangRequest, pod: Obj, cache: SpecCache) -> PodGroup:
    """Return the group with the size that the owner wants. Without templates every pod counts like this one."""
    assert request.min_member is not None
    one = group.min_resources or EMPTY
    if group.min_member > 1:
        one = one.multi(1 / group.min_member)
    return replace(
        group,
        min_member=request.min_member,
        min_resources=_sum_of(request, cache) if request.templates else one.multi(request.min_member),
        queue=annotations_of(pod).get(GROUP_QUEUE_ANNOTATION) or request.queue or group.queue,
        priority_class_name=group.priority_class_name or request.priority_class_name,
    )


def _sum_of(request: GangRequest, cache: SpecCache) -> Resource:
    total = EMPTY
    for count, template in request.templates:
        spec = read_pod_spec(RawPodSpec(part(template, "spec"), {}, "template.spec", Owner("", {})), cache)
        total = total.add(spec.request.multi(count))
    return total


def _is_ours(pod: Obj, settings: GroupSettings) -> bool:
    return part(pod, "spec").get("schedulerName") in settings.scheduler_names


def _names_group(pod: Obj) -> bool:
    """Return True if a pod names a PodGroup, Volcano's or Kubernetes' own."""
    annotations = annotations_of(pod)
    own = annotations.get(GROUP_NAME_ANNOTATION) or annotations.get(SECOND_GROUP_NAME_ANNOTATION)
    return bool(own) or is_in_native_group(pod)


def _speaks_for(pod: Obj, revision: str | None, settings: GroupSettings) -> bool:
    """Return True if a pod may determine what its set's group looks like."""
    of_revision = not revision or labels_of(pod).get(_REVISION) == revision
    return of_revision and _is_ours(pod, settings) and not _names_group(pod) and not leaving(pod)


def _text_of(error: FieldError | KeyError) -> str:
    if isinstance(error, FieldError):
        return str(error)
    return f"no {error}"
