"""A victim that returns to its own node takes what is being released there, and nothing idle."""

from __future__ import annotations

import numpy as np

from pumice.columns.nodes import FUTURE, IDLE, RELEASING
from pumice.kai.engine.placement.place_again import place_again
from pumice.model.status import TaskStatus
from tests.unit.kai.cluster import job, node, opened, queue, rows_of, store


def test_a_victim_that_returns_takes_releasing_amounts_and_leaves_idle_ones() -> None:
    ssn = opened(store(node("a", 4), queue("q"), job("old", "q", ["a"])))
    old = rows_of(ssn)["old-0"]
    tables = ssn.tables
    on = int(tables.tasks.node[old])
    before = tables.nodes.books.copy()
    with ssn.statement() as stmt:
        stmt.evict([old], "test")
        assert (tables.nodes.books[on, IDLE] == before[on, IDLE]).all()
        assert (tables.nodes.books[on, RELEASING] > before[on, RELEASING]).any()
        place_again(ssn, stmt, (old,), (on,))
        np.testing.assert_array_equal(tables.nodes.books, before)
        assert tables.tasks.status[old] == TaskStatus.RUNNING
        stmt.discard()


def test_a_simulated_placement_and_a_victim_that_moves_leave_idle_amounts() -> None:
    ssn = opened(store(node("a", 4), node("b", 4), queue("q"), job("old", "q", ["a"]), job("new", "q", [""])))
    old, new = rows_of(ssn)["old-0"], rows_of(ssn)["new-0"]
    tables = ssn.tables
    on = int(tables.tasks.node[old])
    before = tables.nodes.books.copy()
    with ssn.statement() as stmt:
        stmt.evict([old], "test")
        place_again(ssn, stmt, (new,), (on,))
        place_again(ssn, stmt, (old,), (1 - on,))
        np.testing.assert_array_equal(tables.nodes.books[:, IDLE], before[:, IDLE])
        assert (tables.nodes.books[1 - on, FUTURE] < before[1 - on, FUTURE]).any()
        stmt.discard()
