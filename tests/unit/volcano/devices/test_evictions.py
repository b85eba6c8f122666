"""Evictions go on until a card has room for the pod, as its device says, and not until the sums of the node do.

Source: Volcano's check that a task fits on devices after an eviction (device-fit-after-eviction, volcano#5235).
"""

from __future__ import annotations

import pytest

from pumice.model.events import Object
from pumice.testing.build import cluster, queue, run
from pumice.testing.devices import shared_gpus, vgpu
from tests.unit.volcano.devices.given import conf, has
from tests.unit.volcano.evicting import LEVELS, gang

PREEMPT = conf("priority gang conformance predicates", "preempt")
RECLAIM = conf("gang conformance predicates", "reclaim")


def old(name: str, memory: int, card: int, creation: float) -> list[Object]:
    """A gang of one pod that runs and has memory of a card."""
    group, pod = gang(name, 1, 0, "rich", on="n", phase="Running", creation=creation)
    device = f"n-{card},NVIDIA,{memory},0:"
    there = has(pod.name, "n", device, group=name, priority=1, phase="Running", creation=creation)  # type: ignore[union-attr]
    return [group, there]


def evicted(action: str, of: str, *objects: list[Object], asks: int) -> list[str]:
    new = gang("new", 1, 1, of, "high", creation=9.0, devices=vgpu(asks))
    store = cluster(*LEVELS, queue("rich"), queue("poor", 50), shared_gpus("n", 2, 8), *objects, new)
    return run(store, action).evicted


@pytest.mark.parametrize(("action", "of"), [(PREEMPT, "rich"), (RECLAIM, "poor")], ids=["preempt", "reclaim"])
def test_device_fit_after_eviction_decides_how_many_leave(action: str, of: str) -> None:
    """The node has 16 of memory and 20 slots in all; 3 are left on one card, 1 on the other, and 6 are asked for."""
    running = [old("a", 5, 0, 1.0), old("b", 4, 1, 2.0), old("c", 3, 1, 3.0)]
    assert evicted(action, of, *running, asks=3) == []
    gone = evicted(action, of, *running, asks=6)
    assert gone in (["ns/a-0"], ["ns/b-0", "ns/c-0"], ["ns/c-0", "ns/b-0"])
    assert evicted(action, of, *running, asks=9) == []
