"""Which moves between task states Volcano's sessions may make."""

from __future__ import annotations

import pytest

from pumice.columns.ledger import BOOKS
from pumice.model.status import TaskStatus
from pumice.volcano.accounting import ACCOUNTING
from pumice.volcano.table import volcano_registry

#: From each state, a row, to each, a column: x is a move that there is.
MOVES = """
            Pending Allocated Pipelined Binding Bound Running Releasing Succeeded Failed Unknown StuckInReleasing
Pending        .        x         x        .      .      .        .         .        .      .          .
Allocated      x        .         .        x      .      .        .         .        .      .          .
Pipelined      x        .         .        .      .      .        .         .        .      .          .
Binding        x        .         .        .      .      .        x         .        .      .          .
Bound          .        .         .        .      .      .        x         .        .      .          .
Running        .        .         .        .      .      .        x         .        .      .          .
Releasing      .        .         .        x      x      x        .         .        .      .          .
Succeeded      .        .         .        .      .      .        .         .        .      .          .
Failed         .        .         .        .      .      .        .         .        .      .          .
Unknown        .        .         .        .      .      .        .         .        .      .          .
StuckInReleasing   .        .        .        .        .        .        .        .        .        .        .
"""
STATES = {status.label: status for status in TaskStatus}


def read() -> dict[str, dict[str, str]]:
    """From each state to each: the cell."""
    head, *rows = [line.split() for line in MOVES.strip().splitlines()]
    return {name: dict(zip(head, cells, strict=True)) for name, *cells in rows}


@pytest.mark.parametrize("before", STATES)
def test_which_moves_there_are(before: str) -> None:
    """Every pair of states, both ways."""
    wanted = {STATES[after] for after, cell in read()[before].items() if cell == "x"}
    assert ACCOUNTING.moves[STATES[before]] == wanted


def test_the_table_knows_every_state() -> None:
    assert list(read()) == list(STATES)
    assert all(list(row) == list(STATES) for row in read().values())


def test_books_are_those_that_the_store_keeps() -> None:
    """What the store books by, whatever the language, is what Volcano's sessions take back."""
    assert ACCOUNTING.books is BOOKS
    assert volcano_registry().dialects["volcano"].accounting is ACCOUNTING
