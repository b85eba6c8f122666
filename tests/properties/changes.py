"""Random things that happen to a cluster: one event at a time, always possible in a real one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.model.bind_request import BindRequest
from pumice.model.devices.claims import Device, DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from pumice.model.devices.numa import BEST_EFFORT, SINGLE, NodeResourceTopology, Numatopology
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Event, Gone, Object, Seen
from pumice.model.node import Node
from pumice.model.pod import QUEUE_GATE, LabelSelector, Pod
from pumice.model.queue import PriorityClass, Queue, ResourceQuota
from pumice.model.topology import HyperNode, Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.model.workloads.gang import SUB_GROUP_LABEL, Gang, SubGroup, TopologyConstraint
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, PodGroupStatus, SubGroupPolicy
from pumice.testing.build import hypernode, node, resource, spec
from pumice.testing.devices import asked, offered

POLICIES = (
    (),
    (SubGroupPolicy("half", sub_group_size=1, match_label_keys=("part",)),),
    (SubGroupPolicy("half", NetworkTopology("hard", 1), 2, 1, LabelSelector(), ("part",)), SubGroupPolicy("rest")),
)
#: None, as Volcano has it, most of the time.
GANGS = (None, None, Gang(), Gang((SubGroup("a"), SubGroup("b", 2)), TopologyConstraint("racks", "zone")))

PHASES = ("", "Pending", "Succeeded", "Failed")
#: Kinds that no world has to begin with: some come, change and go.
BESIDE: tuple[type[Object], ...] = (
    *(PodDisruptionBudget, ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass, Topology),
    *(PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIStorageCapacity),
    *(ResourceQuota, NodeUsage, QueueHistory, Numatopology, NodeResourceTopology, BindRequest),
)


def key_in_kind(item: Object) -> str:
    """By what an object is known among those of its kind."""
    return item.key if hasattr(item, "key") else item.name


@st.composite
def beside(draw: st.DrawFn) -> Object:
    kind, name = draw(st.sampled_from(BESIDE)), draw(st.sampled_from(["a", "b"]))
    if kind is PodDisruptionBudget:
        selector = draw(st.sampled_from([None, LabelSelector()]))
        return PodDisruptionBudget("ns", name, selector, draw(st.integers(0, 2)))
    if kind is Topology:
        return Topology(name, draw(st.sampled_from([("zone",), ("zone", "rack")])))
    if kind is ResourceQuota:
        return ResourceQuota("ns", name, resource(4), resource(1), ("cpu",))
    if kind is Numatopology:
        return Numatopology("n0", "static")
    if kind is NodeResourceTopology:
        return NodeResourceTopology("n0", SINGLE)
    if kind is NodeUsage:
        return NodeUsage(draw(st.sampled_from(["n0", "gone"])), 50.0, 60.0, 1.0)
    if kind is QueueHistory:
        return QueueHistory(draw(st.sampled_from(["q0", "gone"])), 0.5, 0.5, 0.25, 1.0)
    if kind is ResourceSlice:
        return replace(offered("n0", draw(st.integers(0, 2))), name=name)
    if kind in (DeviceClass, PersistentVolume, StorageClass, CSINode):
        return kind(name)
    if kind is PersistentVolumeClaim:
        return PersistentVolumeClaim("ns", name)
    if kind is CSIStorageCapacity:
        return CSIStorageCapacity("ns", name, "fast")
    if kind is BindRequest:
        return BindRequest("ns", name, draw(st.sampled_from(["p0", "gone"])), "n0")
    return kind("ns", name, asked(**{"gpu.example.com": draw(st.integers(1, 3))}))


@st.composite
def changes(draw: st.DrawFn, objects: list[Object]) -> Event:
    """An object that is there changes or goes, or one comes."""
    if draw(st.integers(0, 9)) == 0:
        return Seen(draw(beside()))
    if not objects or draw(st.integers(0, 9)) == 0:
        return Seen(node(f"new{draw(st.integers(0, 2))}", draw(st.sampled_from([1, 8])), gpu=draw(st.integers(0, 1))))
    item = draw(st.sampled_from(objects))
    if draw(st.integers(0, 4)) == 0:
        return Gone(type(item), key_in_kind(item))
    return Seen(draw(changed(item, [o.name for o in objects if isinstance(o, Node)])))


@st.composite
def changed(draw: st.DrawFn, item: Any, node_names: list[str]) -> Object:
    match item:
        case Pod():
            return draw(changed_pod(item, node_names))
        case PodGroup():
            return draw(changed_group(item))
        case Node():
            scalars = draw(st.sampled_from([{}, {}, {"example.com/new": "3"}]))
            return replace(
                item,
                labels={**item.labels, "zone": draw(st.sampled_from(["z0", "z1"]))},
                allocatable=resource(draw(st.integers(1, 8)), "8Gi", pods=9, **scalars),
            )
        case Queue():
            return replace(
                item,
                weight=draw(st.integers(1, 3)),
                state=draw(st.sampled_from(["Open", "Closed"])),
                guarantee=draw(st.sampled_from([None, resource(1, **{"example.com/rare": 1})])),
                allocated=resource(draw(st.integers(0, 2))),
            )
        case PriorityClass():
            return replace(item, value=draw(st.integers(-5, 5)), global_default=draw(st.booleans()))
        case HyperNode():
            return hypernode(item.name, item.tier, draw(st.lists(st.sampled_from(["n0", "n1", "new0"]), max_size=2)))
        case PodDisruptionBudget():
            return replace(item, allowed=draw(st.integers(0, 2)))
        case Topology():
            return replace(item, levels=draw(st.sampled_from([(), ("zone",), ("rack", "zone")])))
        case ResourceQuota():
            return replace(item, used=resource(draw(st.integers(0, 2))))
        case Numatopology():
            return replace(item, free=draw(st.sampled_from([None, (), (1, 2)])))
        case NodeResourceTopology():
            return replace(item, policy=draw(st.sampled_from([SINGLE, BEST_EFFORT])), by_pod=draw(st.booleans()))
        case BindRequest():
            return replace(item, node=draw(st.sampled_from(["n0", "n1", "gone"])), phase=draw(st.sampled_from(PHASES)))
        case NodeUsage():
            return replace(item, cpu=draw(st.sampled_from([0.0, 50.0, 90.0])), at=draw(st.sampled_from([0.0, 2.0])))
        case QueueHistory():
            return replace(item, gpu=draw(st.sampled_from([0.0, 0.3, 2.0])))
        case ResourceClaim() | ResourceClaimTemplate():
            return replace(item, requests=asked(**{"gpu.example.com": draw(st.integers(1, 3))}))
        case ResourceSlice():
            return replace(item, devices=tuple(Device(str(i)) for i in range(draw(st.integers(0, 3)))))
        case DeviceClass():
            return replace(item, selectors=draw(st.sampled_from([(), ("true",)])))
        case PersistentVolume() | PersistentVolumeClaim():
            return replace(item, size=float(draw(st.integers(0, 2))))
        case StorageClass():
            return replace(item, waits=draw(st.booleans()))
        case CSINode():
            return replace(item, limits=draw(st.sampled_from([(), (("d", 1),)])))
        case CSIStorageCapacity():
            return replace(item, capacity=float(draw(st.integers(0, 2))))
    raise AssertionError(item)


@st.composite
def changed_group(draw: st.DrawFn, group: PodGroup) -> PodGroup:
    return replace(
        group,
        min_member=draw(st.integers(0, 4)),
        queue=draw(st.sampled_from(["q0", "q1", "", "nowhere"])),
        sub_groups=draw(st.sampled_from(POLICIES)),
        gang=draw(st.sampled_from(GANGS)),
        topology=draw(st.sampled_from([None, NetworkTopology("hard", 1), NetworkTopology("soft")])),
        min_task_member=draw(st.sampled_from([{}, {"worker": 1}])),
        min_resources=draw(st.sampled_from([None, resource(1), resource(1, **{"example.com/asked": 1})])),
        priority_class_name=draw(st.sampled_from(["", "low"])),
        status=PodGroupStatus(draw(st.sampled_from(["Pending", "Inqueue", "Running"]))),
    )


@st.composite
def changed_pod(draw: st.DrawFn, pod: Pod, node_names: list[str]) -> Pod:
    """A step in a pod's life; once it has a node it keeps it."""
    there = pod.node_name or draw(st.sampled_from(["", *node_names, "gone"]))
    phase = draw(st.sampled_from(["Pending", "Running", "Running", "Succeeded", "Failed"])) if there else "Pending"
    request = draw(st.sampled_from([pod.spec, pod.spec, spec(2, "1Gi"), spec(1, gpu=1)]))
    return replace(
        pod,
        spec=request,
        node_name=there,
        phase=phase,
        deletion=draw(st.sampled_from([pod.deletion, None, 5.0])),
        gates=() if there else draw(st.sampled_from([pod.gates, (), (QUEUE_GATE,), ("example.com/wait",)])),
        nominated_node=draw(st.sampled_from(["", "n0"])),
        labels=draw(st.sampled_from([pod.labels, {"part": "0"}, {"part": "1"}, {SUB_GROUP_LABEL: "a"}])),
        resource_version=str(draw(st.integers(0, 9))),
        closes_node=bool(there) and draw(st.sampled_from([False, False, True])),
    )
