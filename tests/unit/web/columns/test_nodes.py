"""Groups of nodes: HyperNodes tier by tier, levels of topologies, racks and zones."""

from __future__ import annotations

from pumice.model.events import Object
from pumice.model.topology import Topology
from pumice.testing.build import cluster, hypernode, node, run
from pumice.web.columns.nodes import NodeColumns, node_columns
from pumice.web.columns.units import PageUnits

RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"


def of(*objects: Object) -> NodeColumns:
    tables = run(cluster(*objects), "actions: allocate").outcome.tables
    return node_columns(tables, PageUnits(tables.axis))


def groups(found: NodeColumns) -> dict[str, list[str]]:
    return {
        each.name: [each.groups[place] if place >= 0 else "" for place in each.of.tolist()] for each in found.groupings
    }


def test_hypernodes_are_groups_tier_by_tier() -> None:
    nodes = [node(f"n{i}") for i in range(4)]
    leaves = hypernode("s0", 1, ["n0", "n1"]), hypernode("s1", 1, ["n2"])
    found = groups(of(*nodes, *leaves, hypernode("s2", 2, hypernodes=["s0", "s1"])))
    assert found == {
        "HyperNodes of tier 1": ["s0", "s0", "s1", ""],
        "HyperNodes of tier 2": ["s2", "s2", "s2", ""],
    }


def test_levels_of_a_topology_come_narrowest_first_and_before_other_labels() -> None:
    nodes = [node(f"n{i}", labels={"block": f"b{i // 2}", "hall": "h", ZONE: "z"}) for i in range(3)]
    found = groups(of(*nodes, Topology("t", ("hall", "block"))))
    assert found == {"block": ["b0", "b0", "b1"], "hall": ["h"] * 3, ZONE: ["z"] * 3}


def test_a_label_by_which_each_node_is_alone_is_no_group() -> None:
    nodes = [node(f"n{i}", labels={RACK: f"r{i}", ZONE: "z"}) for i in range(2)]
    assert groups(of(*nodes)) == {ZONE: ["z", "z"]}


def test_nodes_without_labels_are_in_no_group() -> None:
    assert groups(of(node("n0"), node("n1"))) == {}
