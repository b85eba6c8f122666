"""Preferred terms about other pods decide before all but a nomination."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.pod import Affinity, LabelSelector, Pod, PodAffinityTerm, Requirement
from tests.unit.kai.cluster import cycle, job, node, policy, queue, store

PLUGINS = ("predicates", "proportion", "nodeavailability", "nodeplacement", "podaffinity")
NEAR = PodAffinityTerm("rack", LabelSelector((Requirement("app", "In", ("db",)),)), ("ns",), weight=1)


@pytest.mark.parametrize(
    ("plugins", "terms", "where"),
    [
        pytest.param(PLUGINS, {"pod_preferred": (NEAR,)}, "b", id="near"),
        pytest.param(PLUGINS, {"anti_preferred": (NEAR,)}, "a", id="away"),
        pytest.param(PLUGINS, {}, "a", id="without a preferred term"),
        pytest.param(PLUGINS[:-1], {"pod_preferred": (NEAR,)}, "a", id="without the plugin"),
    ],
)
def test_a_preferred_term_decides(plugins: tuple[str, ...], terms: dict[str, Any], where: str) -> None:
    nodes = [node("a", labels={"rack": "1"}), node("b", 16, labels={"rack": "2"}), node("c", 16, labels={"rack": "3"})]
    there = job("there", "q", ["b"], gpus=0, labels={0: {"app": "db"}})
    preferring = [
        replace(each, spec=replace(each.spec, affinity=Affinity(**terms))) if isinstance(each, Pod) else each
        for each in job("j", "q", [""])
    ]
    assert cycle(store(*nodes, queue("q"), *there, *preferring), policy(("allocate",), plugins)).binds == {"j-0": where}
