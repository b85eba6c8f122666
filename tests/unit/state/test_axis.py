"""Which resources have a column of their own."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.model.devices.gpu import GpuShare
from pumice.model.events import PodsSeen, Seen
from pumice.model.resources import Resource
from pumice.testing.build import cluster, node, pod

GPU = "nvidia.com/gpu"


def test_gpus_that_are_asked_for_are_counted_by_name_whether_or_not_a_node_ever_had_some() -> None:
    without = cluster([node("n0"), pod("a", gpu=1)])
    before = cluster([node("n0", gpu=1), pod("a", gpu=1)])
    before.snapshot()
    before.apply(Seen(node("n0")))
    assert without.snapshot().tables.axis.names == before.snapshot().tables.axis.names
    assert GPU in without.snapshot().tables.axis.names


def test_a_share_of_a_gpu_is_counted_in_gpus() -> None:
    shares = replace(pod("a"), spec=replace(pod("a").spec, gpu_share=GpuShare(0.5)))
    assert GPU in cluster([node("n0"), shares]).snapshot().tables.axis.names
    assert GPU not in cluster([node("n0"), pod("a")]).snapshot().tables.axis.names


def test_pods_that_are_seen_together_are_covered_together() -> None:
    plain = pod("a")
    # No node offers it, and then the pod after it asks for GPUs, which need a column of their own.
    unoffered = replace(plain, spec=replace(plain.spec, request=Resource(1000.0, 0.0, {"huawei.com/Ascend310P": 1.0})))
    world = cluster([node("n0")])
    world.apply(PodsSeen({"default/a": unoffered, "default/b": pod("b", gpu=1)}))
    axis = world.snapshot().tables.axis
    assert GPU in axis.names and axis.covers(unoffered.spec.request)
