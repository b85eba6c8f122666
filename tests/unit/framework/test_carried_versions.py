"""Versions and stamps that go from one cycle to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.snapshot import Snapshot
from pumice.framework.memo import Memo
from pumice.framework.world import World
from pumice.testing.build import cluster, node, podgroup, pods, policy

ACCOUNTING = policy().dialect.accounting


def snapshot() -> Snapshot:
    return cluster(node("n"), podgroup("g"), pods("g", 1)).snapshot()


def begun(memo: Memo, on: Snapshot) -> World:
    world = World(on, 0.0, ACCOUNTING)
    memo.begin(world)
    return world


def test_a_write_to_no_row_is_carried_over() -> None:
    """A session may put nothing anywhere: then a column has another version, and no row another stamp."""
    memo, on = Memo(), snapshot()
    first = begun(memo, on)
    first.journal.put(first.tables.nodes["books"], np.zeros(0, dtype=np.int64), np.zeros((0, 5, 3)))
    memo.end(first)
    assert begun(memo, on).tables.nodes["books"].version == first.tables.nodes["books"].version


@pytest.mark.parametrize("axis", ["job", "queue"])
def test_a_row_does_not_have_the_stamp_of_before_when_a_plugin_says_otherwise_of_it(axis: str) -> None:
    """A plugin's numbers may change where nothing of the row does: a stamp of before the change never comes again."""
    memo, on = Memo(), snapshot()
    stamps: list[int] = []
    for value in (1.0, 2.0, 2.0):
        world = begun(memo, on)
        table: Any = world.table(axis)
        memo.begin_column(*world.column("p.c", axis, values=np.full(table.capacity, value)))
        stamps.append(int(table.stamps[0]))
        memo.end(world)
    assert stamps[0] != stamps[1] == stamps[2]


def test_what_a_cycle_put_aside_and_the_next_does_not_find_is_news() -> None:
    """What is promised in a cycle, and bound by nobody, is gone in the next: no stamp of either state is that of
    both."""
    memo, on = Memo(), snapshot()
    first = begun(memo, on)
    fresh = int(first.tables.jobs.stamps[0])
    first.journal.put(first.tables.jobs["waits"], 0, 7)
    memo.end(first)
    second = begun(memo, on)
    assert int(second.tables.jobs.stamps[0]) not in (fresh, int(first.tables.jobs.stamps[0]))
