"""Write PodGroups, CompositePodGroups and Workloads of Kubernetes, and what pods say of them, as in the API."""

from __future__ import annotations

from pumice.kube.api.encode_statuses import native_group_status
from pumice.model.manifest.jobs import GROUP_QUEUE_ANNOTATION
from pumice.model.manifest.native import QUEUE_LABEL
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import GROUP_NAME_ANNOTATION, NATIVE_GROUP_MARK, Pod
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.gang import TopologyConstraint
from pumice.model.workloads.native_group import FIRST_VERSION, GroupClaim, NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.workload import Workload, WorkloadRef, workload_ref


def composite_pod_group_object(group: CompositePodGroup, metadata: Obj) -> Obj:
    """Return the object to write."""
    spec: Obj = {"schedulingPolicy": {"gang": {"minGroupCount": group.min_groups}}}
    spec |= _common(group.parent, group.priority_class_name, group.never_preempts)
    if group.topology is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": group.topology.required}]}
    if group.leaves_whole:
        spec["disruptionMode"] = {"all": {}}
    _name_queue(metadata, group.queue)
    if group.generation:
        metadata["generation"] = group.generation
    found = {"apiVersion": group.api_version, "kind": "CompositePodGroup", "metadata": metadata, "spec": spec}
    status = native_group_status(group.conditions)
    return found | ({"status": status} if status else {})


def native_pod_group_object(group: PodGroup, native: NativeGroup, metadata: Obj) -> Obj:
    """Return the object to write, in the version in which it was read."""
    policy: Obj = {"gang": {"minCount": group.min_member}} if native.is_gang else {"basic": {}}
    spec: Obj = {"schedulingPolicy": policy} | _common(native.parent, group.priority_class_name, native.never_preempts)
    is_first_version = native.api_version.endswith("/v1alpha2")
    topology = group.gang.topology if group.gang is not None else None
    if topology is not None:
        spec["schedulingConstraints"] = _constraints(topology, is_first_version)
    if native.leaves_whole:
        spec["disruptionMode"] = "PodGroup" if is_first_version else {"all": {}}
    if native.claims:
        spec["resourceClaims"] = [_claim(each) for each in native.claims]
    _name_queue(metadata, group.queue)
    if native.generation:
        metadata["generation"] = native.generation
    status = native_group_status(group.status.conditions, native.claims)
    return {
        "apiVersion": native.api_version,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
        **({"status": status} if status else {}),
    }


def workload_object(workload: Workload, metadata: Obj) -> Obj:
    """Return the object to write."""
    groups = list[Obj]()
    for each in workload.groups:
        policy: Obj = {"basic": {}} if each.min_count is None else {"gang": {"minCount": each.min_count}}
        groups.append({"name": each.name, "policy": policy})
    _name_queue(metadata, workload.queue)
    return {"apiVersion": FIRST_VERSION, "kind": "Workload", "metadata": metadata, "spec": {"podGroups": groups}}


def as_member(obj: Obj, pod: Pod) -> Obj:
    """Return the object of a pod with the field that names its PodGroup, and its annotations as they were before."""
    if NATIVE_GROUP_MARK not in pod.annotations:
        return obj
    metadata, spec, status = obj["metadata"], obj["spec"], obj["status"]
    annotations = dict(metadata.get("annotations", {}))
    other = annotations.pop(NATIVE_GROUP_MARK, "")
    name = annotations.pop(GROUP_NAME_ANNOTATION)
    ref, ignored = workload_ref(name), workload_ref(other)
    named_in: Obj = {"schedulingGroup": {"podGroupName": name}} if ref is None else _ref_object(ref)
    # What was named beside the field that counts.
    if ignored is not None:
        named_in |= _ref_object(ignored)
    elif other:
        annotations[GROUP_NAME_ANNOTATION] = other
    named = dict(zip((each["name"] for each in spec.get("resourceClaims", ())), pod.claim_entries, strict=True))
    # The group's claims are found by the names that the pod has for them.
    for each in (*spec.get("resourceClaims", ()), *status.get("resourceClaimStatuses", ())):
        each["name"] = named[each["name"]]
    return obj | {
        "metadata": metadata | {"annotations": annotations},
        "spec": spec | named_in,
    }


def _ref_object(ref: WorkloadRef) -> Obj:
    named = {"name": ref.workload, "podGroup": ref.group}
    return {"workloadRef": named | ({"podGroupReplicaKey": ref.replica} if ref.replica else {})}


def _common(parent: str, priority_class: str, never_preempts: bool) -> Obj:
    found: Obj = {}
    if parent:
        found["parentCompositePodGroupName"] = parent
    if priority_class:
        found["priorityClassName"] = priority_class
    if never_preempts:
        found["preemptionPolicy"] = "Never"
    return found


def _constraints(topology: TopologyConstraint, is_first_version: bool) -> Obj:
    if is_first_version:
        return {"topologyConstraints": [{"topologyKey": topology.required}]}
    return {"topology": [{"key": topology.required}]}


def _claim(claim: GroupClaim) -> Obj:
    template = claim.source.removeprefix("template/")
    field = "resourceClaimName" if template == claim.source else "resourceClaimTemplateName"
    return {"name": claim.entry, field: template}


def _name_queue(metadata: Obj, queue: str) -> None:
    """Name the queue in the metadata, unless they do. It may have been that of the namespace, which is not written."""
    annotations, labels = metadata.get("annotations", {}), metadata.get("labels", {})
    if not annotations.get(GROUP_QUEUE_ANNOTATION) and not labels.get(QUEUE_LABEL) and queue != "default":
        metadata["annotations"] = annotations | {GROUP_QUEUE_ANNOTATION: queue}
