"""What replaces invalid fields of unreadable objects, by kind, and the consequences.

An unreadable pod on a node counts there, and a waiting one is held back. Unreadable nodes and queues take nothing new.
Of an unreadable PodGroup nothing is placed. An unreadable HyperNode contains no node, an unreadable PriorityClass is
the lowest, and of an unreadable quota nothing is left. Decision 0012 says why.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from msgspec.structs import replace

from pumice.model.bind_request import BindRequest
from pumice.model.devices.numa import NodeResourceTopology, Numatopology
from pumice.model.manifest.reading.fields import INT32_MAX, INT32_MIN, Obj
from pumice.model.manifest.reading.salvage import Rule, metadata_rules, rule, salvage, texts_of
from pumice.model.node import Node
from pumice.model.pod import ENDED, GROUP_NAME_ANNOTATION, UNREAD_GATE, Pod
from pumice.model.queue import PriorityClass, Queue, ResourceQuota
from pumice.model.resources import Resource
from pumice.model.topology import HyperNode, Topology
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.podgroup import OUT_OF_REACH, PodGroup
from pumice.model.workloads.workload import Workload

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME = "kubernetes.io/hostname"
_TIER_MAX = INT32_MAX - 1
_SOMETHING = Resource(1.0)  # a thousandth of a core
# Bounded here as well, since the reader that bounds them has failed.
_NAMES_MAX, _NAME_MAX = 200, 300


# -- pods


def salvaged_pod(obj: Obj, read: Callable[[Obj], Pod]) -> Pod:
    """Return what counts of a pod. Raises: FieldError for a pod without a name."""
    found = salvage(obj, read, _POD, _least_of_pod)
    pod = found.value
    # Where it runs is known, so the question is only what it holds there.
    if pod.node_name and pod.phase not in ENDED:
        return replace(pod, unparsable=found.unparsable, closes_node=found.forbids)
    # A pod that asks for nothing would count as placed: its gang could begin without it.
    request = pod.spec.request.add(_SOMETHING) if pod.spec.request.is_empty() else pod.spec.request
    # Without a node it cannot run, whatever its phase says.
    phase = pod.phase if pod.phase in ENDED else "Pending"
    # A gate keeps the pod in its gang and in the queue's demand, but it is not placed.
    gates = (*pod.gates, UNREAD_GATE)
    return replace(pod, unparsable=found.unparsable, gates=gates, phase=phase, spec=replace(pod.spec, request=request))


def _keeps_all_away(term: object) -> Obj:
    """Return the term that replaces an unreadable required anti-affinity: against every pod, in its topology if
    known."""
    key = term.get("topologyKey") if isinstance(term, dict) else None
    near = key if isinstance(key, str) and key else _HOSTNAME
    # Empty selectors match every pod in every namespace.
    return {"topologyKey": near, "labelSelector": {}, "namespaceSelector": {}}


_ALONE = {_REQUIRED: [_keeps_all_away(None)]}
_CONTAINER = r"spec\.(?:containers|initContainers)\[\d+\]"
_ANTI = r"spec\.affinity\.podAntiAffinity"
#: A pod on a node still occupies resources and keeps other pods away. Where else it might have run no longer matters.
_POD: tuple[Rule, ...] = (
    *metadata_rules(forbids=False),
    rule(rf"{_ANTI}\.{_REQUIRED}\[\d+\]", forbids=True, instead=_keeps_all_away),
    rule(rf"{_ANTI}\.{_REQUIRED}", forbids=True, instead=_ALONE[_REQUIRED]),
    rule(rf"{_ANTI}\.preferred\w+"),
    rule(_ANTI, forbids=True, instead=_ALONE),
    # Removed without consequences: a pod that runs is not moved because of a preference that cannot be read.
    rule(r"spec\.affinity\.(?:nodeAffinity|podAffinity)"),
    rule(r"spec\.affinity", forbids=True, instead={"podAntiAffinity": _ALONE}),
    rule(r"spec\.(?:nodeSelector|tolerations|topologySpreadConstraints|volumes|resourceClaims|schedulingGates)"),
    rule(r"spec\.(?:schedulerName|priorityClassName)"),
    # The highest priority, so that the pod is evicted for no other.
    rule(r"spec\.priority", instead=INT32_MAX),
    # And it evicts no other, whatever its priority.
    rule(r"spec\.preemptionPolicy", instead="Never"),
    rule(rf"(?:{_CONTAINER}|spec)\.resources\.(?:requests|limits)", key=True, forbids=True),
    rule(rf"(?:{_CONTAINER}|spec)\.resources\.(?:requests|limits)", forbids=True),
    # A port that cannot be read may be any, so the node is closed to further pods.
    rule(rf"{_CONTAINER}\.ports\[\d+\]", forbids=True),
    rule(rf"{_CONTAINER}\.(?:name|image)"),
    rule(rf"{_CONTAINER}\.(?:resources|ports|restartPolicy)", forbids=True),
    rule(_CONTAINER, forbids=True),
    rule(r"spec\.overhead", key=True, forbids=True),
    rule(r"spec\.(?:containers|initContainers|overhead|resources|hostNetwork|nodeName)", forbids=True),
    rule(r"spec\.activeDeadlineSeconds"),
    rule(r"status\.(?:conditions|startTime|nominatedNodeName)"),
    rule(r"status\.containerStatuses\[\d+\]\.state"),
    rule(r"status\.(?:containerStatuses|initContainerStatuses)", forbids=True),
    # Running is the phase that holds most.
    rule(r"status\.phase", instead="Running"),
    rule(r"status", forbids=True),
)


def _least_of_pod(obj: Obj) -> Obj:
    found = _named(obj)
    # The group too: without it, its gang would be one pod short.
    annotations = texts_of(obj["metadata"], "annotations", GROUP_NAME_ANNOTATION) if found["metadata"] else {}
    spec, status = texts_of(obj, "spec", "nodeName", "schedulerName"), texts_of(obj, "status", "phase")
    return {"metadata": found["metadata"] | {"annotations": annotations}, "spec": spec, "status": status}


# -- nodes


def salvaged_node(obj: Obj, read: Callable[[Obj], Node]) -> Node:
    """Return what counts of a node. Raises: FieldError for a node without a name."""
    found = salvage(obj, read, _NODE, _named)
    # Cordoned and not removed: its pods run on, and count.
    return replace(found.value, unparsable=found.unparsable, unschedulable=found.value.unschedulable or found.forbids)


_NODE: tuple[Rule, ...] = (
    *metadata_rules(forbids=True),
    # A taint that cannot be read may be one that keeps pods off.
    rule(r"spec\.taints\[\d+\]", forbids=True),
    rule(r"spec\.(?:taints|unschedulable)", forbids=True),
    rule(r"status\.allocatable", key=True, forbids=True),
    rule(r"status\.allocatable", forbids=True),
    rule(r"status\.(?:capacity|images)"),
)


# -- groups, queues, classes, topology


def salvaged_pod_group(obj: Obj, read: Callable[[Obj], PodGroup]) -> PodGroup:
    """Return what counts of a PodGroup. Raises: FieldError for a PodGroup without a name."""
    found = salvage(obj, read, _POD_GROUP, _least_of_pod_group)
    group = replace(found.value, unparsable=found.unparsable)
    # A minimum that no gang reaches keeps new pods from being placed, while running ones stay.
    return replace(group, min_member=OUT_OF_REACH) if found.forbids else group


_POD_GROUP: tuple[Rule, ...] = (
    *metadata_rules(forbids=True),
    rule(r"spec\.\w+", forbids=True),
    # The status is written by schedulers and says nothing of what a user forbids.
    rule(r"status\.\w+"),
)


def _least_of_pod_group(obj: Obj) -> Obj:
    # The queue, because its running pods must count where they did; the phase, because an admitted group stays
    # admitted.
    return _named(obj) | {"spec": texts_of(obj, "spec", "queue"), "status": texts_of(obj, "status", "phase")}


def salvaged_native_pod_group(obj: Obj, read: Callable[[Obj], PodGroup]) -> PodGroup:
    """Return what counts of a PodGroup of ``scheduling.k8s.io``. Raises: FieldError for one without a name."""
    found = salvage(obj, read, _NATIVE_POD_GROUP, _least_of_native_pod_group)
    group = replace(found.value, unparsable=found.unparsable)
    return replace(group, min_member=OUT_OF_REACH) if found.forbids else group


def salvaged_composite_pod_group(obj: Obj, read: Callable[[Obj], CompositePodGroup]) -> CompositePodGroup:
    """Return what counts of a CompositePodGroup. Raises: FieldError for one without a name."""
    found = salvage(obj, read, _NATIVE_POD_GROUP, _least_of_native_pod_group)
    # Fields that forbid nothing keep no pod from being placed.
    return replace(found.value, unparsable=found.unparsable if found.forbids else ())


#: A policy is required, so an unreadable one is replaced and not removed.
_ANY_POLICY: Obj = {"basic": {}}
_NATIVE_POD_GROUP: tuple[Rule, ...] = (
    rule(r"spec\.schedulingPolicy", forbids=True, instead=_ANY_POLICY),
    *_POD_GROUP,
)


def _least_of_native_pod_group(obj: Obj) -> Obj:
    return _named(obj) | {"spec": {"schedulingPolicy": _ANY_POLICY}}


def salvaged_workload(obj: Obj, read: Callable[[Obj], Workload]) -> Workload:
    """Return what counts of a Workload. Raises: FieldError for one without a name."""
    found = salvage(obj, read, _WORKLOAD, _named)
    return replace(found.value, unparsable=found.unparsable if found.forbids else ())


_WORKLOAD: tuple[Rule, ...] = (*metadata_rules(forbids=True), rule(r"spec\.\w+", forbids=True))


def salvaged_queue(obj: Obj, read: Callable[[Obj], Queue]) -> Queue:
    """Return what counts of a queue. Raises: FieldError for a queue without a name."""
    found = salvage(obj, read, _QUEUE, _least_of_queue)
    queue = replace(found.value, unparsable=found.unparsable)
    # Closed to new jobs, and protected from losing those that it has.
    return replace(queue, state="Closed", reclaimable=False) if found.forbids else queue


_QUEUE: tuple[Rule, ...] = (
    *metadata_rules(forbids=True),
    rule(r"spec\.\w+", forbids=True),
    # Unlike the rest of the status, the state decides whether the queue takes jobs.
    rule(r"status\.state", forbids=True),
    rule(r"status\.\w+"),
)


def salvaged_kai_queue(obj: Obj, read: Callable[[Obj], Queue]) -> Queue:
    """Return what counts of a queue of KAI. Raises: FieldError for a queue without a name."""
    found = salvage(obj, read, _KAI_QUEUE, _least_of_kai_queue)
    queue = replace(found.value, unparsable=found.unparsable)
    return replace(queue, state="Closed", reclaimable=False) if found.forbids else queue


_KAI_QUEUE: tuple[Rule, ...] = (
    *metadata_rules(forbids=True),
    # A text for people, on which nothing rests.
    rule(r"spec\.displayName"),
    rule(r"spec\.\w+", forbids=True),
    rule(r"status\.\w+"),
)


def _least_of_kai_queue(obj: Obj) -> Obj:
    return _named(obj) | {"spec": texts_of(obj, "spec", "parentQueue")}


def _least_of_queue(obj: Obj) -> Obj:
    return _named(obj) | {"spec": texts_of(obj, "spec", "parent")}


def salvaged_priority_class(obj: Obj, read: Callable[[Obj], PriorityClass]) -> PriorityClass:
    """Return what counts of a PriorityClass. Raises: FieldError for a class without a name."""
    # Without rules: both fields of a class decide which pods are evicted for which.
    found = salvage(obj, read, (), lambda obj: _named(obj) | {"value": INT32_MIN, "preemptionPolicy": "Never"})
    return replace(found.value, unparsable=found.unparsable)


def salvaged_resource_quota(obj: Obj, read: Callable[[Obj], ResourceQuota]) -> ResourceQuota:
    """Return what counts of a quota. Raises: FieldError for a quota without a name."""
    found = salvage(obj, read, _QUOTA, _least_of_quota)
    return replace(found.value, unparsable=found.unparsable)


#: An unreadable amount does not say how much is left, so nothing is left.
_QUOTA: tuple[Rule, ...] = (
    *metadata_rules(forbids=False),
    rule(r"(?:spec|status)\.hard\.[^.]+", forbids=True, instead="0"),
)


def _least_of_quota(obj: Obj) -> Obj:
    """Return a quota of 0 for everything that it names, and for CPU and memory."""
    names = {"cpu": "0", "memory": "0"}
    for part in ("spec", "status"):
        within = obj.get(part)
        hard = within.get("hard") if isinstance(within, dict) else None
        if isinstance(hard, dict):
            names |= {key: "0" for key in islice(hard, _NAMES_MAX) if isinstance(key, str) and len(key) <= _NAME_MAX}
    metadata = obj.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    least = _named(obj) | {"spec": {"hard": names}}
    if isinstance(namespace, str):
        least["metadata"]["namespace"] = namespace
    return least


def salvaged_hypernode(obj: Obj, read: Callable[[Obj], HyperNode]) -> HyperNode:
    """Return what counts of a HyperNode. Raises: FieldError for a HyperNode without a name."""
    found = salvage(obj, read, _HYPERNODE, lambda obj: _named(obj) | {"spec": {"tier": _TIER_MAX}})
    hypernode = replace(found.value, unparsable=found.unparsable)
    # Without members, no gang is placed by it; its nodes stay usable for all that need no topology.
    return replace(hypernode, members=()) if found.forbids else hypernode


_HYPERNODE: tuple[Rule, ...] = (
    *metadata_rules(forbids=False),
    rule(r"spec\.tier", forbids=True, instead=_TIER_MAX),
    rule(r"spec\.(?:members|tierName)", forbids=True),
)


def salvaged_numa_topology(obj: Obj, read: Callable[[Obj], Numatopology]) -> Numatopology:
    """Return what counts of a Numatopology. Raises: FieldError for one without a name."""
    found = salvage(obj, read, metadata_rules(forbids=False), _named)
    return replace(found.value, unparsable=found.unparsable)


def salvaged_node_resource_topology(obj: Obj, read: Callable[[Obj], NodeResourceTopology]) -> NodeResourceTopology:
    """Return what counts of a NodeResourceTopology. Raises: FieldError for one without a name."""
    found = salvage(obj, read, metadata_rules(forbids=False), _named)
    return replace(found.value, unparsable=found.unparsable)


def salvaged_topology(obj: Obj, read: Callable[[Obj], Topology]) -> Topology:
    """Return what counts of a Topology. Raises: FieldError for a Topology without a name."""
    found = salvage(obj, read, metadata_rules(forbids=False), lambda obj: _named(obj) | {"spec": {"levels": []}})
    topology = replace(found.value, unparsable=found.unparsable)
    return replace(topology, levels=()) if found.forbids else topology


# -- bind requests


def salvaged_bind_request(obj: Obj, read: Callable[[Obj], BindRequest]) -> BindRequest:
    """Return what counts of a BindRequest. Raises: FieldError for a request without a name."""
    found = salvage(obj, read, metadata_rules(forbids=False), _least_of_bind_request)
    return replace(found.value, unparsable=found.unparsable)


def _least_of_bind_request(obj: Obj) -> Obj:
    return _named(obj) | {"spec": texts_of(obj, "spec", "podName")}


def _named(obj: Obj) -> Obj:
    """Return the fields that identify an object."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    # Even if they are invalid: the object must not be mistaken for another one.
    identity = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    return {"metadata": identity | texts_of(obj, "metadata", "uid", "resourceVersion")}


# -- what is said


def effect_of(value: object) -> str:
    """Return the consequence of an unreadable object in words, "" if there is none."""
    match value:
        case Pod():
            if UNREAD_GATE in value.gates:
                return "it is held back"
            return "it counts, and its node accepts no new pods" if value.closes_node else "it still counts"
        case Node():
            return "it accepts no new pods" if value.quarantined else "it still counts"
        case PodGroup():
            return "its pods are not placed" if value.quarantined else "it still counts"
        case Workload():
            return "its pods are not placed" if value.unparsable else "it still counts"
        case CompositePodGroup():
            return "pods below it are not placed" if value.unparsable else "it still counts"
        case Queue():
            return "it accepts no jobs" if value.quarantined else "it still counts"
        case PriorityClass():
            return "it counts as the lowest"
        case NodeResourceTopology():
            return "the node counts as one without NUMA zones"
        case Numatopology():
            return "none of its resources counts as free"
        case ResourceQuota():
            return "the unreadable limits count as used up"
        case BindRequest():
            return "it reserves nothing"
        case Topology():
            return "it is not used for placement" if not value.levels else "it still counts"
        case HyperNode():
            return "it is not used for placement" if not value.members else "it still counts"
    return ""
