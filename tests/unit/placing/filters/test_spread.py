"""Topology spread constraints that must hold: which domain is how far ahead, and who counts."""

from __future__ import annotations

import pytest

from pumice.model.node import Taint
from pumice.model.pod import LabelSelector, TopologySpreadConstraint
from pumice.placing.filters.nodes import TAINTED
from tests.unit.volcano.cluster import HOST, ZONE, Cluster, node, pod
from tests.unit.volcano.pods import NODES, keep, reasons, web

SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


@pytest.mark.parametrize(
    ("there", "constraint", "expected"),
    [
        pytest.param([], keep(1), {"bare": NO_LABEL}, id="empty"),
        pytest.param(["x1"], keep(1), {"x1": SKEWED, "x2": SKEWED, "bare": NO_LABEL}, id="one ahead"),
        pytest.param(["x1"], keep(2), {"bare": NO_LABEL}, id="one ahead is allowed"),
        pytest.param(["x1", "y1"], keep(1), {"bare": NO_LABEL}, id="level"),
        pytest.param(["bare"], keep(1), {"bare": NO_LABEL}, id="who is in no zone does not count"),
        pytest.param(
            ["x1", "y1"],
            keep(1, min_domains=3),
            {"x1": SKEWED, "x2": SKEWED, "y1": SKEWED, "bare": NO_LABEL},
            id="too few domains: least is 0",
        ),
        pytest.param(["x1", "x2", "y1"], keep(1, HOST), {"x1": SKEWED, "x2": SKEWED, "y1": SKEWED}, id="by host"),
        pytest.param(
            ["x1"], keep(1, selector=LabelSelector()), {"bare": NO_LABEL}, id="an empty selector counts nobody"
        ),
        pytest.param(["x1"], keep(1, selector=None), {"bare": NO_LABEL}, id="no selector counts nobody"),
    ],
)
def test_spread(there: list[str], constraint: TopologySpreadConstraint, expected: dict[str, str]) -> None:
    pods = [web(f"w{i}", on) for i, on in enumerate(there)]
    assert reasons(pods, web("p", spread=(constraint,))) == expected


def test_spread_may_honour_the_node_selector() -> None:
    there = [web("a", "x1"), web("b", "x2")]
    picky = {"spread": (keep(2, HOST),), "node_selector": ((ZONE, "x"),)}
    elsewhere = "node(s) didn't match Pod's node affinity/selector"
    assert reasons(there, web("p", **picky)) == {"y1": elsewhere, "bare": elsewhere}
    ignoring = {**picky, "spread": (keep(1, HOST, node_affinity_policy="Ignore"),)}
    found = Cluster(NODES, [*there, web("p", **ignoring)], "predicates").reasons("p")
    assert found["x1"] == [SKEWED], "the empty nodes outside count too"


def test_those_that_leave_do_not_count_in_a_spread() -> None:
    assert reasons([web("a", "x1", deletion=1.0)], web("p", spread=(keep(1),))) == {"bare": NO_LABEL}


def test_a_pod_that_its_own_constraint_does_not_mean_adds_nothing() -> None:
    """Two of the app in x, none in y: one that is not of the app would make it no worse than 2."""
    there = [web("a", "x1"), web("b", "x2")]
    assert reasons(there, pod("p", spread=(keep(2),))) == {"bare": NO_LABEL}
    assert set(reasons(there, web("p", spread=(keep(2),)))) == {"x1", "x2", "bare"}


def test_only_nodes_with_all_labels_take_part() -> None:
    """x2 alone has a rack: what is in the other zone is no domain, and the emptiest one is x."""
    labels = {"x1": {ZONE: "x"}, "x2": {ZONE: "x", "rack": "r"}, "y1": {ZONE: "y"}}
    nodes = [node(name, labels=own) for name, own in labels.items()]
    pods = [web("a", "x2"), web("b", "x2"), web("p", spread=(keep(1), keep(1, "rack")))]
    assert Cluster(nodes, pods, "predicates").reasons("p") == {"x1": [NO_LABEL], "y1": [NO_LABEL]}


def test_tainted_nodes_are_left_out_where_the_constraint_honours_taints() -> None:
    nodes = [node("x", labels={ZONE: "x"}), node("y", labels={ZONE: "y"}, taints=[Taint("t")])]
    found = {}
    for policy in ("Honor", "Ignore"):
        pending = web("p", spread=(keep(1, node_taints_policy=policy),))
        found[policy] = Cluster(nodes, [web("a", "x"), pending], "predicates").reasons("p")
    assert found == {"Honor": {"y": [TAINTED.reason]}, "Ignore": {"x": [SKEWED], "y": [TAINTED.reason]}}


def test_the_filter_ignores_preferred_constraints() -> None:
    assert reasons([web("a", "x1")], web("p", spread=(keep(1, when="ScheduleAnyway"),))) == {}
