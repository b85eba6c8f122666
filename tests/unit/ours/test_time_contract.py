"""Plugins of ours that know how long jobs run keep the contract of plugins, on clusters with estimates."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.model.workloads.podgroup import PodGroup
from pumice.testing.build import interned
from pumice.testing.check import check_plugin


def with_estimates(obj: Any, dice: Random) -> Any:
    """Most PodGroups say how long they run. Pods that wait ask for a whole node, so they wait for others to end."""
    if isinstance(obj, Node):
        return replace(obj, allocatable=replace(obj.allocatable, milli_cpu=2000.0))
    if isinstance(obj, Pod) and not obj.node_name:
        return replace(obj, spec=interned(replace(obj.spec, request=replace(obj.spec.request, milli_cpu=2000.0))))
    if not isinstance(obj, PodGroup) or dice.random() < 0.2:
        return obj
    return replace(obj, annotations={**obj.annotations, ESTIMATE_ANNOTATION: f"{dice.randint(1, 90)}m"})


@pytest.mark.parametrize(
    "arguments",
    [
        {"after": "0s"},
        {"after": "0s", "reservations": 8, "trustsFor": "0s"},
        {"after": "0s", "backfill": False},
    ],
)
def test_reserve_keeps_the_contract(arguments: dict[str, object]) -> None:
    checked = check_plugin("reserve", arguments=arguments, alter=with_estimates, seeds=range(6), values=False)
    asked = {key.partition(" at ")[0].rpartition(".")[2] for key in checked.asked}
    assert asked >= {"allocatable", "job_order"}


@pytest.mark.parametrize("arguments", [{}, {"oldestAfter": "1h", "aging": "1h"}])
def test_shortest_keeps_the_contract(arguments: dict[str, object]) -> None:
    checked = check_plugin("ours/shortest", arguments=arguments, alter=with_estimates, seeds=range(6))
    assert any(key.startswith("shortest: Shortest.job_order at ") for key in checked.asked)
