"""Tables whose rows come and go: which row is handed out, what a fresh one holds, and what a session's copy shares."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from pumice.columns.dtypes import F64, I32, Bool
from pumice.columns.growth import Growing

FIRST = 64  # rows of a table that has any


class Boats(Growing):
    """A table with a column of each kind."""

    NUMBERS: ClassVar[dict[str, tuple[Any, Any]]] = {"berth": (np.int32, -1), "afloat": (np.bool_, True)}
    WIDE: ClassVar[dict[str, Any]] = {"cargo": np.float64}
    MOVING = ("berth", "cargo")
    OBJECTS = ("names",)

    berth: I32
    afloat: Bool
    cargo: F64
    names: list[str]


def boats(count: int = 0) -> Boats:
    table = Boats({"cargo": 2})
    for number in range(count):
        row = table.new_row()
        table.berth[row], table.cargo[row], table.names[row] = number, [number, 1], f"boat {number}"
    return table


def test_an_empty_table() -> None:
    table = boats()
    assert (table.capacity, len(table.berth), table.cargo.shape, table.names) == (0, 0, (0, 2), [])


def test_a_fresh_row_is_at_its_unused_values() -> None:
    table = boats()
    row = table.new_row()
    assert (row, table.alive[row]) == (0, True)
    assert (table.berth[row], table.afloat[row], table.cargo[row].tolist(), table.names[row]) == (
        -1,
        True,
        [0, 0],
        None,
    )
    assert (table.berth.dtype, table.afloat.dtype, table.cargo.dtype) == (np.int32, np.bool_, np.float64)
    assert table.alive.sum() == 1


@pytest.mark.parametrize(
    ("count", "capacity"),
    [
        pytest.param(1, FIRST, id="the first row makes many"),
        pytest.param(FIRST, FIRST, id="full"),
        pytest.param(FIRST + 1, 2 * FIRST, id="one more doubles"),
        pytest.param(2 * FIRST + 1, 4 * FIRST, id="and again"),
    ],
)
def test_growth_keeps_what_is_there(count: int, capacity: int) -> None:
    table = boats(count)
    lengths = {len(column) for column in (table.alive, table.berth, table.afloat, table.cargo, table.names)}
    assert (table.capacity, lengths) == (capacity, {capacity})
    assert np.flatnonzero(table.alive).tolist() == list(range(count))
    assert table.berth[:count].tolist() == table.cargo[:count, 0].tolist() == list(range(count))
    assert table.names[:count] == [f"boat {number}" for number in range(count)]
    assert set(table.berth[count:].tolist()) <= {-1}
    assert table.afloat.all()


def test_a_freed_row_is_blank() -> None:
    table = boats(3)
    table.afloat[1] = False
    table.free_row(1)
    assert table.alive[:4].tolist() == [True, False, True, False]
    assert (table.berth[1], table.afloat[1], table.cargo[1].tolist(), table.names[1]) == (-1, True, [0, 0], None)
    assert table.berth[[0, 2]].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("freed", "handed_out"),
    [
        pytest.param([], [3, 4], id="none was freed: the next ones"),
        pytest.param([1], [1, 3], id="a freed row comes first"),
    ],
)
def test_which_row_is_handed_out(freed: list[int], handed_out: list[int]) -> None:
    table = boats(3)
    for row in freed:
        table.free_row(row)
    assert [table.new_row() for _ in handed_out] == handed_out
    assert table.capacity == FIRST


def test_a_session_has_moving_columns_of_its_own_and_shares_the_rest() -> None:
    table = boats(2)
    twin = table.session_copy()
    assert type(twin) is Boats
    twin.berth[0] = 9
    twin.cargo[1] = 9
    assert (table.berth[0], table.cargo[1].tolist()) == (0, [1, 1])
    assert twin.afloat is table.afloat and twin.alive is table.alive and twin.names is table.names
    assert twin.capacity == table.capacity


def test_a_table_that_grows_leaves_the_copies_as_they_are() -> None:
    table = boats(FIRST)
    twin = table.session_copy()
    table.new_row()
    assert (twin.capacity, len(twin.berth), table.capacity) == (FIRST, FIRST, 2 * FIRST)
