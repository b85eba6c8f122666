"""PodGroups of KAI for pods that name a KAI scheduler: which one to create, and what to write on the pod.

Source: KAI's pod-grouper.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.manifest.pods import KAI_GROUP_NAME_ANNOTATION
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import ENDED, KAI_QUEUE_LABEL
from pumice.model.quantity import duration_or_none
from pumice.model.workloads.gang import (
    NON_PREEMPTIBLE,
    PREEMPTIBLE,
    SUB_GROUP_LABEL,
    SubGroup,
    TopologyConstraint,
)
from pumice.runtime.controllers.deadlines import deadline_annotation
from pumice.runtime.controllers.kai.kind_defaults import KindDefaults
from pumice.runtime.controllers.kai.owners import is_skipped, without_wrappers
from pumice.runtime.controllers.kai.plan import GangPlan, NoGang, constraint_in
from pumice.runtime.controllers.kai.rules import PodContext, plan_of
from pumice.runtime.controllers.writes import (
    Create,
    Emit,
    Patch,
    Write,
    annotations_of,
    is_in_native_group,
    labels_of,
    leaving,
    merge_patch,
    meta,
    part,
    ref_of,
)

GROUP_API, QUEUE_API = "scheduling.run.ai/v2alpha2", "scheduling.run.ai/v2"
PRIORITY_LABEL, PROJECT_LABEL = "priorityClassName", "project"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
_DELAY_ANNOTATION = "kai.scheduler/preemption-delay"
_GRACE_ANNOTATION = "kai.scheduler/staleness-grace-period"
_TOP_OWNER_ANNOTATION = "kai.scheduler/top-owner-metadata"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # it is as large as the owner
_NAME_MAX = 253
#: Parts of a PodGroup's spec that follow from its owner as long as it exists.
_KEPT_UP = (
    "minMember",
    "minSubGroup",
    "subGroups",
    "priorityClassName",
    "preemptibility",
    "topologyConstraint",
    "preemptionDelay",
    "stalenessGracePeriod",
)


class GroupingSettings(Struct, frozen=True):
    """``node_pool_label``: copied from the pod, so that its group is in the same node pool. ``kind_defaults``:
    namespace and name of the ConfigMap with the defaults of kinds, as a key; "" for none."""

    scheduler_names: tuple[str, ...] = ("kai-scheduler",)
    default_queue: str = "default-queue"
    node_pool_label: str = "kai.scheduler/node-pool"
    kind_defaults: str = ""


def needs_group(pod: Obj, settings: GroupingSettings) -> bool:
    """Return True if this pod needs a group from us."""
    return (
        part(pod, "spec").get("schedulerName") in settings.scheduler_names
        and not annotations_of(pod).get(KAI_GROUP_NAME_ANNOTATION)
        # A pod of a native group is in a gang already; an own group of each would break it.
        and not is_in_native_group(pod)
        and not leaving(pod)
        and part(pod, "status").get("phase") not in ENDED
    )


class GroupAssignment(NamedTuple):
    """The PodGroup in which a pod should be, and its sub-group there, "" for none."""

    group: Obj
    member: str = ""


def group_for(pod: Obj, context: PodContext, settings: GroupingSettings) -> GroupAssignment | None:
    """Return the group of a pod, None if the pod or an owner asks to be left alone. Raises: NoGang."""
    if is_skipped(pod, context.owners):
        return None
    named_by, owners = without_wrappers(pod, context.owners, lambda owner: _labels_by_kind(owner, context))
    plan = plan_of(named_by, replace(context, owners=owners))
    top = plan.top or (owners[-1] if owners else named_by)
    chain = (top, *reversed(owners))
    place = plan.topology or constraint_in(annotations_of(top))
    spec: Obj = {
        **({"minMember": plan.minimum} if plan.min_sub_group is None else {"minSubGroup": plan.min_sub_group}),
        "queue": _queue_of(top, pod, settings),
        "priorityClassName": _class_of(chain, pod, plan, context),
        **_preemptibility(chain, pod, context.defaults),
        **_times((*chain, pod)),
        **({"topologyConstraint": _plain_constraint(place)} if place else {}),
    }
    if plan.sub_groups:
        spec["subGroups"] = [_plain_sub_group(each) for each in plan.sub_groups]
    labels = dict(labels_of(top))
    pool = labels_of(pod).get(settings.node_pool_label)
    if pool:
        labels.setdefault(settings.node_pool_label, pool)
    annotations = {key: text for key, text in annotations_of(top).items() if key != _APPLIED}
    metadata: Obj = {
        "namespace": meta(pod).get("namespace", ""),
        "name": _name(pod, top, plan),
        "labels": labels,
        "annotations": deadline_annotation(pod, context.owners) | annotations | {_TOP_OWNER_ANNOTATION: _about(top)},
        "ownerReferences": [_reference(top)],
    }
    return GroupAssignment(
        {"apiVersion": GROUP_API, "kind": "PodGroup", "metadata": metadata, "spec": spec}, plan.member
    )


def reconcile_grouping(
    pod: Obj, group: Obj | None, wanted: GroupAssignment | NoGang | None, settings: GroupingSettings
) -> list[Write]:
    """Return what to write so that a pod is in the ``wanted`` group. ``group``: the existing one with that name, or
    None."""
    if wanted is None or not needs_group(pod, settings):
        return []
    if isinstance(wanted, NoGang):
        return [Emit(ref_of(pod), "Warning", "PodGrouperWarning", str(wanted))]
    if group is not None and leaving(group):
        return []  # its deletion is an event, after which the pod is examined again
    on_pod = Patch(ref_of(pod), {"metadata": membership(wanted)})
    if group is None:
        return [Create(wanted.group), on_pod]
    change = _difference(part(group, "spec"), wanted.group["spec"])
    return [Patch(ref_of(group), {"spec": change}), on_pod] if change else [on_pod]


def membership(wanted: GroupAssignment) -> Obj:
    """Return the metadata that a pod of the group has."""
    named: Obj = {"annotations": {KAI_GROUP_NAME_ANNOTATION: meta(wanted.group)["name"]}}
    if wanted.member:
        named["labels"] = {SUB_GROUP_LABEL: wanted.member}
    return named


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


def _name(pod: Obj, top: Obj, plan: GangPlan) -> str:
    if plan.name:
        return plan.name[:_NAME_MAX].rstrip(".-")
    of, last = (meta(pod) if plan.alone else meta(top)), top
    if plan.alone and top.get("kind") != "Job":
        last = pod
    end = f"-{meta(last).get('uid', '')}{plan.suffix}"
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


def _labels_by_kind(owner: Obj, context: PodContext) -> dict[str, str]:
    """Return the labels that say what the defaults of an owner's kind say."""
    default = context.defaults.of(owner)
    named = default.priority_class if context.class_exists(default.priority_class) else ""
    found = {PRIORITY_LABEL: named, PREEMPTIBILITY_LABEL: default.preemptibility}
    return {label: value for label, value in found.items() if value}


