"""Devices of nodes: shared GPUs, devices of claims, partitions, and cards of deviceshare."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.model.devices.claims import AllocatedDevice, Allocation
from pumice.model.devices.gpu import GPU_GROUP_LABEL, GpuShare
from pumice.model.events import Object
from pumice.testing.build import cluster, node, pod, podgroup, run
from pumice.testing.devices import claim, offered, shared_gpus, vgpu
from pumice.web.columns import devices
from pumice.web.columns.devices import DeviceColumns, device_columns
from tests.unit.placing.claims.test_counters import partitioned
from tests.unit.volcano.devices.given import conf, has

Row = tuple[int, str, str, float, int]


def of(*objects: Object, policy: str = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]") -> list[Row]:
    """Return the devices of a cluster after a cycle in which a pod waits."""
    waits = podgroup("w", 9), pod("w", "w")
    return rows(device_columns(run(cluster(*objects, *waits), policy).outcome))


def rows(found: DeviceColumns) -> list[Row]:
    columns = found.node.tolist(), found.names, found.kinds, found.share.tolist(), found.holders.tolist()
    return list(zip(*columns, strict=True))


def sharing(name: str, group: str, share: GpuShare) -> Object:
    return pod(name, "g", on="n0", gpu_share=share, labels={GPU_GROUP_LABEL: group})


def test_a_gpu_that_pods_share_is_held_by_the_sum_of_their_parts() -> None:
    memory = node("n0", labels={"nvidia.com/gpu.memory": "1000"})
    halves = sharing("a", "g1", GpuShare(0.5)), sharing("b", "g1", GpuShare(0.25))
    other = sharing("c", "g2", GpuShare(memory_mib=400))
    found = of(memory, podgroup("g"), *halves, other)
    assert found == [(0, "GPU 0", "shared GPU", 0.75, 2), (0, "GPU 1", "shared GPU", 0.4, 1)]


def test_a_share_that_cannot_be_read_holds_the_whole_device() -> None:
    found = of(node("n0"), podgroup("g"), sharing("a", "g1", GpuShare(problem="wrong")))
    assert found == [(0, "GPU 0", "shared GPU", 1.0, 1)]


def test_devices_of_slices_are_held_by_claims() -> None:
    holds = Allocation((AllocatedDevice("r0", "gpu.com", "n0", "1"),))
    held = replace(claim("c", gpu_com=1), allocation=holds, reserved_for=("u1", "u2"))
    found = of(node("n0"), offered("n0", 2), held)
    assert found == [(0, "0", "gpu.com", 0.0, 0), (0, "1", "gpu.com", 1.0, 2)]


def test_partitions_of_a_device_are_one_device_that_is_held_by_its_counter() -> None:
    holds = Allocation((AllocatedDevice("r0", "gpu.com", "n0", "half-0"),))
    found = of(node("n0"), partitioned("n0"), replace(claim("c", gpu_com=1), allocation=holds))
    assert found == [(0, "gpu-0", "gpu.com, partitioned", 0.5, 1)]


def test_devices_of_an_older_generation_and_of_unknown_nodes_are_not_shown() -> None:
    newer = replace(offered("n0", 1, generation=2), name="newer")
    assert [row[1] for row in of(node("n0"), offered("n0", 3, generation=1), newer, offered("gone", 1))] == ["0"]


def test_cards_that_deviceshare_gives_out_are_held_by_their_memory() -> None:
    given = has("a", "n0", "n0-1,NVIDIA-A30,4096,10:;")
    found = of(shared_gpus("n0", 2), podgroup("g"), given, pod("b", "w", devices=vgpu(1)), policy=conf())
    assert found == [(0, "card 0", "shared card", 0.0, 0), (0, "card 1", "shared card", 0.25, 1)]


def test_more_devices_than_pages_show_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "DEVICES_MAX", 3)
    outcome = run(cluster(node("n0"), offered("n0", 5)), "actions: allocate").outcome
    found = device_columns(outcome)
    assert len(found.names) == 3 and found.left_out == 2
