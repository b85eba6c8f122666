"""The neutral description of a cluster as values of the model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from pumice.model.devices.claims import (
    AllocatedDevice,
    Allocation,
    Device,
    DeviceClass,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from pumice.model.devices.gpu import (
    GPU_GROUP_LABEL,
    GPU_GROUP_PREFIX,
    GPU_MEMORY_LABEL,
    MIG_STRATEGY_LABEL,
    GpuShare,
    hundredths,
    is_gpu,
)
from pumice.model.devices.numa import OBSERVED_ANNOTATION, NodeResourceTopology, NumaZone
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import (
    GROUP_NAME_ANNOTATION,
    KAI_TASK_PRIORITY_LABEL,
    NO_AFFINITY,
    Affinity,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PodSpec,
    Requirement,
)
from pumice.model.queue import PriorityClass, Queue, QueueSharing, Quota
from pumice.model.resources import Resource
from pumice.model.topology import Topology
from pumice.model.workloads.gang import (
    NON_PREEMPTIBLE,
    PREEMPTIBLE,
    SUB_GROUP_LABEL,
    Gang,
    SubGroup,
    TopologyConstraint,
)
from pumice.model.workloads.podgroup import PodGroup

Raw = Mapping[str, Any]
#: Label of a node with the number of its devices.
GPU_COUNT_LABEL = "nvidia.com/gpu.count"

GPU = "nvidia.com/gpu"
SCHEDULER = "kai-scheduler"
NOW = 1_767_268_800.0
_NAMESPACE = "default"
_QUEUE_PRIORITY = 100
_FREE: Raw = {"quota": -1, "limit": -1, "over_quota_weight": 1}


def initial_objects(case: Raw) -> Iterator[Object]:
    """All but jobs and their pods, which change from round to round."""
    for name in sorted({f"p{job['priority']}" for job in case["jobs"]}):
        yield PriorityClass(name, int(name[1:]))
    for queue in case["queues"]:
        yield _queue(queue)
    for node in case["nodes"]:
        slices = (case.get("dra") or {}).get("slices") or ()
        own = (each for each in slices if each["node"] == node["name"] and is_gpu(each["class"]))
        yield _node(node, sum(each["devices"] for each in own))
    yield from (_zones(node["name"], node["numa"]) for node in case["nodes"] if "numa" in node)
    for topology in case.get("topologies") or ():
        yield Topology(topology["name"], tuple(topology["levels"]))
    yield from _offered(case.get("dra") or {})


def _offered(dra: Raw) -> Iterator[Object]:
    """Device classes and slices. All devices of a case are of one class, so none of these selects."""
    for name in dra.get("device_classes") or ():
        yield DeviceClass(name)
    for each in dra.get("slices") or ():
        devices = tuple(Device(str(i)) for i in range(each["devices"]))
        yield ResourceSlice(each["name"], each["class"], each["node"], each["node"], devices=devices)


def claims(case: Raw, users: Mapping[str, list[str]], given: Mapping[str, Allocation]) -> Iterator[ResourceClaim]:
    """The claims of a case, with the pods that use them just now, and what they were given: by name."""
    for raw in (case.get("dra") or {}).get("claims") or ():
        reserved = raw.get("reserved_for") or []
        others = [f"other-{i}" for i in range(reserved["count"])] if isinstance(reserved, Mapping) else []
        in_use = users.get(raw["name"], [])
        yield ResourceClaim(
            raw["namespace"],
            raw["name"],
            (DeviceRequest("request", (DeviceOption(raw["class"], raw["count"]),)),),
            labels=raw.get("labels") or {},
            allocation=given.get(raw["name"]) if in_use else None,
            reserved_for=(*others, *in_use),
        )


def allocation_of(raw: Raw) -> Allocation | None:
    """What a claim of a case was given before it began."""
    devices = tuple(AllocatedDevice("request", e["driver"], e["pool"], e["device"]) for e in raw.get("allocated") or ())
    return Allocation(devices, _on(devices[0].pool)) if devices else None


def _on(node: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (node,)),)),)


def _queue(raw: Raw) -> Queue:
    cpu, memory, gpu = (_quota(raw.get(n, _FREE), u) for n, u in (("cpu", 1.0), ("memory", 1e6), ("gpu", 1e3)))
    sharing = QueueSharing(cpu, memory, gpu)
    return Queue(
        raw["name"],
        parent=raw.get("parent", ""),
        priority=raw.get("priority", _QUEUE_PRIORITY),
        creation=float(raw["created_s"]),
        sharing=sharing,
    )


def _quota(raw: Raw, unit: float) -> Quota:
    own, limit = (None if raw[key] == -1 else raw[key] * unit for key in ("quota", "limit"))
    return Quota(own, limit, float(raw["over_quota_weight"]))


def _zones(node: str, raw: Raw) -> NodeResourceTopology:
    zones = tuple(NumaZone(z["id"], _zone_amount(z["allocatable"]), _zone_amount(z["available"])) for z in raw["zones"])
    return NodeResourceTopology(node, raw["policy"], raw["scope"] == "pod", zones)


def _zone_amount(raw: Raw) -> Resource:
    """CPU is in milli-cores here."""
    return Resource.from_list({name: f"{amount}m" if name == "cpu" else amount for name, amount in raw.items()})


def _node(raw: Raw, claimed: int) -> Node:
    """``claimed``: how many of its GPUs are there to be claimed, and no resource."""
    mig = raw.get("mig") or {}
    amounts = {
        "cpu": f"{raw['cpu_milli']}m",
        "memory": raw["memory"],
        "pods": raw["pods"],
        GPU: raw["gpus"] - claimed,
        **mig.get("instances", {}),
    }
    labels = {
        "kai.scheduler/type": raw["name"],
        GPU_MEMORY_LABEL: str(raw["gpu_memory"]),
        GPU_COUNT_LABEL: str(raw.get("physical_gpus", raw["gpus"])),
        **({MIG_STRATEGY_LABEL: mig["strategy"]} if mig else {}),
        **raw.get("labels", {}),
    }
    amount = Resource.from_list(amounts)
    return Node(raw["name"], allocatable=amount, capacity=amount, labels=labels)


# -- jobs


def pod_group(job: Raw) -> PodGroup:
    """Ages are counted back from ``NOW``."""
    tree = job.get("subgroups") or {}
    gang = Gang(
        sub_groups=tuple(_sub_groups(tree, "")),
        topology=_constraint(tree),
        min_sub_group=tree.get("min_subgroup"),
        preemptibility=PREEMPTIBLE if job["preemptible"] else NON_PREEMPTIBLE,
        staleness_grace=job.get("staleness_grace_s"),
        preemption_delay=job.get("preemption_delay_s", 0.0),
        stale_since=_ago(job.get("stale_age_s")),
        last_start=_ago(job.get("last_start_age_s")),
    )
    return PodGroup(
        namespace_of(job),
        job["name"],
        uid=job["name"],
        queue=job["queue"],
        min_member=job.get("min_available", 1),
        priority_class_name=f"p{job['priority']}",
        creation=NOW - job["age_s"],
        gang=gang,
    )


def namespace_of(job: Raw) -> str:
    """The namespace of a job and its pods."""
    return str(job.get("namespace", _NAMESPACE))


def _ago(age: float | None) -> float | None:
    return None if age is None else NOW - age


def _sub_groups(tree: Raw, parent: str) -> Iterator[SubGroup]:
    for podset in tree.get("podsets") or ():
        yield SubGroup(podset["name"], podset["min_available"], parent, _constraint(podset))
    for group in tree.get("groups") or ():
        yield SubGroup(group["name"], 0, parent, _constraint(group), group.get("min_subgroup"))
        yield from _sub_groups(group, group["name"])


def _constraint(owner: Raw) -> TopologyConstraint | None:
    raw = owner.get("topology_constraint") or {}
    required, preferred = raw.get("required", ""), raw.get("preferred", "")
    # As in manifests: a constraint without levels restricts nothing, whether it names a topology or not.
    return TopologyConstraint(raw.get("topology", ""), required, preferred) if required or preferred else None


# -- pods


#: The phase of a pod by the state of its task, where they differ.
_PHASES = dict.fromkeys(("Pipelined", "Bound", "Gated"), "Pending") | dict.fromkeys(
    ("Releasing", "StuckInReleasing"), "Running"
)


class Pods:
    """Pods of tasks; equal specs are one object, as a decoder makes them."""

    def __init__(self) -> None:
        self._specs: dict[PodSpec, PodSpec] = {}

    def pod(self, job: Raw, task: Raw) -> Pod:
        """The pod of a task as it is in the state that ``task`` gives."""
        namespace, state = namespace_of(job), task["state"]
        spec = self._spec(namespace, task.get("request") or job["request"], task, job.get("qos", "Burstable"))
        return Pod(
            namespace,
            task["id"],
            uid=task["id"],
            spec=self._specs.setdefault(spec, spec),
            labels=_labels(task, spec),
            annotations={GROUP_NAME_ANNOTATION: job["name"], **_observed(task)},
            scheduler_name=SCHEDULER,
            node_name="" if state in ("Pending", "Pipelined") else task.get("node", ""),
            phase=str(_PHASES.get(state, state)),
            deletion={"Releasing": NOW, "StuckInReleasing": NOW - 1000.0}.get(state),
            gates=("example.com/gate",) if state == "Gated" else (),
        )

    def _spec(self, namespace: str, request: Raw, task: Raw, qos: str) -> PodSpec:
        amounts = {
            "cpu": f"{request['cpu_milli']}m",
            "memory": request["memory"],
            "pods": 1,
            **({GPU: request["gpus"]} if request.get("gpus") else {}),
            **request.get("mig", {}),
        }
        return PodSpec(
            Resource.from_list(amounts),
            affinity=_affinity(namespace, task),
            resource_claims=tuple(_claim_name(claim) for claim in task.get("claims") or ()),
            gpu_share=_share(request, task),
            qos=qos,
        )


def _observed(task: Raw) -> dict[str, str]:
    zones = [{"zone": zone, "amount": amount} for zone, amount in (task.get("numa_observed") or {}).items()]
    return {OBSERVED_ANNOTATION: json.dumps(zones)} if zones else {}


def _claim_name(claim: Any) -> str:
    return str(claim["name"] if isinstance(claim, Mapping) else claim)


def _share(request: Raw, task: Raw) -> GpuShare | None:
    legacy = bool(task.get("legacy_mig"))
    devices = request.get("gpu_devices", 1)
    if "gpu_fraction" in request:
        return GpuShare(hundredths(request["gpu_fraction"]), 0, devices, legacy)
    if "gpu_memory" in request:
        return GpuShare(0.0, request["gpu_memory"], devices, legacy)
    return GpuShare(legacy_mig=True) if legacy else None


def _labels(task: Raw, spec: PodSpec) -> dict[str, str]:
    labels = dict(task.get("labels") or {})
    if "subgroup" in task:
        labels[SUB_GROUP_LABEL] = task["subgroup"]
    if "task_priority" in task:
        labels[KAI_TASK_PRIORITY_LABEL] = str(task["task_priority"])
    if spec.gpu_share is not None and task["state"] not in ("Pending", "Failed"):
        labels |= group_labels([f"{task['id']}-{i}" if g == "auto" else g for i, g in enumerate(_groups(task))])
    return labels


def _groups(task: Raw) -> list[str]:
    groups = task.get("gpu_groups") or []
    return [groups] if isinstance(groups, str) else list(groups)


def group_labels(groups: list[str]) -> dict[str, str]:
    """As KAI's binder labels a pod that shares devices."""
    if len(groups) == 1:
        return {GPU_GROUP_LABEL: groups[0]}
    return {f"{GPU_GROUP_PREFIX}{group}": group for group in groups}


def _affinity(namespace: str, task: Raw) -> Affinity:
    found = NO_AFFINITY
    if (term_of := task.get("node_affinity_in")) is not None:
        term = NodeSelectorTerm((Requirement(term_of["key"], "In", tuple(term_of["values"])),))
        found = replace(found, node_required=(term,))
    near, away = (_pod_terms(namespace, task.get(key)) for key in ("pod_affinity", "pod_anti_affinity"))
    return replace(found, pod_required=near, anti_required=away) if near or away else found


def _pod_terms(namespace: str, term_of: Raw | None) -> tuple[PodAffinityTerm, ...]:
    if term_of is None:
        return ()
    wanted = tuple(Requirement(k, "In", (v,)) for k, v in sorted(term_of["match_labels"].items()))
    return (PodAffinityTerm(term_of["topology_key"], LabelSelector(wanted), (namespace,)),)
