"""Equal tasks with claims are placed together as if each were placed before the next, in both languages."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.decisions import CLAIMS
from pumice.model.devices.claims import AllocatedDevice, Allocation, DeviceClass
from pumice.placing.claims.filter import ClaimFilter
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, run
from pumice.testing.devices import claim, claim_template, offered
from tests.unit.kai.cluster import job as kai_job
from tests.unit.kai.cluster import node as kai_node
from tests.unit.kai.cluster import policy as kai_policy
from tests.unit.kai.cluster import queue as kai_queue
from tests.unit.kai.cluster import store as kai_store
from tests.unit.placing.claims.kit import CONF, GPU

NPU = "example.com/npu"
KAI = kai_policy(("allocate",), ("predicates", "proportion", "dynamicresources", "gpupack"))


def devices(dice: Random, names: list[str]) -> list[Any]:
    """Devices of nodes, one of which a claim holds, and templates for one and two of them."""
    slices = [offered(name, count) for name in names if (count := dice.randint(0, 4))]
    templates = [claim_template("one", gpu_com=1), claim_template("two", gpu_com=2)]
    if not slices:
        return [*slices, *templates]
    held = AllocatedDevice("r0", "gpu.com", slices[0].pool, "0")
    return [*slices, *templates, replace(claim("old", gpu_com=1), allocation=Allocation((held,)))]


def asking(pods: list[Any], template: str) -> list[Any]:
    if template == NPU:
        return [
            replace(
                each,
                spec=replace(
                    each.spec,
                    request=replace(each.spec.request, scalars={**(each.spec.request.scalars or {}), NPU: 1000.0}),
                ),
            )
            for each in pods
        ]
    return [replace(each, spec=replace(each.spec, resource_claims=(f"template/{template}",))) for each in pods]


def volcano(dice: Random) -> Store:
    nodes = [node(f"n{i}", cpu=dice.randint(1, 6)) for i in range(4)]
    objects = devices(dice, [each.name for each in nodes])
    groups, pods = [], []
    for j in range(3):
        size = dice.randint(1, 6)
        groups.append(podgroup(f"g{j}", dice.choice((1, size)), phase="Inqueue", creation=float(j)))
        made = [pod(f"g{j}-{i}", f"g{j}") for i in range(size)]
        pods += asking(made, dice.choice(("one", "two", NPU)))
    return cluster(*nodes, replace(GPU, extended_resource=NPU), *objects, groups, pods)


def kai(dice: Random) -> Store:
    nodes = [kai_node(f"n{i}", 0) for i in range(4)]
    objects: list[Any] = [*nodes, DeviceClass("gpu.com", extended_resource=NPU), kai_queue("q")]
    objects += devices(dice, [each.name for each in nodes])
    for j in range(3):
        made = kai_job(f"j{j}", "q", [""] * dice.randint(1, 4), gpus=0)
        template = dice.choice(("one", "two", NPU))
        objects += [
            asking([each], template)[0] if hasattr(each, "spec") and hasattr(each.spec, "request") else each
            for each in made
        ]
    return kai_store(*objects)


def decided(store: Store, conf: Any) -> list[Any]:
    return [(bind.pod, bind.node, bind.context.get(CLAIMS)) for bind in run(store, conf).decisions]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize(("world", "conf"), [(volcano, CONF), (kai, KAI)])
def test_tasks_that_are_placed_together_go_where_each_would_go(
    world: Any, conf: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = decided(world(Random(seed)), conf)
    monkeypatch.setattr(ClaimFilter, "in_turn", lambda *_: None)
    assert decided(world(Random(seed)), conf) == together


def test_some_tasks_with_claims_are_placed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    follow = ClaimFilter.in_turn

    def counted(*args: Any) -> Any:
        found = follow(*args)
        counts.append(found.count if found is not None else 0)
        return found

    monkeypatch.setattr(ClaimFilter, "in_turn", counted)
    for seed in range(5):
        decided(kai(Random(seed)), KAI)
    assert max(counts) > 1
