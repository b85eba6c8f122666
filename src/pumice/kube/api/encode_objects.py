"""Encode model values as objects of the API that mean the same to a scheduler.

The model has only what decides, so only that is written: no environment, no commands, no secrets. A pod's request is a
sum over its containers; it is written as the same number of containers, of which the first requests nearly all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pumice.kube.api.encode_claims import claim_object, device_class_object, resource_slice_object
from pumice.kube.api.encode_kai import kai_bind_request, kai_pod_group, kai_queue, kai_topology
from pumice.kube.api.encode_native import (
    as_member,
    composite_pod_group_object,
    native_pod_group_object,
    workload_object,
)
from pumice.kube.api.encode_numa import divided_containers, node_resource_topology_object, numa_topology_object
from pumice.kube.api.encode_statuses import volcano_group_status
from pumice.kube.api.encode_terms import (
    instant_object,
    node_selector_object,
    node_term_object,
    nonempty,
    selector_object,
    toleration_objects,
)
from pumice.kube.api.encode_volumes import (
    csi_node_object,
    storage_capacity_object,
    storage_class_object,
    volume_claim_object,
    volume_object,
)
from pumice.model.bind_request import BindRequest
from pumice.model.config_map import ConfigMap
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from pumice.model.devices.numa import NodeResourceTopology, Numatopology
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Object
from pumice.model.manifest.reading.fields import Obj
from pumice.model.node import Node
from pumice.model.pod import (
    WHOLE_OBJECT_ANNOTATIONS,
    Affinity,
    Pod,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
)
from pumice.model.pod_request import DEFAULT_MEMORY, DEFAULT_MILLI_CPU
from pumice.model.queue import NodeGroupAffinity, PriorityClass, Queue, ResourceQuota
from pumice.model.resources import CPU, MEMORY, PODS, Resource
from pumice.model.topology import HyperNode, HyperNodeMember, Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.workload import Workload
from pumice.runtime.controllers.encode import podgroup_object

_VOLCANO = "scheduling.volcano.sh/v1beta1"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def object_of(value: Object) -> Obj:
    """Return the object to write."""
    match value:
        case Pod():
            return as_member(_pod(value), value)
        case Node():
            return _node(value)
        case PodGroup(native=native) if native is not None:
            return native_pod_group_object(value, native, _metadata(value))
        case PodGroup():
            return _pod_group(value) if value.gang is None else kai_pod_group(value, value.gang, _metadata(value))
        case CompositePodGroup():
            return composite_pod_group_object(value, _metadata(value))
        case Workload():
            return workload_object(value, _metadata(value))
        case Queue():
            return _queue(value) if value.sharing is None else kai_queue(value, value.sharing, _metadata(value))
        case PriorityClass():
            return _priority_class(value)
        case HyperNode():
            return _hypernode(value)
        case Topology():
            return kai_topology(value)
        case ResourceClaim() | ResourceClaimTemplate():
            return claim_object(value)
        case ResourceSlice():
            return resource_slice_object(value)
        case DeviceClass():
            return device_class_object(value)
        case PersistentVolume():
            return volume_object(value)
        case PersistentVolumeClaim():
            return volume_claim_object(value)
        case StorageClass():
            return storage_class_object(value)
        case CSINode():
            return csi_node_object(value)
        case CSIStorageCapacity():
            return storage_capacity_object(value)
        case ConfigMap():
            metadata = {"namespace": value.namespace, "name": value.name}
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        case BindRequest():
            return kai_bind_request(value)
        case PodDisruptionBudget():
            return _disruption_budget(value)
        case ResourceQuota():
            return _resource_quota(value)
        case NodeUsage():
            return _node_usage(value)
        case QueueHistory():
            return _queue_history(value)
        case Numatopology():
            return numa_topology_object(value)
        case NodeResourceTopology():
            return node_resource_topology_object(value)


def _metadata(value: Pod | Node | PodGroup | CompositePodGroup | Workload | Queue) -> Obj:
    annotations = {key: text for key, text in value.annotations.items() if key not in WHOLE_OBJECT_ANNOTATIONS}
    return nonempty(
        namespace=getattr(value, "namespace", ""),
        name=value.name,
        uid=value.uid,
        creationTimestamp=instant_object(value.creation),
        resourceVersion=value.resource_version,
        labels=dict(value.labels),
        annotations=annotations,
    )


def _amounts(resource: Resource | None) -> dict[str, str] | None:
    return None if resource is None else resource.to_list()


# -- pods


def _pod(pod: Pod) -> Obj:
    metadata = _metadata(pod)
    if pod.deletion is not None:
        metadata["deletionTimestamp"] = instant_object(pod.deletion)
    if pod.owner is not None:
        kind, name, uid = pod.owner
        metadata["ownerReferences"] = [{"kind": kind, "name": name, "uid": uid, "controller": True}]
    conditions = [
        nonempty(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            lastTransitionTime=instant_object(each.last_transition),
        )
        for each in pod.conditions
    ]
    ended = instant_object(pod.finish_time or 0.0)
    status = nonempty(
        phase=pod.phase,
        startTime=instant_object(pod.start_time or 0.0),
        nominatedNodeName=pod.nominated_node,
        conditions=conditions,
        containerStatuses=[{"state": {"terminated": {"finishedAt": ended}}}] if ended else None,
        resourceClaimStatuses=[
            {"name": f"r{i}", "resourceClaimName": made} for i, made in enumerate(pod.made_claims) if made
        ],
    )
    spec = _spec(pod.spec)
    if pod.config_maps:
        needed = [{"configMapRef": {"name": name}} for name in pod.config_maps]
        spec["containers"] = [{**spec["containers"][0], "envFrom": needed}, *spec["containers"][1:]]
    spec = {
        **spec,
        **nonempty(
            schedulerName=pod.scheduler_name,
            nodeName=pod.node_name,
            schedulingGates=[{"name": name} for name in pod.gates],
        ),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _spec(spec: PodSpec) -> Obj:
    containers = _containers(spec)
    if spec.containers is not None:
        containers, sidecars = divided_containers(containers, spec)
    else:
        sidecars = [{**containers.pop(), "restartPolicy": "Always"}] if spec.has_sidecar and len(containers) > 1 else []
    return nonempty(
        containers=containers,
        initContainers=sidecars,
        overhead=_overhead(spec),
        nodeSelector=dict(spec.node_selector),
        affinity=_affinity(spec.affinity),
        tolerations=toleration_objects(spec.tolerations),
        topologySpreadConstraints=[_spread(each) for each in spec.spread],
        volumes=[
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(spec.claim_names)
        ],
        resourceClaims=[_claim(i, name) for i, name in enumerate(spec.resource_claims)],
        priority=spec.priority,
        priorityClassName=spec.priority_class_name,
        preemptionPolicy=spec.preemption_policy,
    )


def _containers(spec: PodSpec) -> list[Obj]:
    """Return the same number of containers. As many name no CPU (or memory) as the scores count defaults for."""
    count = max(spec.container_count, 1)
    named = {name: count - silent for name, silent in _silent(spec, count).items()}
    asked = {name: text for name, text in spec.request.to_list().items() if name != PODS}
    ports = [
        {"containerPort": port.port, "hostPort": port.port, "protocol": port.protocol, "hostIP": port.ip}
        for port in spec.host_ports
    ]
    found: list[Obj] = []
    names = [name for name, _ in spec.numa.containers] if spec.numa is not None else []
    for i in range(count):
        requests = asked if i == 0 else {CPU: "0", MEMORY: "0"}
        requests = {name: text for name, text in requests.items() if i < named.get(name, count)}
        limits = {name: text for name, text in spec.limit.to_list().items() if spec.limit.get(name)} if i == 0 else {}
        resources = nonempty(requests=requests, limits=limits)
        image = spec.images[i] if i < len(spec.images) else ""
        found.append(
            nonempty(
                name=names[i] if i < len(names) else f"c{i}",
                image=image,
                resources=resources,
                ports=ports if i == 0 else None,
            )
        )
    return found


def _silent(spec: PodSpec, count: int) -> dict[str, int]:
    """Return how many of ``count`` containers name no CPU, and no memory: for each of them a default was added."""
    missing = {
        CPU: (spec.nonzero_milli_cpu - spec.request.milli_cpu) / DEFAULT_MILLI_CPU,
        MEMORY: (spec.nonzero_memory - spec.request.memory) / DEFAULT_MEMORY,
    }
    return {name: min(max(round(number), 0), count) for name, number in missing.items()}


def _overhead(spec: PodSpec) -> dict[str, str]:
    """Return what is requested although no container names it."""
    silent = _silent(spec, count := max(spec.container_count, 1))
    return {
        name: text
        for name, text in spec.request.to_list().items()
        if silent.get(name) == count and spec.request.get(name)
    }


def _claim(i: int, name: str) -> Obj:
    template = name.removeprefix("template/")
    key = "resourceClaimName" if template == name else "resourceClaimTemplateName"
    return {"name": f"r{i}", key: template}


# -- terms


def _pod_term(term: PodAffinityTerm) -> Obj:
    found: Obj = {"topologyKey": term.topology_key, "namespaces": list(term.namespaces)}
    if term.selector is not None:
        found["labelSelector"] = selector_object(term.selector)
    if term.namespace_selector is not None:
        found["namespaceSelector"] = selector_object(term.namespace_selector)
    return found


def _weighted(terms: Iterable[PodAffinityTerm]) -> list[Obj]:
    return [{"weight": term.weight, "podAffinityTerm": _pod_term(term)} for term in terms]


def _affinity(terms: Affinity) -> Obj:
    node: Obj = {}
    if terms.node_required is not None:
        node[_REQUIRED] = node_selector_object(terms.node_required)
    if terms.node_preferred:
        node[_PREFERRED] = [{"weight": t.weight, "preference": node_term_object(t.term)} for t in terms.node_preferred]
    near, far = (
        nonempty(**{_REQUIRED: [_pod_term(term) for term in required], _PREFERRED: _weighted(preferred)})
        for required, preferred in (
            (terms.pod_required, terms.pod_preferred),
            (terms.anti_required, terms.anti_preferred),
        )
    )
    return nonempty(nodeAffinity=node, podAffinity=near, podAntiAffinity=far)


def _spread(each: TopologySpreadConstraint) -> Obj:
    found: Obj = {
        "maxSkew": each.max_skew,
        "topologyKey": each.topology_key,
        "whenUnsatisfiable": each.when_unsatisfiable,
        "minDomains": each.min_domains,
        "nodeAffinityPolicy": each.node_affinity_policy,
        "nodeTaintsPolicy": each.node_taints_policy,
    }
    if each.selector is not None:
        found["labelSelector"] = selector_object(each.selector)
    return found


# -- the rest


def _node(node: Node) -> Obj:
    taints = [nonempty(key=t.key, value=t.value, effect=t.effect) for t in node.taints]
    images = [{"names": list(image.names), "sizeBytes": image.size_bytes} for image in node.images]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(node),
        "spec": nonempty(taints=taints, unschedulable=node.unschedulable or None),
        "status": nonempty(allocatable=_amounts(node.allocatable), capacity=_amounts(node.capacity), images=images),
    }


def _pod_group(group: PodGroup) -> Obj:
    return {
        **podgroup_object(group, []),
        "metadata": _metadata(group),
        "status": volcano_group_status(group.status),
    }


def _queue(queue: Queue) -> Obj:
    spec = nonempty(
        weight=queue.weight,
        capability=_amounts(queue.capability),
        deserved=_amounts(queue.deserved),
        guarantee={"resource": _amounts(queue.guarantee)} if queue.guarantee is not None else None,
        priority=queue.priority or None,
        parent=queue.parent,
        affinity=_node_groups(queue.affinity),
    )
    spec["reclaimable"] = queue.reclaimable
    status = nonempty(state=queue.state, allocated=_amounts(queue.allocated))
    return {"apiVersion": _VOLCANO, "kind": "Queue", "metadata": _metadata(queue), "spec": spec, "status": status}


def _node_groups(affinity: NodeGroupAffinity | None) -> Mapping[str, Obj] | None:
    if affinity is None:
        return None
    return {
        "nodeGroupAffinity": {_REQUIRED: list(affinity.required), _PREFERRED: list(affinity.preferred)},
        "nodeGroupAntiAffinity": {_REQUIRED: list(affinity.anti_required), _PREFERRED: list(affinity.anti_preferred)},
    }


def _priority_class(found: PriorityClass) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": found.name},
        "value": found.value,
        **nonempty(globalDefault=found.global_default or None, preemptionPolicy=found.preemption_policy),
    }


def _hypernode(found: HyperNode) -> Obj:
    metadata = nonempty(
        name=found.name, creationTimestamp=instant_object(found.creation), resourceVersion=found.resource_version
    )
    spec = {
        "tier": found.tier,
        **nonempty(tierName=found.tier_name, members=[_member(each) for each in found.members]),
    }
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata, "spec": spec}


def _disruption_budget(budget: PodDisruptionBudget) -> Obj:
    disrupted = dict.fromkeys(budget.disrupted, instant_object(1.0))
    status = {"disruptionsAllowed": budget.allowed, **nonempty(disruptedPods=disrupted)}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": budget.namespace, "name": budget.name},
        "spec": nonempty(selector=selector_object(budget.selector)),
        "status": status,
    }


def _resource_quota(quota: ResourceQuota) -> Obj:
    hard = dict.fromkeys(quota.limited, "0") | quota.hard.to_list()
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"namespace": quota.namespace, "name": quota.name},
        "status": {"hard": {name: hard[name] for name in quota.limited}, "used": quota.used.to_list()},
    }


def _node_usage(usage: NodeUsage) -> Obj:
    status = {
        "cpuPercent": usage.cpu,
        "memoryPercent": usage.memory,
        **nonempty(measuredAt=instant_object(usage.at)),
    }
    return {
        "apiVersion": "pumice.dev/v1alpha1",
        "kind": "NodeUsage",
        "metadata": {"name": usage.name},
        "status": status,
    }


def _queue_history(history: QueueHistory) -> Obj:
    shares = {"cpuShare": history.cpu, "memoryShare": history.memory, "gpuShare": history.gpu}
    return {
        "apiVersion": "pumice.dev/v1alpha1",
        "kind": "QueueHistory",
        "metadata": {"name": history.name},
        "status": shares | nonempty(measuredAt=instant_object(history.at)),
    }


def _member(member: HyperNodeMember) -> Obj:
    selector: Obj = {}
    if member.exact is not None:
        selector["exactMatch"] = {"name": member.exact}
    elif member.regex is not None:
        selector["regexMatch"] = {"pattern": member.regex}
    else:
        selector["labelMatch"] = selector_object(member.labels) or {}
    return {"type": member.type, "selector": selector}
