"""Small clusters in KAI's kinds: changes the objects of a small cluster, by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from msgspec.structs import replace

from pumice.kai.plugins.kubeflow import ROLE_LABEL
from pumice.kai.plugins.ray import HEAD, TYPE_LABEL
from pumice.model.devices.gpu import GPU_MEMORY_LABEL, GPU_RESOURCE, GpuShare
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import KAI_TASK_PRIORITY_LABEL, Pod
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.topology import Topology
from pumice.model.workloads.gang import (
    NON_PREEMPTIBLE,
    PREEMPTIBLE,
    SUB_GROUP_LABEL,
    Gang,
    SubGroup,
    TopologyConstraint,
)
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.testing.build import interned
from pumice.testing.clusters import RACK, ZONE

#: Domains of nodes that groups may require.
NEAR = Topology("near", (ZONE, RACK))
_FREE = Quota(None, None, 1.0)
_BEGIN = 1000.0


def in_words_of_kai(obj: Any, dice: Random) -> Object:
    """Return the object as users of KAI write it. One that is so already gets other values."""
    said = _SAID.get(type(obj))
    return obj if said is None else said(obj, dice)


def _node(one: Node, dice: Random) -> Node:
    return replace(one, labels={**one.labels, GPU_MEMORY_LABEL: dice.choice(("8000", "16000"))})


def _queue(one: Queue, dice: Random) -> Queue:
    """Return a queue in a tree of at most two levels."""
    gpu = Quota(
        dice.choice((None, 0.0, 1000.0, 2000.0)), dice.choice((None, None, 3000.0)), dice.choice((0.0, 1.0, 2.0))
    )
    cpu = dice.choice((_FREE, _FREE, Quota(2000.0, 6000.0, 1.0)))
    runtimes = (dice.choice((None, None, 0.0, 60.0)), dice.choice((None, None, 0.0, 60.0)))
    parent = "q0" if one.name != "q0" and dice.random() < 0.3 else ""
    return replace(
        one, parent=parent, priority=dice.choice((0, 100, 100)), sharing=QueueSharing(cpu, _FREE, gpu, *runtimes)
    )


def _group(one: PodGroup, dice: Random) -> PodGroup:
    gang = Gang(
        _sub_groups(dice),
        _topology(dice),
        preemptibility=dice.choice(("", "", PREEMPTIBLE, NON_PREEMPTIBLE)),
        stale_since=dice.choice((None, None, _BEGIN - 100)),
        last_start=dice.choice((None, _BEGIN - 30, _BEGIN - 100)),
    )
    return replace(one, gang=gang, topology=None, sub_groups=(), min_task_member={}, status=PodGroupStatus())


def _sub_groups(dice: Random) -> tuple[SubGroup, ...]:
    """Return no sub-groups, two pod sets, or a set with one of them."""
    if dice.random() < 0.6:
        return ()
    inner = "inner" if dice.random() < 0.5 else ""
    pod_sets = (SubGroup("a", dice.randint(1, 2), inner, _topology(dice)), SubGroup("b", dice.randint(1, 2)))
    return (SubGroup("inner", topology=_topology(dice)), *pod_sets) if inner else pod_sets


def _topology(dice: Random) -> TopologyConstraint | None:
    topologies = (
        TopologyConstraint(NEAR.name, RACK),
        TopologyConstraint(NEAR.name, ZONE, RACK),
        TopologyConstraint("gone", RACK),
    )
    return dice.choice((None, None, None, *topologies))


def _pod(one: Pod, dice: Random) -> Pod:
    labels = {**one.labels, SUB_GROUP_LABEL: dice.choice(("a", "a", "b"))}
    labels |= dice.choice(({}, {}, {KAI_TASK_PRIORITY_LABEL: "5"}, {ROLE_LABEL: "Master"}, {TYPE_LABEL: HEAD}))
    if not one.node_name and dice.random() < 0.2:
        share = dice.choice((GpuShare(0.5), GpuShare(0.25, devices=2), GpuShare(memory_mib=4000)))
        request = one.spec.request
        scalars = {name: amount for name, amount in (request.scalars or {}).items() if name != GPU_RESOURCE}
        spec = replace(one.spec, request=replace(request, scalars=scalars), gpu_share=share)
        return replace(one, labels=labels, spec=interned(spec))
    return replace(one, labels=labels)


_SAID: Mapping[type[Object], Callable[[Any, Random], Object]] = {
    Node: _node,
    Queue: _queue,
    PodGroup: _group,
    Pod: _pod,
}
