"""Where several tasks go in one go: each as if those before it had been placed."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.views import Task
from pumice.placing.batch import placing_of
from pumice.testing.build import node, pod, podgroup, pods
from tests.unit.placing.choosing import (
    opened,
    row_of,
    run_of,
)


@pytest.mark.parametrize(
    ("cpu", "plugins", "nodes"),
    [
        pytest.param(8, "by-name", "high high", id="the best one twice"),
        pytest.param(1, "by-name", "high low", id="until it is full"),
        pytest.param(8, "emptiest", "high low", id="each sees those before it"),
        pytest.param("500m", "by-name", "", id="none has room"),
    ],
)
def test_equal_tasks_are_placed_in_one_go(cpu: Any, plugins: str, nodes: str) -> None:
    assert run_of(opened(node("high", cpu), node("low", cpu), plugins=plugins)) == nodes


def test_tasks_that_differ_are_placed_in_turn_and_nothing_stays_booked() -> None:
    other = [podgroup("h"), pod("h-0", "h", cpu=2)]
    ssn = opened(node("high", 2), node("low", 8), other, plugins="by-name")
    before = ssn.world.digest()
    assert run_of(ssn, "g-0", "h-0") == "high low"
    assert ssn.world.digest() == before


def test_a_hook_that_takes_a_task_may_tell_it_from_equal_ones() -> None:
    ssn = opened(node("high"), node("low"), plugins="only-one")
    nodes = placing_of(ssn).feasible.all_nodes
    assert not any(placing_of(ssn).is_plain(Task(ssn.tables, row_of(ssn, name)), nodes) for name in ("g-0", "g-1"))


def test_the_next_gang_sees_what_was_taken() -> None:
    ssn = opened(node("high", 2), node("low", 8), podgroup("h", 2), pods("h", 2), plugins="by-name")
    assert run_of(ssn) == "high high"
    ssn.statement().allocate(
        [row_of(ssn, name) for name in ("g-0", "g-1")], [ssn.tables.nodes.facts.row_of["high"]] * 2
    )
    placing_of(ssn).took(2)
    assert run_of(ssn, "h-0", "h-1") == "low low"
