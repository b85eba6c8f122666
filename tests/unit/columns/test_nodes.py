"""Nodes as columns: the order of rows, what objects say by row, labels and taints by code, and fresh books."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Versions
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.nodes import FUTURE, IDLE, LabelColumn, NodeFacts, NodeTable
from pumice.model.node import Node, Taint
from pumice.testing.build import GPU, node, resource

GI = 2.0**30
AXIS = ResourceAxis([GPU])  # cpu, memory, gpu, pods
INT32_MAX = 2**31 - 1


def facts(*nodes: Node) -> NodeFacts:
    return NodeFacts(Versions(), nodes, AXIS)


@pytest.mark.parametrize(
    ("nodes", "order"),
    [
        pytest.param([], "", id="none"),
        pytest.param([node("a", creation=2.0), node("b", creation=1.0)], "b a", id="the older first"),
        pytest.param([node("b"), node("a")], "a b", id="of one age, by name"),
    ],
)
def test_rows_are_in_order_of_age_whatever_came_first(nodes: list[Node], order: str) -> None:
    for given in (nodes, nodes[::-1]):
        found = facts(*given)
        assert found.names == order.split()
        assert found.row_of == {name: row for row, name in enumerate(found.names)}
        assert [each.name for each in found.objs] == found.names
        assert len(found) == len(nodes)


@pytest.mark.parametrize(
    ("more", "allocatable", "view"),
    [
        pytest.param({}, [8000, 32 * GI, 0, 110], [8000, 32 * GI, 0, 110], id="plain"),
        pytest.param({"gpu": 2}, [8000, 32 * GI, 2000, 110], [8000, 32 * GI, 2000, 110], id="gpus"),
        pytest.param(
            {"oversubscription": resource(2, "1Gi")},
            [10_000, 33 * GI, 0, 110],
            [8000, 32 * GI, 0, 110],
            id="oversubscribed: more to give, and kube-scheduler's plugins do not see it",
        ),
        pytest.param(
            {"oversubscription": resource(gpu=4)},
            [8000, 32 * GI, 0, 110],
            [8000, 32 * GI, 0, 110],
            id="oversubscription is of cpu and memory",
        ),
    ],
)
def test_what_a_node_has(more: dict[str, Any], allocatable: list[float], view: list[float]) -> None:
    found = facts(node("n", **more))
    assert found.allocatable.tolist() == [allocatable]
    assert found.view_allocatable.tolist() == [view]
    assert found.total.tolist() == allocatable


def test_what_all_nodes_have_together() -> None:
    assert facts(node("a", 2, "1Gi"), node("b", 3, "2Gi", gpu=1)).total.tolist() == [5000, 3 * GI, 1000, 220]
    assert facts().total.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("pods", "most"), [(0, 0), (7, 7), (2**40, INT32_MAX)])
def test_how_many_pods_a_node_takes(pods: int, most: int) -> None:
    assert facts(node("n", pods=pods)).max_pods.tolist() == [most]


def test_equal_taints_share_a_code_and_none_is_the_first() -> None:
    ours, theirs = Taint("team", "a"), Taint("team", "b")
    found = facts(
        node("a", taints=[ours]), node("b"), node("c", taints=[theirs, ours]), node("d", taints=[ours], creation=1.0)
    )
    assert [found.taint_sets[code] for code in found.taint_code] == [(ours,), (), (theirs, ours), (ours,)]
    assert (found.taint_code[0], found.taint_code[1]) == (found.taint_code[3], 0)


def test_which_nodes_are_cordoned() -> None:
    assert facts(node("a"), node("b", unschedulable=True)).unschedulable.tolist() == [False, True]


def test_facts_are_a_value() -> None:
    found = facts(node("a"))
    for name in ("allocatable", "view_allocatable", "max_pods", "unschedulable", "taint_code", "total"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 1


def test_facts_made_anew_have_another_version() -> None:
    versions = Versions()
    assert NodeFacts(versions, [node("a")], AXIS).version != NodeFacts(versions, [node("a")], AXIS).version


# -- labels


def test_a_label_over_all_nodes() -> None:
    zones = ["x", None, "y", "x"]
    nodes = [node(f"n{i}", labels={"zone": zone} if zone else {}) for i, zone in enumerate(zones)]
    column = LabelColumn(nodes, "zone")
    assert [column.values[code] if code >= 0 else None for code in column.codes] == zones
    assert column.code_of == {"x": 0, "y": 1}
    assert LabelColumn(nodes, "rack").codes.tolist() == [-1] * 4


# -- the moving part


def test_fresh_nodes_are_idle() -> None:
    table = NodeTable(Versions(), facts(node("a", 2, "1Gi"), node("b", 3, "2Gi")))
    assert table.capacity == 2 and table.alive.all()
    for book in (table.idle, table.future):
        assert book[:, 0].tolist() == [2000, 3000]
    for book in (table.used, table.releasing, table.pipelined):
        assert not book.any()
    assert table.view.shape == (2, len(AXIS) + 3) and not table.view.any()


def test_each_book_is_a_view_of_the_one_column() -> None:
    table = NodeTable(Versions(), facts(node("a")))
    table["books"].data[0, IDLE, 0] = 5
    table["books"].data[0, FUTURE, 0] = 6
    assert (table.idle[0, 0], table.future[0, 0]) == (5, 6)
    assert np.shares_memory(table.idle, table.books)
