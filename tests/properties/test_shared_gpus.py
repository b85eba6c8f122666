"""No cycle puts a pod on a GPU that does not exist, whatever pods say of their node and their device."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.decisions import GPU_GROUPS, Bind
from pumice.model.devices.gpu import GPU_GROUP_LABEL, RESERVATION_NAMESPACE, GpuShare, gpu_groups, labels_of_groups
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import Pod
from tests.plain_models import MANY_WORLDS
from tests.unit.kai.cluster import ALL, GPU, NOW, PLUGINS, cycle, job, node, policy, queue, store

MIB = 1000
NODES = ("a", "b", "c")
SHARES = (GpuShare(0.01), GpuShare(0.5), GpuShare(0.3, devices=2), GpuShare(memory_mib=1), GpuShare(memory_mib=400))
UNREADABLE = GpuShare(1.0, problem="found 2, wanted a number below 1")


def world(dice: Random) -> list[Object]:
    """Make nodes of no GPU to three, and pods that claim to be on them: more, often, than there are devices for."""
    labels = {"nvidia.com/gpu.memory": str(MIB)}
    found: list[Object] = [node(name, dice.choice((0, 1, 1, 2, 3)), labels=labels) for name in NODES]
    found += [queue("q", 0), queue("r", dice.choice((0, 2, None)))]
    for i in range(dice.randint(1, 8)):
        found += _on_a_node(dice, f"on{i}")
    for i in range(dice.randint(1, 4)):
        tasks, priority = [""] * dice.randint(1, 3), dice.choice((50, 75))
        found += _job(dice, f"new{i}", tasks, dice.choice((*SHARES, None)), priority=priority)
    return found


def _on_a_node(dice: Random, name: str) -> list[Object]:
    """Make a pod that says that it is on a node; often in a group of devices, for which now and then one is
    reserved."""
    at = dice.choice((*NODES, *NODES, "gone"))
    group, share = f"{at}-{dice.choice('ghi')}", dice.choice((*SHARES, UNREADABLE, None, None))
    *found, pod = _job(dice, name, [at], share)
    assert isinstance(pod, Pod)
    if share is not None and dice.random() < 0.6:
        pod = replace(pod, labels=labels_of_groups((group,), share))
    if dice.random() < 0.3:
        (holds,) = (each for each in job(f"{name}-reserves", "q", [at]) if isinstance(each, Pod))
        holds = replace(holds, namespace=RESERVATION_NAMESPACE, annotations={}, scheduler_name="other")
        found.append(replace(holds, labels={GPU_GROUP_LABEL: group}))
    return [
        *found,
        replace(
            pod,
            creation=NOW - dice.randint(0, 9),
            deletion=NOW if dice.random() < 0.15 else None,
            phase=dice.choice(("Running", "Running", "Pending")),
        ),
    ]


def _job(dice: Random, name: str, tasks: list[str], share: GpuShare | None, **more: Any) -> list[Object]:
    """Make a job whose pods share GPUs, or take whole ones if ``share`` is None."""
    found = job(name, dice.choice("qr"), tasks, gpus=0 if share else dice.choice((1, 1, 2)), minimum=1, **more)
    return [replace(o, spec=replace(o.spec, gpu_share=share)) if isinstance(o, Pod) else o for o in found]


class Devices:
    """The devices of one node, as its pods and the binds to it count them. A reservation pod holds a device; one for
    each group does not come on top of that group."""

    def __init__(self, pods: Iterable[Pod], binds: Iterable[tuple[Pod, Bind]]) -> None:
        self.whole, self.held, self.joined, self.takes_more = 0.0, Counter[str](), set[str](), False
        reserved = set[str]()
        for pod in pods:
            self._add(pod, gpu_groups(pod.labels))
            if pod.namespace == RESERVATION_NAMESPACE:
                reserved.update(gpu_groups(pod.labels))
        self.whole -= len(reserved & self.held.keys())
        before = set(self.held)
        for pod, bind in binds:
            groups = bind.context.get(GPU_GROUPS, ())
            assert isinstance(groups, tuple)
            self.joined.update(groups)
            self.takes_more |= not groups or not before.issuperset(groups)
            self._add(pod, groups)

    def _add(self, pod: Pod, groups: tuple[str, ...]) -> None:
        share = pod.spec.gpu_share
        self.whole += (pod.spec.request.scalars or {}).get(GPU, 0.0) / 1000
        if share is not None:
            mib = MIB if share.problem else share.memory_mib or share.fraction * MIB
            self.held.update(dict.fromkeys(groups or [f"{pod.uid}-{i}" for i in range(share.devices)], mib))

    def made_up(self, devices: float) -> str:
        """Return what the binds use beyond the devices of the node; empty if there is none."""
        if len(self.joined) + self.whole > devices:
            return f"{self.whole:g} whole GPUs and the groups {sorted(self.joined)} are on {devices:g}"
        if self.takes_more and len(self.held) + self.whole > devices:
            return f"{self.whole:g} whole GPUs and the groups {sorted(self.held)} are on {devices:g}"
        full = [group for group in sorted(self.joined) if self.held[group] > MIB + 1e-6]
        return f"the groups {full} are over {MIB} MiB" if full else ""


def devices_made_up(objects: list[Object], binds: Iterable[Bind]) -> list[str]:
    """Return a sentence for each node whose binds use devices that it does not have."""
    pods = {each.key: each for each in objects if isinstance(each, Pod)}
    on, bound = defaultdict[str, list[Pod]](list), defaultdict[str, list[tuple[Pod, Bind]]](list)
    for pod in pods.values():
        on[pod.node_name].append(pod)
    for bind in binds:
        if pods[bind.pod].spec.gpu_share is not None or GPU in (pods[bind.pod].spec.request.scalars or {}):
            bound[bind.node].append((pods[bind.pod], bind))
    found = {
        each.name: Devices(on[each.name], bound[each.name]).made_up((each.allocatable.scalars or {}).get(GPU, 0) / 1000)
        for each in objects
        if isinstance(each, Node) and bound[each.name]
    }
    return [f"{name}: {what}" for name, what in found.items() if what]


@MANY_WORLDS
@pytest.mark.parametrize("plugins", [["gpupack"], ["gpuspread"], ["gpusharingorder", "gpupack"]], ids="-".join)
def test_no_bind_uses_a_gpu_that_the_node_does_not_have(plugins: list[str], seeds: range) -> None:
    shared = 0
    for seed in seeds:
        objects = world(Random(f"{plugins} {seed}"))
        ran = cycle(store(*objects), policy(ALL, (*PLUGINS, *plugins)))
        binds = [each for each in ran.decisions if isinstance(each, Bind)]
        assert not devices_made_up(objects, binds), seed
        shared += sum(GPU_GROUPS in each.context for each in binds)
    assert shared > len(seeds) / 4, "hardly a pod was given a part of a GPU"
