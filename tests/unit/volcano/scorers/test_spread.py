"""Topology spread constraints that are preferred: 100 where the fewest matching pods are."""

from __future__ import annotations

import pytest

from pumice.model.node import Taint
from pumice.model.pod import LabelSelector, TopologySpreadConstraint
from tests.unit.volcano.cluster import HOST, ZONE, node
from tests.unit.volcano.pods import NODES, keep, web
from tests.unit.volcano.scorers.scoring import scores


def preferred(skew: int, key: str = ZONE, **more: object) -> TopologySpreadConstraint:
    return keep(skew, key, "ScheduleAnyway", **more)


@pytest.mark.parametrize(
    ("there", "constraints", "expected"),
    [
        pytest.param([], (preferred(1),), (100, 100, 100, 0), id="nobody there; no label is 0"),
        pytest.param(["x1"], (preferred(1),), (0, 0, 100, 0), id="the emptier zone"),
        pytest.param(["x1", "x2", "y1"], (preferred(1),), (33, 33, 100, 0), id="in proportion"),
        pytest.param(["x1"], (preferred(1, HOST),), (0, 100, 100, 100), id="by host"),
        pytest.param(["x1"], (preferred(1), preferred(1, HOST)), (0, 66, 100, 0), id="both"),
        pytest.param(["x1"], (preferred(4),), (75, 75, 100, 0), id="a larger skew makes it matter less"),
        pytest.param(
            ["x1"], (preferred(1, selector=LabelSelector()),), (100, 100, 100, 0), id="an empty selector counts nobody"
        ),
    ],
)
def test_spread(there: list[str], constraints: tuple[TopologySpreadConstraint, ...], expected: tuple[int, ...]) -> None:
    pods = [web(f"w{i}", on) for i, on in enumerate(there)] + [web("p", spread=constraints)]
    assert tuple(scores(NODES, pods, podtopologyspread=1)[n.name] for n in NODES) == expected


def test_by_host_each_node_counts_its_own_pods_whatever_keeps_the_pod_off() -> None:
    """A node with a taint is no domain where taints are honoured; by host they are ignored."""
    nodes = [node("x", labels={ZONE: "x"}), node("y", labels={ZONE: "y"}, taints=[Taint("t")])]
    for key, expected in ((HOST, {"x": 100.0, "y": 0.0}), (ZONE, {"x": 100.0, "y": 100.0})):
        pods = [web("a", "y"), web("p", spread=(preferred(1, key, node_taints_policy="Honor"),))]
        assert scores(nodes, pods, podtopologyspread=1) == expected
