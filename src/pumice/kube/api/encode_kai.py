"""Encode KAI's kinds as objects of the API: the inverse of ``model.manifest.kai``."""

from __future__ import annotations

import json

from pumice.kube.api.encode_claims import allocation_object
from pumice.kube.api.encode_statuses import kai_group_status
from pumice.kube.api.encode_terms import nonempty
from pumice.model.bind_request import BindRequest
from pumice.model.manifest.reading.fields import Obj
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.topology import Topology
from pumice.model.workloads.gang import Gang, SubGroup, TopologyConstraint
from pumice.model.workloads.podgroup import PodGroup

_UNLIMITED = -1


def kai_queue(queue: Queue, sharing: QueueSharing, metadata: Obj) -> Obj:
    """Return a queue. ``metadata``: as for every object."""
    resources = {
        "cpu": _quota(sharing.cpu, 1.0),
        "memory": _quota(sharing.memory, 1e6),
        "gpu": _quota(sharing.gpu, 1e3),
    }
    spec = nonempty(
        displayName=sharing.display_name,
        parentQueue=queue.parent,
        preemptMinRuntime=_duration(sharing.preempt_min_runtime),
        reclaimMinRuntime=_duration(sharing.reclaim_min_runtime),
    )
    spec |= {"priority": queue.priority, "resources": resources}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": metadata, "spec": spec}


def kai_pod_group(group: PodGroup, gang: Gang, metadata: Obj) -> Obj:
    """Return a PodGroup. ``metadata``: as for every object, with the annotations that hold times."""
    spec = {
        "minMember": group.min_member,
        "queue": group.queue,
        "markUnschedulable": gang.mark_unschedulable,
        "schedulingBackoff": gang.scheduling_backoff,
        **nonempty(
            priorityClassName=group.priority_class_name,
            preemptibility=gang.preemptibility,
            topologyConstraint=_constraint(gang.topology),
            minSubGroup=gang.min_sub_group,
            stalenessGracePeriod=_duration(gang.staleness_grace),
            preemptionDelay=_duration(gang.preemption_delay or None),
            subGroups=[_sub_group(each) for each in gang.sub_groups],
        ),
    }
    head = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata}
    return head | {"spec": spec, "status": {"phase": group.status.phase, **kai_group_status(group.status)}}


def kai_topology(topology: Topology) -> Obj:
    """Return a topology with its levels, the widest first."""
    head = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": topology.name}}
    aliases = topology.aliases or ("",) * len(topology.levels)
    levels = [{"nodeLabel": at, **nonempty(alias=alias)} for at, alias in zip(topology.levels, aliases, strict=True)]
    return head | {"spec": {"levels": levels}}


def kai_bind_request(request: BindRequest) -> Obj:
    """Return a bind request with its status."""
    spec = {
        "podName": request.pod,
        "selectedNode": request.node,
        "receivedResourceType": request.received_type,
        "receivedGPU": nonempty(count=request.gpu_count or None, portion=request.gpu_portion),
        **nonempty(selectedGPUGroups=list(request.gpu_groups), backoffLimit=request.backoff_limit),
        **nonempty(predictedNUMAZones=json.loads(request.numa_zones) if request.numa_zones else None),
        **nonempty(
            extendedResourceClaimAllocation=json.loads(request.extended_claim) if request.extended_claim else None
        ),
        **nonempty(
            resourceClaimAllocations=[
                {"name": name, "allocation": allocation_object(given, f"{request.pod_uid}/{name}")}
                for name, given in request.claims
            ]
        ),
    }
    status = nonempty(phase=request.phase, reason=request.reason, failedAttempts=request.failed_attempts or None)
    metadata: Obj = {"namespace": request.namespace, "name": request.name, **nonempty(uid=request.uid)}
    if request.pod_uid:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": request.pod, "uid": request.pod_uid}]
    head = {"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest"}
    return head | {"metadata": metadata, "spec": spec} | ({"status": status} if status else {})


def _quota(quota: Quota, unit: float) -> Obj:
    own, limit = (_UNLIMITED if each is None else each / unit for each in (quota.quota, quota.limit))
    return {"quota": own, "limit": limit, "overQuotaWeight": quota.over_quota_weight}


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.9f}s"


def _sub_group(sub: SubGroup) -> Obj:
    return {
        "name": sub.name,
        "minMember": sub.min_member,
        **nonempty(parent=sub.parent, topologyConstraint=_constraint(sub.topology), minSubGroup=sub.min_sub_group),
    }


def _constraint(constraint: TopologyConstraint | None) -> Obj | None:
    if constraint is None:
        return None
    return {
        "topology": constraint.topology,
        **nonempty(requiredTopologyLevel=constraint.required, preferredTopologyLevel=constraint.preferred),
    }
