"""What an administrator says of devices: read, and refused where it cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.volcano.devices.config import DEFAULT, DeviceConfigError, NpuKind, Template, read_device_config

KIND = NpuKind("N", "x/n", "x/n-memory", 90, 100, (Template("a", 10), Template("b", 40)))


@pytest.mark.parametrize(
    ("memory", "given"),
    [
        pytest.param(10, (10, "a"), id="as much as a template has"),
        pytest.param(11, (40, "b"), id="rounded up to the next"),
        pytest.param(41, (90, ""), id="the whole card"),
        pytest.param(101, (0, ""), id="more than a card has"),
    ],
)
def test_templates(memory: int, given: tuple[int, str]) -> None:
    assert KIND.template_for(memory) == given


def test_templates_are_read_small_ones_first() -> None:
    names = {"commonWord": "N", "resourceName": "x/n", "resourceMemoryName": "x/n-memory"}
    templates = [{"name": "b", "memory": 40}, {"name": "a", "memory": 10}]
    kind = {**names, "memoryAllocatable": 90, "memoryCapacity": 100, "templates": templates}
    assert read_device_config({"vnpus": [kind]}).npus == (KIND,)
    assert read_device_config({"vnpus": {"configs": [kind]}}).npus == (KIND,)
    assert read_device_config(None) is DEFAULT


def test_a_card_is_known_by_a_part_of_its_type() -> None:
    groups = [{"group": "g", "geometries": [{"name": "1g", "memory": 6, "count": 4}]}]
    found = read_device_config({"nvidia": {"knownMigGeometries": [{"models": ["A30"], "allowedGeometries": groups}]}})
    assert [each.group for each in found.geometries_of("NVIDIA-A30-PCIe")] == ["g"]
    assert found.geometries_of("NVIDIA-A100") == ()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param([], "deviceConfig: found a list, wanted a mapping", id="no mapping"),
        pytest.param({"nvidia": {"gpuMemoryFactor": -1}}, "nvidia.gpuMemoryFactor: found -1", id="a negative factor"),
        pytest.param({"nvidia": {"gpuMemoryFactor": True}}, "found True, wanted a whole number", id="no number"),
        pytest.param({"nvidia": {"knownMigGeometries": [{}] * 65}}, "found 65 items", id="more than are read"),
        pytest.param(
            {
                "nvidia": {
                    "knownMigGeometries": [
                        {"allowedGeometries": [{"group": "g", "geometries": [{"name": "a", "count": 48}] * 2}]}
                    ]
                }
            },
            "found 96 instances, wanted at most 48",
            id="more instances than bits",
        ),
    ],
)
def test_what_cannot_be_is_refused(given: Any, problem: str) -> None:
    with pytest.raises(DeviceConfigError) as error:
        read_device_config(given)
    assert problem in str(error.value)
