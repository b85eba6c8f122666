"""NPUs that HAMi shares by templates."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.model.decisions import Bind
from pumice.model.devices.shared_devices import DeviceAsk
from pumice.model.node import Node
from pumice.testing.build import cluster, node, podgroup, pods, resource, run
from tests.unit.volcano.devices.given import conf, said, why


def npus(register: str) -> Node:
    there = resource(8, "32Gi", pods=110, **{"huawei.com/Ascend310P": 2})
    return replace(
        node("n", annotations={"hami.io/node-register-Ascend310P": register}), allocatable=there, capacity=there
    )


NPU = '{{"id":"dev-{0}","count":7,"devmem":21527,"devcore":8}}'


def test_npus_are_shared_by_templates() -> None:
    ask = DeviceAsk(((("huawei.com/Ascend310P", 1), ("huawei.com/Ascend310P-memory", 4000)),))
    store = cluster(npus(f"[{NPU.format(0)},{NPU.format(1)}]"), podgroup("g"), pods("g", 1, devices=ask))
    (bind,) = run(store, conf(AscendHAMiVNPUEnable=True), now=5.0).decisions
    assert isinstance(bind, Bind)
    found = said(bind)
    assert found["hami.io/Ascend310P-devices-to-allocate"] == "dev-0,Ascend310P,6144,0:"
    assert found["huawei.com/Ascend310P"] == '[{"UUID":"dev-0","temp":"vir02"}]'
    assert found["hami.io/vgpu-node"] == "n"


@pytest.mark.parametrize("register", ["", "{}", "[]", "[1]", "[" * 4000, '[{"id":"a","count":-1}]', "x" * 200_000])
def test_npus_that_cannot_be_read_are_none(register: str) -> None:
    ask = DeviceAsk(((("huawei.com/Ascend310P", 1),),))
    ran = run(cluster(npus(register), podgroup("g"), pods("g", 1, devices=ask)), conf(AscendHAMiVNPUEnable=True))
    assert "annotation hami.io/node-register-Ascend310P: " in why(ran, "g-0")
