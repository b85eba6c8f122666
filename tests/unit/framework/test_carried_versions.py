"""Versions that go from one cycle to the next."""

from __future__ import annotations

import numpy as np

from pumice.framework.memo import Memo
from pumice.framework.world import World
from pumice.testing.build import cluster, node, podgroup, pods, policy


def test_a_write_to_no_row_is_carried_over() -> None:
    """A session may put nothing anywhere: then a column has another version, and no row another stamp."""
    snapshot = cluster(node("n"), podgroup("g"), pods("g", 1)).snapshot()
    memo, accounting = Memo(), policy().dialect.accounting
    first = World(snapshot, 0.0, accounting)
    memo.begin(first)
    first.journal.put(first.tables.jobs["allocated"], np.zeros(0, dtype=np.int64), np.zeros((0, 3)))
    memo.end(first)
    second = World(snapshot, 0.0, accounting)
    memo.begin(second)
    assert second.tables.jobs["allocated"].version == first.tables.jobs["allocated"].version
