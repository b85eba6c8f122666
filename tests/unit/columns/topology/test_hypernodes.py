"""The tree of hypernodes. (Volcano's own tables: tests/conformance.)"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.columns.topology.hypernodes import HyperNodeTree, build_tree
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.topology import TOP_HYPERNODE, HyperNode, HyperNodeMember

NODES = ["n0", "n1", "n2", "n3"]


def exactly(name: str, tier: int, nodes: Iterable[str] = (), below: Iterable[str] = ()) -> HyperNode:
    members = [HyperNodeMember("Node", exact=node) for node in nodes]
    return HyperNode(name, tier, (*members, *(HyperNodeMember("HyperNode", exact=each) for each in below)))


def tree_of(*hypernodes: HyperNode, nodes: list[str] = NODES) -> HyperNodeTree:
    return build_tree(hypernodes, nodes, [{"rack": name[-1]} for name in nodes])


RACKS = (exactly("r0", 1, ("n0", "n1")), exactly("r1", 1, ("n2", "gone")))
HALL = exactly("hall", 2, (), ("r1", "r0", "gone"))


def test_rows_are_sorted_and_the_top_is_last() -> None:
    tree = tree_of(HALL, *RACKS)
    assert tree.names == ("r0", "r1", "hall", TOP_HYPERNODE)
    assert tree.tier.tolist() == [1, 1, 2, 3]
    assert tree.parent.tolist() == [2, 2, 3, -1]
    assert [rows.tolist() for rows in tree.children] == [[], [], [0, 1], [2]]
    assert [rows.tolist() for rows in tree.nodes] == [[0, 1], [2], [0, 1, 2], [0, 1, 2, 3]]
    assert tree.leaf_of.tolist() == [0, 0, 1, 3]
    assert tree.ancestors.tolist() == [[0, 2, 3], [1, 2, 3], [2, 3, -1], [3, -1, -1]]
    assert (tree.tiers, tree.top, len(tree), tree.ready, tree.errors) == ((1, 2, 3), 3, 4, True, ())
    assert tree.parent.dtype == tree.leaf_of.dtype == tree.nodes[0].dtype == np.int32


def test_a_cluster_without_hypernodes_has_the_top_alone() -> None:
    tree = tree_of()
    assert (tree.names, tree.tier.tolist(), tree.tiers) == ((TOP_HYPERNODE,), [1], (1,))
    assert tree.leaf_of.tolist() == [0, 0, 0, 0]
    assert tree_of(nodes=[]).leaf_of.tolist() == []
    assert tree_of(HyperNode("zero", 0)).tier.tolist() == [0, 1]


def test_where_two_hypernodes_meet() -> None:
    tree = tree_of(HALL, *RACKS, exactly("alone", 1))
    row = tree.row_of
    assert tree.lca(row["r0"], row["r1"]) == tree.lca(row["r1"], row["hall"]) == row["hall"]
    assert tree.lca(row["r0"], row["alone"]) == tree.top
    assert tree.lca(-1, row["r0"]) == tree.lca(row["r0"], -1) == tree.lca(row["r0"], row["r0"]) == row["r0"]
    assert tree.lca(-1, -1) == -1
    assert tree.ancestors_of(row["r1"]).tolist() == [row["r1"], row["hall"], tree.top]


def test_which_nodes_it_holds() -> None:
    tree = tree_of(HALL, *RACKS)
    held = [[tree.contains(h, n) for n in range(4)] for h in range(4)]
    assert held == [[True, True, False, False], [False, False, True, False], [True, True, True, False], [True] * 4]


def test_a_node_in_several_hypernodes_belongs_to_the_lowest_then_first_by_name() -> None:
    tree = tree_of(
        exactly("b", 1, ("n0",)), exactly("a", 1, ("n0",)), exactly("c", 0, ("n1",)), exactly("d", 1, ("n1",))
    )
    assert [tree.names[row] for row in tree.leaf_of[:2]] == ["a", "c"]


def test_members_by_pattern_and_by_label() -> None:
    def one(**selector: object) -> list[int]:
        tree = tree_of(HyperNode("h", 1, (HyperNodeMember("Node", **selector),)))  # type: ignore[arg-type]
        found: list[int] = tree.nodes[0].tolist()
        return found

    assert one(regex="[12]") == [1, 2]
    assert one(regex="^n[0-1]$") == one(regex="^n0|n1") == [0, 1]
    assert one(regex="^n3") == [3]
    assert one(regex="") == [0, 1, 2, 3]
    assert one(regex="(") == one(regex="(?=n)n1") == []
    assert one(labels=LabelSelector((Requirement("rack", "In", ("3", "1")),))) == [1, 3]
    assert one(labels=LabelSelector((Requirement("rack", "NotIn", ("3", "1")),))) == [0, 2]
    assert one(labels=LabelSelector()) == one(exact="") == one(exact="gone") == one() == []


def test_a_child_chosen_by_pattern_is_none() -> None:
    tree = tree_of(RACKS[0], HyperNode("h", 2, (HyperNodeMember("HyperNode", regex="r0"),)))
    assert tree.parent.tolist() == [tree.top, tree.top, -1]
    assert tree.nodes[1].tolist() == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_second_parent_is_an_error_in_any_order(order: tuple[int, ...]) -> None:
    given_ = (RACKS[0], exactly("p1", 2, (), ("r0",)), exactly("p2", 3, (), ("r0",)))
    tree = tree_of(*(given_[i] for i in order))
    assert not tree.ready
    assert tree.errors == ("HyperNode r0 already has a parent p1, and cannot set another parent p2",)
    assert tree.parent.tolist() == [1, 3, 3, -1]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_cycle_is_an_error_in_any_order(order: tuple[int, ...]) -> None:
    given_ = (exactly("a", 1, ("n0",), ("c",)), exactly("b", 2, (), ("a",)), exactly("c", 3, (), ("b",)))
    tree = tree_of(*(given_[i] for i in order))
    assert not tree.ready
    assert tree.errors == ("cyclic dependency detected: HyperNode c is already in the ancestor chain [a b c]",)
    assert tree.parent.tolist() == [1, 2, 3, -1]


def test_other_contradictions() -> None:
    assert tree_of(exactly("a", 1, (), ("a",))).errors == (
        "cyclic dependency detected: HyperNode a is already in the ancestor chain [a]",
    )
    assert tree_of(exactly("a", 1), exactly("a", 2)).errors == ("HyperNode a is given twice",)
    assert not tree_of(exactly(TOP_HYPERNODE, 1)).ready
    assert tree_of(exactly("p", 2, (), ("r0", "r0")), *RACKS).ready


def test_tier_names() -> None:
    tree = tree_of(HyperNode("a", 1, tier_name="rack"), HyperNode("b", 2, tier_name="hall"), HyperNode("c", 3))
    assert tree.tier_of_name == {"rack": 1, "hall": 2}


def test_a_child_of_a_higher_tier_is_a_child_all_the_same() -> None:
    tree = tree_of(exactly("low", 1, (), ("high",)), exactly("high", 2, ("n0",)))
    assert [tree.names[row] for row in tree.ancestors_of(tree.row_of["high"])] == ["high", "low", TOP_HYPERNODE]
    assert tree.nodes[tree.row_of["low"]].tolist() == [0]
    assert tree.ready


@st.composite
def any_hypernodes(draw: st.DrawFn) -> list[HyperNode]:
    names = st.sampled_from(["a", "b", "c", "d", "e"])
    return [
        exactly(
            name, draw(st.integers(0, 3)), draw(st.lists(st.sampled_from(NODES))), draw(st.lists(names, max_size=3))
        )
        for name in draw(st.lists(names, unique=True))
    ]


@given(any_hypernodes(), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_it_is_always_a_tree_and_never_depends_on_the_order(hypernodes: list[HyperNode], random: object) -> None:
    tree = tree_of(*hypernodes)
    shuffled = list(hypernodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = tree_of(*shuffled)
    assert (again.errors, again.parent.tolist()) == (tree.errors, tree.parent.tolist())
    assert tree.ready is not bool(tree.errors)
    for row in range(len(tree)):
        chain = tree.ancestors_of(row).tolist()
        assert chain[0] == row and chain[-1] == tree.top and len(set(chain)) == len(chain)
        for low, high in itertools.pairwise(chain):
            assert tree.parent[low] == high and low in tree.children[high]
            assert set(tree.nodes[low].tolist()) <= set(tree.nodes[high].tolist())
        assert tree.nodes[row].tolist() == sorted(set(tree.nodes[row].tolist()))
    for node, leaf in enumerate(tree.leaf_of.tolist()):
        holding = [row for row in range(len(tree)) if tree.contains(row, node)]
        assert leaf == min(holding)
