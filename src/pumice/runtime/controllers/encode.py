"""Encode PodGroups and Jobs as objects of the API, for controllers that create them."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, SubGroupPolicy
from pumice.runtime.controllers.writes import GROUP_API, JOB_API, meta, owner_reference


def podgroup_object(group: PodGroup, owners: list[Obj], *, phase: str = "Pending") -> Obj:
    """Return the object to create, the inverse of ``model.manifest.groups``. Empty fields and defaults of the CRD are
    left out, except for queue and minMember."""
    metadata: Obj = {"name": group.name, "namespace": group.namespace}
    for key, found in (("labels", dict(group.labels)), ("annotations", dict(group.annotations))):
        if found:
            metadata[key] = found
    if owners:
        metadata["ownerReferences"] = owners
    return {
        "apiVersion": GROUP_API,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": _spec(group),
        "status": {"phase": phase},
    }


def job_object(owner: Obj, name: str, spec: Obj, annotations: Mapping[str, str], labels: Mapping[str, str]) -> Obj:
    """Return a Job to create that ``owner`` controls, in its namespace."""
    metadata: Obj = {
        "name": name,
        "namespace": meta(owner)["namespace"],
        "annotations": dict(annotations),
        "ownerReferences": [owner_reference(owner)],
    }
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": JOB_API, "kind": "Job", "metadata": metadata, "spec": spec}


def _spec(group: PodGroup) -> Obj:
    spec: Obj = {"minMember": group.min_member, "queue": group.queue}
    if group.min_task_member:
        spec["minTaskMember"] = dict(group.min_task_member)
    if group.min_resources is not None:
        spec["minResources"] = group.min_resources.to_list()
    if group.priority_class_name:
        spec["priorityClassName"] = group.priority_class_name
    if group.topology is not None:
        spec["networkTopology"] = _topology(group.topology)
    if group.sub_groups:
        spec["subGroupPolicy"] = [_sub_group(policy) for policy in group.sub_groups]
    return spec


def _topology(topology: NetworkTopology) -> Obj:
    found: Obj = {"mode": topology.mode}
    if topology.highest_tier is not None:
        found["highestTierAllowed"] = topology.highest_tier
    elif topology.highest_tier_name:
        found["highestTierName"] = topology.highest_tier_name
    return found


def _sub_group(policy: SubGroupPolicy) -> Obj:
    found: Obj = {
        "name": policy.name,
        "subGroupSize": policy.sub_group_size or 1,
        "minSubGroups": policy.min_sub_groups or 0,
        "matchLabelKeys": list(policy.match_label_keys),
    }
    if policy.topology is not None:
        found["networkTopology"] = _topology(policy.topology)
    if policy.selector is not None:
        found["labelSelector"] = _selector(policy.selector)
    return found


def _selector(selector: LabelSelector) -> Obj:
    single: dict[str, str] = {}
    others: list[Requirement] = []
    for each in selector.requirements:
        # Of several about one label the first is written so: a map has room for one.
        if each.operator == "In" and len(each.values) == 1 and each.key not in single:
            single[each.key] = each.values[0]
        else:
            others.append(each)
    found: Obj = {"matchLabels": single} if single else {}
    if others:
        found["matchExpressions"] = [{"key": r.key, "operator": r.operator, "values": list(r.values)} for r in others]
    return found
