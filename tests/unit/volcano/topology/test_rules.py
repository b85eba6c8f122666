"""How far jobs may span, and where those with a topology live."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.cycle.session import Session
from pumice.model.workloads.podgroup import NetworkTopology
from pumice.testing.build import cluster, hypernode, node, podgroup, pods, session
from pumice.volcano.topology.rules import has_hard, job_bound, nothing_waits

TREE = [
    hypernode("rack-0", 1, ["a"]),
    hypernode("rack-1", 1, ["b"]),
    hypernode("block", 2, hypernodes=["rack-0", "rack-1"]),
]


def opened(group: Any, *members: Any) -> Session:
    return session(cluster(node("a"), node("b"), TREE, group, *members), "tiers: [{plugins: [{name: gang}]}]")


@pytest.mark.parametrize(
    ("group", "tier", "hard"),
    [
        pytest.param({}, None, False, id="none is not bound"),
        pytest.param({"tier": 1}, 1, True, id="as it says"),
        pytest.param({"topology": NetworkTopology("soft", 1)}, 3, True, id="a soft topology up to the widest tier"),
    ],
)
def test_how_far_a_job_may_span(group: dict[str, Any], tier: int | None, hard: bool) -> None:
    tables = opened(podgroup("g", **group), pods("g", 1)).tables
    assert (job_bound(tables, 0), has_hard(tables, 0)) == (tier, hard)


@pytest.mark.parametrize(
    ("on", "home"),
    [
        pytest.param(["a"], "rack-0", id="one node"),
        pytest.param(["a", "b"], "block", id="two racks"),
        pytest.param([], "", id="nothing placed"),
    ],
)
def test_where_a_job_lives_is_found_from_its_pods(on: list[str], home: str) -> None:
    members = [pods("g", 1, first=i, on=where) for i, where in enumerate(on)] or [pods("g", 1)]
    tables = opened(podgroup("g", phase="Running", tier=2), *members, pods("g", 1, first=9)).tables
    found = int(tables.jobs.hypernode[0])
    assert ("" if found < 0 else tables.tree.names[found]) == home


@pytest.mark.parametrize(
    ("group", "members", "idle"),
    [
        pytest.param({"phase": "Running"}, pods("g", 1, on="a"), True, id="all run"),
        pytest.param({"phase": "Running"}, pods("g", 1), False, id="a pod waits"),
        pytest.param({"phase": "Pending"}, [], False, id="a group to admit"),
        pytest.param({"phase": "Running", "tier": 1}, pods("g", 1, on="a"), False, id="a place to find out"),
        pytest.param({"phase": "Running"}, pods("g", 1, phase="Failed"), True, id="what has ended waits for nothing"),
    ],
)
def test_whether_nothing_waits(group: dict[str, Any], members: list[Any], idle: bool) -> None:
    assert nothing_waits(opened(podgroup("g", **group), members).tables) is idle
