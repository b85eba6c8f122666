"""What was measured of nodes: by row of the node, only what can be, and for how long it says something."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.framework.memo import Memo
from pumice.model.events import Seen
from pumice.model.usage import NodeUsage
from pumice.testing.build import cluster, node, policy, session
from pumice.volcano.scorers.node_usage import FRESH_S, NodeUsages, node_usage

NOW = 1000.0


@pytest.mark.parametrize(
    ("at", "fresh"),
    [
        pytest.param(NOW, True, id="now"),
        pytest.param(NOW - FRESH_S, True, id="five minutes ago"),
        pytest.param(NOW - FRESH_S - 0.1, False, id="longer ago"),
        pytest.param(NOW + FRESH_S, True, id="a clock that is ahead"),
        pytest.param(NOW + FRESH_S + 0.1, False, id="a clock that cannot be"),
        pytest.param(0.0, False, id="never"),
    ],
)
def test_how_long_it_says_something(at: float, fresh: bool) -> None:
    assert NodeUsages(np.zeros(1), np.zeros(1), np.array([at])).fresh(NOW).tolist() == [fresh]


def test_what_was_never_measured_is_not_fresh_at_the_beginning_of_time() -> None:
    assert NodeUsages(np.zeros(1), np.zeros(1), np.zeros(1)).fresh(1.0).tolist() == [False]


def test_it_lies_along_the_nodes_and_follows_them() -> None:
    nodes = [node(name, creation=float(i)) for i, name in enumerate("abc")]
    usages = NodeUsage("c", 30.0, 40.0, 7.0), NodeUsage("gone", 99.0, 99.0, 9.0)
    store = cluster(nodes, usages, NodeUsage("a", float("nan"), 20.0, float("inf")))
    memo, under = Memo(), policy()
    found = node_usage(session(store, under, memo=memo))
    assert [each.tolist() for each in found] == [[0.0, 0.0, 30.0], [20.0, 0.0, 40.0], [0.0, 0.0, 7.0]]
    with pytest.raises(ValueError, match="read-only"):
        found.cpu[0] = 1.0
    store.apply(Seen(NodeUsage("b", 50.0, 60.0, 8.0)))
    assert node_usage(session(store, under, memo=memo)).cpu.tolist() == [0.0, 50.0, 30.0], (
        "what is kept holds no longer"
    )