def _class_of(chain: Sequence[Obj], pod: Obj, plan: GangPlan, context: PodContext) -> str:
    """Return the priority class. ``chain``: the top owner and those below it."""
    of_ray = labels_of(chain[0]).get("ray.io/priority-class-name")
    if of_ray:
        return of_ray
    for owner in chain:
        labelled = labels_of(owner).get(PRIORITY_LABEL) or labels_of(pod).get(PRIORITY_LABEL)
        named = str(labelled or plan.own_class or part(pod, "spec").get("priorityClassName") or "")
        # What the spec of an owner names is taken as it is.
        if named and (context.class_exists(named) or named == plan.own_class):
            return named
    by_kind = (context.defaults.of(owner).priority_class for owner in chain)
    return next((name for name in by_kind if name and context.class_exists(name)), plan.priority_class)


def _preemptibility(chain: Sequence[Obj], pod: Obj, defaults: KindDefaults) -> Obj:
    labelled = (labels_of(each).get(PREEMPTIBILITY_LABEL) for each in (*chain, pod))
    by_kind = (defaults.of(owner).preemptibility for owner in chain)
    valid = (value for value in (*labelled, *by_kind) if value in (PREEMPTIBLE, NON_PREEMPTIBLE))
    return next(({"preemptibility": value} for value in valid), {})


def _times(objects: Sequence[Obj]) -> Obj:
    """Return delay and grace of the first object that has a valid one."""
    found: Obj = {}
    for obj in objects:
        annotations = annotations_of(obj)
        for key, field, least in (
            (_DELAY_ANNOTATION, "preemptionDelay", 0.0),
            (_GRACE_ANNOTATION, "stalenessGracePeriod", None),
        ):
            if key in annotations and field not in found and _is_duration(annotations[key], least):
                found[field] = annotations[key]
    return found


def _is_duration(text: str, least: float | None) -> bool:
    seconds = duration_or_none(text)
    return seconds is not None and (least is None or seconds >= least)


def _plain_sub_group(sub: SubGroup) -> Obj:
    found: Obj = {"name": sub.name}
    # Of the two minimums a leaf has the first and a set the second: KAI's webhook refuses both on one.
    found |= {"minMember": sub.min_member} if sub.min_sub_group is None else {"minSubGroup": sub.min_sub_group}
    if sub.parent:
        found["parent"] = sub.parent
    if sub.topology:
        found["topologyConstraint"] = _plain_constraint(sub.topology)
    return found


def _plain_constraint(place: TopologyConstraint) -> Obj:
    levels = {"requiredTopologyLevel": place.required, "preferredTopologyLevel": place.preferred}
    return {"topology": place.topology, **{field: level for field, level in levels.items() if level}}


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
