"""Where a task goes: which of the nodes that fit is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.snapshot import Shard
from pumice.framework.plugin.errors import PluginFault
from pumice.placing.batch import placing_of
from pumice.testing.build import node, pod, podgroup
from pumice.volcano.status.fit_errors import reasons
from tests.unit.placing.choosing import (
    chosen,
    opened,
    row_of,
)

LEAVING = [podgroup("old"), pod("old-0", "old", cpu=8, on="high", deletion=1.0)]
FULL = [podgroup("old"), pod("old-0", "old", cpu=8, on="high")]


@pytest.mark.parametrize(
    ("objects", "plugins", "node_name", "idle"),
    [
        pytest.param(["low", "high"], "by-name", "high", True, id="the best score"),
        pytest.param(["low", "high", "even"], "by-name", "even", True, id="of equal ones the first row"),
        pytest.param(["low", "high"], "", "high", True, id="without scores the first row"),
        pytest.param(["low", "high"], "by-name last-word", "low", True, id="what a plugin names"),
        pytest.param(["low", "high"], "mapped", "low", True, id="scores that are mapped and reduced"),
        pytest.param(["low", "high", LEAVING], "by-name", "low", True, id="idle before what is being released"),
        pytest.param(["high", LEAVING], "by-name", "high", False, id="what is being released"),
        pytest.param(["high", FULL], "by-name", "", False, id="none"),
    ],
)
def test_which_node_a_task_gets(objects: list[Any], plugins: str, node_name: str, idle: bool) -> None:
    ssn = opened(*[node(each) if isinstance(each, str) else each for each in objects], plugins=plugins)
    assert chosen(ssn) == (node_name, idle)


def test_of_a_soft_shard_own_nodes_come_first() -> None:
    ssn = opened(node("low"), node("high"), plugins="by-name", shard=Shard(frozenset({"low"}), hard=False))
    assert chosen(ssn) == ("low", True)


def test_nodes_that_failed_its_role_are_not_looked_at() -> None:
    ssn = opened(node("low"), node("high"), plugins="by-name")
    open_to = np.array([name == "low" for name in ssn.tables.nodes.facts.names])
    assert chosen(ssn, open_to=open_to) == ("low", True)


def test_a_nomination_comes_before_scores() -> None:
    late = [podgroup("n"), pod("n-0", "n", nominated_node="low")]
    assert chosen(opened(node("low"), node("high"), late, plugins="by-name"), "n-0") == ("low", True)


def test_why_a_task_finds_none_is_said_to_whom_it_may_concern() -> None:
    ssn = opened(node("high"), FULL)
    row, nodes = row_of(ssn, "g-0"), placing_of(ssn).feasible.all_nodes
    errors = placing_of(ssn).choose(row, nodes).errors
    assert errors is not None and reasons(errors) == {"Insufficient cpu": 1}
    assert placing_of(ssn).choose(row, nodes, explain=False).errors is None


def test_a_score_that_is_no_number_is_the_fault_of_whose_it_is() -> None:
    with pytest.raises(PluginFault, match="by_name at node_order"):
        chosen(opened(node("none"), node("low"), plugins="by-name"))
