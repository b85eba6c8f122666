"""Topologies as trees of domains: which nodes are in one, and which domain is in which."""

from __future__ import annotations

import pytest

from pumice.kai.label_trees import LabelTree, label_tree
from pumice.model.decisions import Bind
from pumice.model.topology import Topology
from pumice.model.workloads.gang import TopologyConstraint
from tests.unit.kai.cluster import cycle, job, node, opened, queue, store

ZONE, RACK = "zone", "rack"


def tree(name: str = "t") -> LabelTree | None:
    """Racks of one name in two zones; ``x`` names no rack, ``y`` no zone."""
    places = {"a": ("z1", "r1"), "b": ("z1", "r2"), "c": ("z2", "r1"), "d": ("z1", "r1")}
    nodes = [node(each, labels={ZONE: zone, RACK: rack}) for each, (zone, rack) in places.items()]
    outside = node("x", labels={ZONE: "z1"}), node("y", labels={RACK: "r1"})
    return label_tree(
        opened(store(nodes, outside, queue("q"), Topology("t", (ZONE, RACK)))), TopologyConstraint(name, ZONE)
    )


def test_domains_are_nodes_of_equal_labels_from_the_widest_level_on() -> None:
    found = tree()
    assert found is not None
    assert found.ids == (("z1", "z2"), ("z1.r1", "z1.r2", "z2.r1"))
    assert found.domains.tolist() == [[0, 0, 1, 0, -1, -1], [0, 1, 2, 0, -1, -1]], "who lacks a label is outside"
    assert found.parents == ((-1, -1), (0, 0, 1))
    assert [found.level(label) for label in (ZONE, RACK, "row")] == [0, 1, -1]


def test_a_topology_that_is_not_there_has_no_tree() -> None:
    assert tree("u") is None


def test_values_with_dots_in_them_are_not_taken_for_others() -> None:
    """``a.b`` with ``c`` in it, and ``a`` with ``b.c`` in it: KAI joins both to ``a.b.c``, and takes them for one."""
    nodes = (node("one", labels={ZONE: "a.b", RACK: "c"}), node("other", labels={ZONE: "a", RACK: "b.c"}))
    found = label_tree(opened(store(*nodes, queue("q"), Topology("t", (ZONE, RACK)))), TopologyConstraint("t", ZONE))
    assert found is not None
    assert (found.domains.tolist(), found.parents) == ([[0, 1], [0, 1]], ((-1, -1), (0, 1)))


def test_without_a_topology_the_domains_are_those_of_the_required_label() -> None:
    nodes = (node("a", labels={RACK: "r1"}), node("b", labels={RACK: "r2"}), node("c"))
    found = label_tree(opened(store(*nodes, queue("q"))), TopologyConstraint("", RACK))
    assert found is not None
    assert (found.levels, found.domains.tolist()) == ((RACK,), [[0, 1, -1]])


def test_a_level_is_found_by_its_alias() -> None:
    topology = Topology("t", (ZONE, RACK), aliases=("", "shelf"))
    nodes = (node("a", labels={ZONE: "z", RACK: "r1"}), node("b", labels={ZONE: "z", RACK: "r2"}))
    found = label_tree(opened(store(*nodes, queue("q"), topology)), TopologyConstraint("t", "shelf"))
    assert found is not None
    assert [found.level(name) for name in ("shelf", RACK, "")] == [1, 1, -1]


@pytest.mark.parametrize("level", ["shelf", RACK])
def test_a_gang_that_names_a_level_by_its_alias_is_placed_as_one_that_names_the_label(level: str) -> None:
    """One rack holds two pods, and the other one holds three."""
    nodes = [node("a", 2, labels={RACK: "r1"}), node("b", 3, labels={RACK: "r2"})]
    topology = Topology("t", (RACK,), aliases=("shelf",))
    gang = job("g", "q", [""] * 3, topology=TopologyConstraint("t", level))
    ran = cycle(store(*nodes, queue("q"), topology, gang))
    assert [each.node for each in ran.decisions if isinstance(each, Bind)] == ["b"] * 3
