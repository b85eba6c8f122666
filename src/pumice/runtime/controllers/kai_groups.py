"""PodGroups of KAI for pods that name a KAI scheduler: which one to create, and what to write on the pod.

Source: KAI's pod-grouper.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from pumice.model.manifest.pods import KAI_GROUP_NAME_ANNOTATION
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import KAI_QUEUE_LABEL
from pumice.model.workloads.gang import SUB_GROUP_LABEL
from pumice.runtime.controllers.kai_gangs import TRAIN, GangPlan, NoGang, plan_of
from pumice.runtime.controllers.writes import (
    Create,
    Patch,
    Tell,
    Write,
    annotations_of,
    labels_of,
    leaving,
    merge_patch,
    meta,
    native_group_of,
    part,
    ref_of,
)

GROUP_API, QUEUE_API = "scheduling.run.ai/v2alpha2", "scheduling.run.ai/v2"
PRIORITY_LABEL, PROJECT_LABEL = "priorityClassName", "project"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
TOPOLOGY_ANNOTATION = "kai.scheduler/topology"
_PLACEMENTS = {
    "requiredTopologyLevel": "kai.scheduler/topology-required-placement",
    "preferredTopologyLevel": "kai.scheduler/topology-preferred-placement",
}
_TOP_OWNER_ANNOTATION = "kai.scheduler/top-owner-metadata"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # it is as large as the owner
_FINISHED = ("Succeeded", "Failed")
_NAME_MAX = 253
#: Parts of a PodGroup's spec that follow from its owner as long as it exists.
_KEPT_UP = ("minMember", "subGroups", "priorityClassName", "preemptibility", "topologyConstraint")


class GroupingSettings(Struct, frozen=True):
    """``node_pool_label``: copied from the pod, so that its group is in the same node pool."""

    scheduler_names: tuple[str, ...] = ("kai-scheduler",)
    default_queue: str = "default-queue"
    node_pool_label: str = "kai.scheduler/node-pool"


def needs_group(pod: Obj, settings: GroupingSettings) -> bool:
    """Return True if this pod needs a group from us."""
    return (
        part(pod, "spec").get("schedulerName") in settings.scheduler_names
        and not annotations_of(pod).get(KAI_GROUP_NAME_ANNOTATION)
        # A pod of a native group is in a gang already; an own group of each would break it.
        and not native_group_of(pod)
        and not leaving(pod)
        and part(pod, "status").get("phase") not in _FINISHED
    )


def group_for(pod: Obj, owners: Sequence[Obj], settings: GroupingSettings, *, launcher_there: bool = True) -> Obj:
    """Return the PodGroup in which a pod should be. ``owners``: those that control it, the nearest first. Raises:
    NoGang."""
    plan = plan_of(pod, owners, launcher_there=launcher_there)
    top = _top(pod, owners, plan)
    spec: Obj = {
        "minMember": plan.minimum,
        "queue": _queue_of(top, pod, settings),
        "priorityClassName": _class_of(top, pod, plan),
    }
    if plan.sub_groups:
        spec["subGroups"] = [{"name": name, "minMember": least} for name, least in plan.sub_groups.items()]
    spec |= _from_labels(top, pod) | _topology(top)
    labels = dict(labels_of(top))
    pool = labels_of(pod).get(settings.node_pool_label)
    if pool:
        labels.setdefault(settings.node_pool_label, pool)
    annotations = {key: text for key, text in annotations_of(top).items() if key != _APPLIED}
    metadata: Obj = {
        "namespace": meta(pod).get("namespace", ""),
        "name": _name(pod, top, plan),
        "labels": labels,
        "annotations": annotations | {_TOP_OWNER_ANNOTATION: _about(top)},
        "ownerReferences": [_reference(top)],
    }
    return {"apiVersion": GROUP_API, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def reconcile_grouping(
    pod: Obj, group: Obj | None, wanted: Obj | NoGang, settings: GroupingSettings, member: str = ""
) -> list[Write]:
    """Return what to write so that a pod is in the ``wanted`` group. ``group``: the existing one with that name, or
    None. ``member``: the pod's sub-group."""
    if not needs_group(pod, settings):
        return []
    if isinstance(wanted, NoGang):
        return [Tell(ref_of(pod), "Warning", "PodGrouperWarning", str(wanted))]
    if group is not None and leaving(group):
        return []  # its deletion is an event, after which the pod is examined again
    named: Obj = {"annotations": {KAI_GROUP_NAME_ANNOTATION: meta(wanted)["name"]}}
    if member:
        named["labels"] = {SUB_GROUP_LABEL: member}
    on_pod = Patch(ref_of(pod), {"metadata": named})
    if group is None:
        return [Create(wanted), on_pod]
    change = _difference(part(group, "spec"), wanted["spec"])
    return [Patch(ref_of(group), {"spec": change}), on_pod] if change else [on_pod]


