"""Write Kubernetes' CompositePodGroups as in the API."""

from __future__ import annotations

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.composite import CompositePodGroup


def composite_pod_group_object(group: CompositePodGroup, metadata: Obj) -> Obj:
    """Return the object to write, without its status."""
    spec: Obj = {"schedulingPolicy": {"gang": {"minGroupCount": group.min_groups}}}
    if group.parent:
        spec["parentCompositePodGroupName"] = group.parent
    if group.priority_class_name:
        spec["priorityClassName"] = group.priority_class_name
    if group.topology is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": group.topology.required}]}
    if group.leaves_whole:
        spec["disruptionMode"] = {"all": {}}
    if group.never_preempts:
        spec["preemptionPolicy"] = "Never"
    return {"apiVersion": group.api_version, "kind": "CompositePodGroup", "metadata": metadata, "spec": spec}
