"""Devices that slices offer: which slices count, in which order, and which devices a request may be given."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.memo import Memo
from pumice.model.devices.claims import Device, DeviceClass, DeviceOption, DeviceTaint, ResourceSlice
from pumice.model.events import Gone, Seen
from pumice.model.node import Node
from pumice.model.pod import Toleration
from pumice.placing.claims.offers import offers_of, qualified
from pumice.testing.build import policy, session
from pumice.testing.devices import claim, offered
from tests.unit.placing.claims.kit import CONF, binds, claiming, on, opened, world


@pytest.mark.parametrize(
    ("selector", "where"),
    [
        pytest.param('device.attributes["gpu.com"].model == "big"', "n2", id="an attribute"),
        pytest.param('device.capacity["gpu.com"].memory.isGreaterThan(quantity("1Gi"))', None, id="one it has not"),
        pytest.param('has(device.attributes["other"].model)', None, id="a domain it has not"),
        pytest.param("1 / 0 == 1", None, id="no answer"),
        pytest.param("device.driver", None, id="another answer"),
    ],
)
def test_selectors_choose_devices(selector: str, where: str | None) -> None:
    slices = offered("n1", each=({"model": "small"},)), offered("n2", each=({"model": "big"},))
    store = world(slices, claim("c", selector, gpu_com=1), claiming("a", "c"))
    assert binds(store) == ({} if where is None else {"ns/a": where})


def test_devices_in_the_network_are_for_the_nodes_that_reach_them() -> None:
    store = world(offered("", 1, nodes=on("n2")), claim("c", gpu_com=1), claiming("a", "c"))
    assert binds(store) == {"ns/a": "n2"}


def test_devices_lie_by_node_then_pool_then_slice() -> None:
    slices = (
        ResourceSlice("s2", "gpu.com", "p", "n1", devices=(Device("c"),), slice_count=2),
        ResourceSlice("s1", "gpu.com", "p", "n1", devices=(Device("b"),), slice_count=2),
        ResourceSlice("s9", "gpu.com", "a", "n1", devices=(Device("a"),)),
        ResourceSlice("s0", "gpu.com", "p2", "n2", devices=(Device("d"),)),
        ResourceSlice("s3", "nic.com", "net", nodes=on("n2"), devices=(Device("n"),)),
    )
    offers = offers_of(opened(world(slices)))
    assert [name for _, _, name in offers.ids] == ["n", "a", "b", "c", "d"]
    assert offers.node.tolist() == [-1, 0, 0, 0, 1]
    assert dict(offers.of_node) == {0: [1, 2, 3], 1: [4]}
    assert {row: near.tolist() for row, near in offers.near.items()} == {0: [False, True]}
    assert offers.row_of["gpu.com", "p", "c"] == 3


@pytest.mark.parametrize(
    ("pool", "names"),
    [
        pytest.param([{"generation": 1}], ["d1"], id="one slice"),
        pytest.param([{"generation": 1}, {"generation": 2}], ["d2"], id="the last generation"),
        pytest.param([{"generation": 1}, {"generation": 2, "slice_count": 2}], [], id="of which a slice is missing"),
        pytest.param([{"slice_count": 2}, {"slice_count": 2}], ["d1", "d2"], id="all are there"),
        pytest.param([{"driver": "a.com"}, {"driver": "b.com", "generation": 9}], ["d1", "d2"], id="of each driver"),
        pytest.param([{"node_name": "gone"}], [], id="a node that is not there"),
    ],
)
def test_slices_that_count(pool: list[dict[str, Any]], names: list[str]) -> None:
    slices = [
        ResourceSlice(
            **{"name": f"s{i}", "driver": "gpu.com", "pool": "p", "node_name": "n1"} | more, devices=(Device(f"d{i}"),)
        )
        for i, more in enumerate(pool, 1)
    ]
    assert [name for _, _, name in offers_of(opened(world(slices))).ids] == names


@pytest.mark.parametrize(
    ("device", "more", "usable"),
    [
        pytest.param({}, {}, True, id="any"),
        pytest.param({"unknown": "shared counters"}, {}, False, id="one that is not understood"),
        pytest.param({"taints": (DeviceTaint("k", "v", "NoSchedule"),)}, {}, False, id="tainted"),
        pytest.param({"taints": (DeviceTaint("k", "v", "NoExecute"),)}, {}, False, id="being emptied"),
        pytest.param({"taints": (DeviceTaint("k", "v", "None"),)}, {}, True, id="a taint that keeps nobody off"),
        pytest.param(
            {"taints": (DeviceTaint("k", "v", "NoSchedule"),)},
            {"tolerations": (Toleration("k", "Exists"),)},
            True,
            id="tolerated",
        ),
        pytest.param(
            {"taints": (DeviceTaint("k", "v", "NoSchedule"), DeviceTaint("j", "v", "NoSchedule"))},
            {"tolerations": (Toleration("k", "Exists"),)},
            False,
            id="one of two tolerated",
        ),
    ],
)
def test_devices_that_a_request_may_be_given(device: dict[str, Any], more: dict[str, Any], usable: bool) -> None:
    made = ResourceSlice("s", "gpu.com", "p", "n1", devices=(Device("d", **device),))
    found = offers_of(opened(world(made))).matching(DeviceOption("gpu.com", **more))
    assert not isinstance(found, str)
    assert found.tolist() == [usable]


def test_gpus_are_recognized_by_their_driver() -> None:
    offers = offers_of(opened(world(offered("n1", 1, driver="gpu.nvidia.com"), offered("n1", 1, driver="nic.com"))))
    assert {driver: bool(is_gpu) for (driver, _, _), is_gpu in zip(offers.ids, offers.gpus, strict=True)} == {
        "gpu.nvidia.com": True,
        "nic.com": False,
    }


@pytest.mark.parametrize(("written", "full"), [("numa", "gpu.com/numa"), ("x.org/numa", "x.org/numa")])
def test_an_attribute_is_of_the_driver_where_it_names_no_domain(written: str, full: str) -> None:
    assert qualified(written, "gpu.com") == full


def test_they_are_kept_until_slices_classes_or_nodes_change() -> None:
    store, memo, under = world(offered("n1", 1)), Memo(), policy(CONF)
    first = offers_of(session(store, under, memo=memo))
    assert offers_of(session(store, under, memo=memo)) is first
    store.apply(Seen(offered("n1", 2)))
    assert len(offers_of(session(store, under, memo=memo))) == 2
    store.apply(Seen(DeviceClass("gpu.com", ("false",))))
    found = offers_of(session(store, under, memo=memo)).matching(DeviceOption("gpu.com"))
    assert not isinstance(found, str)
    assert not found.any()
    store.apply(Gone(Node, "n1"))
    assert len(offers_of(session(store, under, memo=memo))) == 0