def member_of(pod: Obj, owners: Sequence[Obj]) -> str:
    """Return the sub-group of a pod, "" for none. Raises: NoGang."""
    return plan_of(pod, owners).member


def missing_queues(names: Sequence[str], default: str) -> list[Write]:
    """Return the default queue and its parent, if the former does not exist: pods without a queue run there."""
    if default in names:
        return []
    above, free = "default-parent-queue", {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    specs: dict[str, Obj] = {above: {}, default: {"parentQueue": above}}
    return [
        Create({"apiVersion": QUEUE_API, "kind": "Queue", "metadata": {"name": name}, "spec": spec | _shared(free)})
        for name, spec in specs.items()
        if name not in names
    ]


def _shared(free: Obj) -> Obj:
    return {"resources": {"cpu": free, "memory": free, "gpu": free}}


# -- parts of a group


def _top(pod: Obj, owners: Sequence[Obj], plan: GangPlan) -> Obj:
    """Return what the group belongs to. For a CronJob it is the Job, so that each run has a group."""
    if not owners:
        return pod
    return owners[-2] if owners[-1].get("kind") == "CronJob" and len(owners) > 1 else owners[-1]


def _name(pod: Obj, top: Obj, plan: GangPlan) -> str:
    of, uid = meta(pod) if plan.alone else meta(top), meta(top).get("uid", "")
    end = f"-{uid}{plan.suffix}" if not plan.alone or top.get("kind") == "Job" else f"-{meta(pod).get('uid', '')}"
    return f"pg-{of.get('name', '')}"[: _NAME_MAX - len(end)].rstrip(".-") + end.lower()


def _queue_of(top: Obj, pod: Obj, settings: GroupingSettings) -> str:
    named = labels_of(top).get(KAI_QUEUE_LABEL) or labels_of(pod).get(KAI_QUEUE_LABEL)
    if named:
        return named
    project, pool = (
        labels_of(top).get(PROJECT_LABEL) or labels_of(pod).get(PROJECT_LABEL),
        labels_of(pod).get(settings.node_pool_label),
    )
    return (f"{project}-{pool}" if pool else project) if project else settings.default_queue


def _class_of(top: Obj, pod: Obj, plan: GangPlan) -> str:
    written = part(pod, "spec").get("priorityClassName")
    of_ray = labels_of(top).get("ray.io/priority-class-name")
    labelled = labels_of(top).get(PRIORITY_LABEL) or labels_of(pod).get(PRIORITY_LABEL)
    return str(of_ray or written or labelled or plan.priority_class or TRAIN)


def _from_labels(top: Obj, pod: Obj) -> Obj:
    value = labels_of(top).get(PREEMPTIBILITY_LABEL) or labels_of(pod).get(PREEMPTIBILITY_LABEL)
    return {"preemptibility": value} if value in ("preemptible", "non-preemptible") else {}


def _topology(top: Obj) -> Obj:
    said = annotations_of(top)
    levels = {field: said[key] for field, key in _PLACEMENTS.items() if said.get(key)}
    topology = said.get(TOPOLOGY_ANNOTATION)
    return {"topologyConstraint": {"topology": topology, **levels}} if topology and levels else {}


def _about(top: Obj) -> str:
    group, _, version = str(top.get("apiVersion", "")).rpartition("/")
    found = {"name": meta(top).get("name", ""), "uid": meta(top).get("uid", "")}
    return json.dumps(found | {"group": group, "version": version, "kind": top.get("kind", "")})


def _reference(top: Obj) -> Obj:
    return {
        "apiVersion": top.get("apiVersion", ""),
        "kind": top.get("kind", ""),
        "name": meta(top).get("name", ""),
        "uid": meta(top).get("uid", ""),
    }


def _difference(spec: Obj, wanted: Obj) -> Obj:
    """Return what to merge into a group's spec. Its queue stays as it was created or moved, and so do defaults of the
    definition."""
    known: dict[str, Any] = {key: spec.get(key) for key in _KEPT_UP if key in wanted}
    return merge_patch(known, {key: wanted[key] for key in _KEPT_UP if key in wanted})
