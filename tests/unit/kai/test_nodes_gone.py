"""Pods that name a node which does not exist hold nothing of any node."""

from __future__ import annotations

import pytest

from pumice.model.topology import Topology
from pumice.model.workloads.gang import TopologyConstraint
from tests.unit.kai.cluster import cycle, job, node, queue, store


@pytest.mark.parametrize("nodes", [0, 1])
@pytest.mark.parametrize("minimum", [1, 3])
def test_pods_of_a_node_that_does_not_exist_are_no_victims(nodes: int, minimum: int) -> None:
    lost = job("lost", "q", ["gone", "gone"], minimum=minimum, stale_since=1.0)
    wants = job("wants", "r", [""], priority=100)
    ran = cycle(store(*[node("a", 0)] * nodes, queue("q", 0), queue("r", 1), lost, wants))
    assert ran.decisions == []


def test_a_pod_of_a_node_that_does_not_exist_keeps_its_gang_in_no_domain() -> None:
    near = TopologyConstraint("racks", "rack")
    racks = [node(name, 1, labels={"rack": name}) for name in "ab"]
    full = job("full", "q", ["b"])
    tree = Topology("racks", ("rack",))
    assert cycle(store(*racks, tree, queue("q"), full, job("g", "q", ["gone", ""], topology=near))).binds == {
        "g-1": "a"
    }
