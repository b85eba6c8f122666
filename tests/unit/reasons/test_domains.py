"""A gang that no domain takes, although sums do not tell why, and one whose domains no plugin keeps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.framework.plugin.policy_file import read_policy
from pumice.model.blockers import Blocker, Domain, GangPartial, Shortage, TooManyPods
from pumice.model.blockers.changes import FreeRoom, RequireLevel
from pumice.model.node import Node
from pumice.model.topology import Topology
from pumice.model.workloads.gang import TopologyConstraint
from pumice.model.workloads.podgroup import NetworkTopology
from pumice.reasons.blockers import blockers_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing import build
from tests.unit.kai.cluster import cycle, job, node, queue, store

LEVELS = Topology("t", ("zone", "rack"))


def nearest(nodes: list[Node], tasks: list[str], level: str, gpus: int = 2) -> Blocker:
    """Return what prevents a gang that requires a level."""
    asking = job("ask", "q", tasks, gpus=gpus, topology=TopologyConstraint("t", level))
    return blockers_of(cycle(store(*nodes, LEVELS, queue("q"), *asking)).outcome)["ns/ask"][0]


def at(name: str, zone: str, rack: str, gpus: int = 8, pods: int = 110) -> Node:
    return node(name, gpus, labels={"zone": zone, "rack": rack}, pods=pods)


def test_the_node_that_is_nearest_to_taking_one_more_is_named() -> None:
    nodes = [at("n0", "a", "r0", gpus=3), at("n1", "a", "r0", gpus=1), at("n2", "b", "r1", gpus=1)]
    found = nearest(nodes, ["", ""], "rack")
    short = Shortage("nvidia.com/gpu", 2000.0, 1, 1000.0, 1000.0, 1, 1, 3000.0, 3000.0, node="n0")
    labels = ("zone=a", "rack=r0")
    assert found == Domain("a.r0", label="rack", first=GangPartial(1, 2, short), labels=labels)
    assert found.lift == (FreeRoom("nvidia.com/gpu", 1000.0, "n0"),)


def test_racks_of_one_name_in_two_zones_are_two_domains() -> None:
    found = nearest([at("n0", "a", "r0", gpus=2), at("n1", "b", "r0", gpus=2)], ["", ""], "rack")
    assert isinstance(found, Domain) and isinstance(found.first, GangPartial)
    assert (found.name, found.first.placed) == ("a.r0", 1)


def test_a_node_without_pod_slots_is_named() -> None:
    found = nearest([at("n0", "a", "r0", pods=1), at("n1", "b", "r1", pods=1)], ["", ""], "zone")
    assert isinstance(found, Domain) and isinstance(found.first, GangPartial)
    assert isinstance(found.first.first, TooManyPods)


def test_if_all_nodes_are_in_one_narrower_domain_requiring_that_helps() -> None:
    nodes = [at("n0", "a", "r0")]
    found = nearest(nodes, ["", ""], "zone")
    assert found == Domain(label="zone", narrower="rack")
    assert found.lift == (RequireLevel("rack"),)
    asking = job("ask", "q", ["", ""], gpus=2, topology=TopologyConstraint("t", "rack"))
    assert len(cycle(store(*nodes, LEVELS, queue("q"), *asking)).decisions) == 2


@pytest.mark.parametrize(("more", "kind"), [(["network-topology-aware"], Domain), ([], GangPartial)])
def test_domains_are_no_reason_where_no_plugin_keeps_jobs_in_them(more: list[str], kind: type[Blocker]) -> None:
    plugins = [{"name": name} for name in ["gang", "predicates", *more]]
    by = read_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]}, builtin_registry())
    nodes = [build.node(f"n{i}", cpu=4) for i in range(4)]
    racks = [build.hypernode(f"r{i}", 1, [f"n{2 * i}", f"n{2 * i + 1}"]) for i in range(2)]
    holding = [pod for i in (0, 2) for pod in build.pods(f"holds{i}", 1, cpu=4, on=f"n{i}")]
    group = replace(build.podgroup("ask", 3), topology=NetworkTopology("hard", 1))
    found = build.cluster(*nodes, *racks, *holding, group, *build.pods("ask", 3, cpu=4))
    assert isinstance(blockers_of(build.run(found, by).outcome)["ns/ask"][0], kind)
