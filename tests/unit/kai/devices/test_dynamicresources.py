"""Claims of GPUs in KAI's language: which pods may use them, that queues are charged, and which pods they exclude."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.devices.claims import DeviceClass, ResourceClaim
from pumice.model.devices.gpu import GPU_RESOURCE, GpuShare
from pumice.model.pod import Pod
from pumice.testing.devices import claim, offered
from tests.unit.kai.cluster import cycle, job, node, policy, queue, store

CONF = policy(("allocate",), ("predicates", "proportion", "dynamicresources"))
GPUS = DeviceClass("gpu.nvidia.com")
DRIVER = "gpu.nvidia.com"


def claiming(name: str) -> list[Any]:
    """A job of one pod that uses the claim ``c``."""
    made = job(name, "q", [""], gpus=0)
    return [
        replace(each, spec=replace(each.spec, resource_claims=("c",))) if isinstance(each, Pod) else each
        for each in made
    ]


def gpus(count: int, owner: str = "q") -> ResourceClaim:
    return replace(claim("c", gpu_nvidia_com=count), labels={"kai.scheduler/queue": owner} if owner else {})


@pytest.mark.parametrize(
    ("asked", "limit", "bound"),
    [
        pytest.param(gpus(2), 2, True, id="within the limit of its queue"),
        pytest.param(gpus(2), 1, False, id="beyond it"),
        pytest.param(gpus(1, "other"), 2, False, id="another queue's"),
        pytest.param(gpus(1, ""), 2, False, id="nobody's"),
    ],
)
def test_gpus_that_are_claimed_count_for_the_queue(asked: ResourceClaim, limit: int, bound: bool) -> None:
    there = (node("a", 0), GPUS, offered("a", 4, driver=DRIVER))
    ran = cycle(store(*there, queue("q", limit=limit), asked, *claiming("j")), CONF)
    assert bool(ran.binds) is bound


def test_a_share_of_a_gpu_is_not_given_where_gpus_are_claimed() -> None:
    there = (node("a", 1), node("b", 1), GPUS, offered("a", 1, driver=DRIVER))
    half = [each if not isinstance(each, Pod) else _with_share(each) for each in job("j", "q", [""], gpus=0)]
    assert cycle(store(*there, queue("q"), *half), CONF).binds == {"j-0": "b"}


def _with_share(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, gpu_share=GpuShare(fraction=0.5)))


@pytest.mark.parametrize(
    ("of_class", "limit", "bound"), [(GPU_RESOURCE, 1, True), (GPU_RESOURCE, 0, False), ("", 1, False)]
)
def test_a_whole_gpu_is_given_as_a_device_where_a_class_names_it(of_class: str, limit: int, bound: bool) -> None:
    there = (node("a", 0), replace(GPUS, extended_resource=of_class), offered("a", 4, driver=DRIVER))
    ran = cycle(store(*there, queue("q", limit=limit), *job("j", "q", [""])), CONF)
    assert bool(ran.binds) is bound
