"""binpack: the fuller a node would be, the better."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.views import TaskClass
from pumice.framework.plugin import points
from pumice.placing.batch import placing_of
from pumice.testing.build import GPU, cluster, node, pod, podgroup, session

#: Half of ``half``'s cpu is in use, and a quarter of its memory; ``gpu`` is empty.
NODES = [node("half", 8, "8Gi"), node("gpu", 8, "8Gi", gpu=4)]
THERE = [podgroup("old"), pod("old-0", "old", 4, "2Gi", on="half")]


def scores(asked: dict[str, Any], **arguments: Any) -> dict[str, float]:
    conf = f"tiers: [{{plugins: [{{name: binpack, arguments: {arguments}}}]}}]"
    ssn = session(cluster(NODES, THERE, podgroup("g"), pod("p", "g", **asked)), conf)
    row = next(row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == "p")
    nodes = placing_of(ssn).feasible.all_nodes
    found = ssn.ask(points.class_scores, TaskClass(ssn.tables, int(ssn.tables.tasks.cls[row])), nodes)
    return dict(zip(ssn.tables.nodes.facts.names, found.tolist(), strict=True))


@pytest.mark.parametrize(
    ("asked", "arguments", "expected"),
    [
        pytest.param({"cpu": 2, "memory": "2Gi"}, {}, {"half": 62.5, "gpu": 25.0}, id="mean of cpu and memory"),
        pytest.param({"cpu": 2, "memory": 0}, {}, {"half": 75.0, "gpu": 25.0}, id="only what is asked for"),
        pytest.param(
            {"cpu": 2, "memory": "2Gi"}, {"binpack.cpu": 3}, {"half": 68.75, "gpu": 25.0}, id="cpu weighs three times"
        ),
        pytest.param({"cpu": 2, "memory": "2Gi"}, {"binpack.weight": 2}, {"half": 125.0, "gpu": 50.0}, id="twice"),
        pytest.param({"cpu": 2, "memory": "2Gi"}, {"binpack.cpu": -5}, {"half": 62.5, "gpu": 25.0}, id="below 0 is 1"),
        pytest.param({"cpu": 6, "memory": "2Gi"}, {}, {"half": 0.0, "gpu": 50.0}, id="0 where it is too small"),
        pytest.param({"cpu": 2, "memory": 0, "gpu": 4}, {}, {"half": 75.0, "gpu": 25.0}, id="no others"),
        pytest.param(
            {"cpu": 2, "memory": 0, "gpu": 4},
            {"binpack.resources": GPU, f"binpack.resources.{GPU}": 2},
            {"half": 25.0, "gpu": 75.0},
            id="but those that are listed, where a node has them",
        ),
    ],
)
def test_scores(asked: dict[str, Any], arguments: dict[str, Any], expected: dict[str, float]) -> None:
    assert scores(asked, **arguments) == pytest.approx(expected)


def test_without_weight_it_is_not_asked() -> None:
    conf = "tiers: [{plugins: [{name: binpack, arguments: {binpack.weight: 0}}]}]"
    assert not session(cluster(NODES, THERE, podgroup("g"), pod("p", "g")), conf).has(points.node_order)
