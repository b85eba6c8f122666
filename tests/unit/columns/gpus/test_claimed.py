"""GPUs that can be claimed, as a total counts them."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.gpus.claimed import offered_gpus
from pumice.model.devices.claims import CounterUse, Device, DeviceClass, ResourceSlice
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.testing.build import cluster, node, pod
from pumice.testing.devices import offered

DRIVER = "gpu.nvidia.com"


def part(name: str, counter_set: str) -> Device:
    return Device(name, consumes=(CounterUse(counter_set, "memory", 10.0),))


SHARED = Device("0", multiple=True)
PARTITIONED = (part("whole-0", "0"), part("half-0", "0"), part("whole-1", "1"), part("half-1", "1"))


@pytest.mark.parametrize(
    ("objects", "count"),
    [
        pytest.param([offered("a", 3, driver=DRIVER)], 3, id="whole GPUs"),
        pytest.param([ResourceSlice("s", DRIVER, "p", "a", devices=PARTITIONED)], 2, id="partitions"),
        pytest.param(
            [ResourceSlice("s", DRIVER, "p", "a", devices=(Device("0", multiple=True),))], 1, id="a shared one"
        ),
        pytest.param([offered("a", 3)], 0, id="other devices"),
        pytest.param(
            [offered("a", 3, driver=DRIVER), DeviceClass("c", extended_resource=GPU_RESOURCE), pod("x", gpu=1)],
            0,
            id="those that their node counts as an amount",
        ),
    ],
)
def test_gpus_that_can_be_claimed_are_counted_once(objects: list[Any], count: int) -> None:
    assert offered_gpus(cluster(node("a"), *objects).snapshot().tables) == 1000.0 * count
