"""How much of an extended resource nodes offer by devices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.columns.objects.device_amounts import amounts_by_devices, most_at_once
from pumice.model.devices.claims import CounterUse, Device, DeviceClass, ResourceSlice
from pumice.testing.build import node
from pumice.testing.devices import offered

NPU = "example.com/npu"
OF = DeviceClass("npu", ('device.driver == "gpu.com"',), NPU)


def test_devices_of_the_class_count_on_their_node() -> None:
    slices = [offered("a", 2), offered("a", 3, driver="other.com"), offered("gone", 1), offered("", 4)]
    assert amounts_by_devices([node("a"), node("b")], slices, [OF], [NPU]) == {"a": {NPU: 2000.0}}


def test_a_resource_that_is_not_asked_for_or_that_the_node_has_itself_is_left_out() -> None:
    has = replace(node("a"), allocatable=replace(node("a").allocatable, scalars={NPU: 1000.0}))
    assert amounts_by_devices([node("a")], [offered("a", 2)], [OF], []) == {}
    assert amounts_by_devices([has], [offered("a", 2)], [OF], [NPU]) == {}


def test_a_selector_that_cannot_be_evaluated_leaves_the_answer_to_the_filter_of_claims() -> None:
    wrong = DeviceClass("npu", ("device.",), NPU)
    assert amounts_by_devices([node("a")], [offered("a", 2)], [wrong], [NPU]) == {"a": {NPU: 2000.0}}


@pytest.mark.parametrize(
    ("amounts", "count"),
    [({"whole": 80.0, "half-0": 40.0, "half-1": 40.0}, 2), ({"whole": 80.0}, 1), ({"a": 50.0, "b": 60.0}, 1)],
)
def test_partitions_count_as_many_as_fit_at_once(amounts: dict[str, float], count: int) -> None:
    devices = tuple(Device(name, consumes=(CounterUse("gpu", "memory", of),)) for name, of in amounts.items())
    own = ResourceSlice("a", "gpu.com", "a", "a", devices=(*devices, Device("plain")))
    assert most_at_once([replace(own, counters=(CounterUse("gpu", "memory", 80.0),))], lambda *_: True) == count + 1
