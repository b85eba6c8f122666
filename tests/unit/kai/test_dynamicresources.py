"""Claims of GPUs in KAI's language: whose they may be, that they count for queues, and whom they keep away."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.devices.claims import DeviceClass, ResourceClaim
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


def test_who_asks_for_gpus_as_a_resource_does_not_go_where_they_are_claimed() -> None:
    there = (node("a", 1), node("b", 1), GPUS, offered("a", 1, driver=DRIVER))
    assert cycle(store(*there, queue("q"), *job("j", "q", [""])), CONF).binds == {"j-0": "b"}
