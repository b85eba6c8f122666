"""The journal: every kind of write is undone, newest first, down to the last byte, version and stamp. (At random:
tests/properties.)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Column, Versions
from pumice.columns.counting import Row
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.journal import Journal
from pumice.columns.tables import Tables

ONE = (np.int32, [1, 2, 3])
TWO = (np.float64, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
DEEP = (np.float64, [[[1.0], [2.0]], [[3.0], [4.0]]])
FLAGS = (np.bool_, [False, True, False])
NAMES = (object, ["a", None, "c"])
ROW = Row(Tables.empty(Versions(), ResourceAxis()), 1)


def opened(*columns: tuple[Any, Any], stamped: bool = True) -> tuple[Journal, list[Column[Any]]]:
    versions = Versions()
    made = []
    for dtype, values in columns:
        stamps = np.full(len(values), versions.next(), dtype=np.int64) if stamped else None
        made.append(Column(np.array(values, dtype=dtype), versions.next(), stamps))
    return Journal(versions), made


def state(column: Column[Any]) -> tuple[Any, ...]:
    """All that a rollback restores."""
    return column.data.tobytes(), column.version, None if column.stamps is None else column.stamps.tolist()


@pytest.mark.parametrize(
    ("column", "write", "index", "value", "after"),
    [
        pytest.param(ONE, Journal.put, 1, 9, [1, 9, 3], id="put a number"),
        pytest.param(ONE, Journal.put, [2, 0], 9, [9, 2, 9], id="put at rows"),
        pytest.param(ONE, Journal.put, np.array([2, 0]), [8, 9], [9, 2, 8], id="put one a row"),
        pytest.param(ONE, Journal.put, np.array([True, False, True]), 0, [0, 2, 0], id="put by mask"),
        pytest.param(FLAGS, Journal.put, 0, True, [True, True, False], id="put a flag"),
        pytest.param(NAMES, Journal.put, 1, "b", ["a", "b", "c"], id="put a value of Python's"),
        pytest.param(TWO, Journal.put, 1, [7, 8], [[1, 2], [7, 8], [5, 6]], id="put a wide row"),
        pytest.param(TWO, Journal.put, [0, 2], 0, [[0, 0], [3, 4], [0, 0]], id="put wide rows"),
        pytest.param(ONE, Journal.add, 0, 4, [5, 2, 3], id="add a number"),
        pytest.param(ONE, Journal.add, np.array([0, 2]), [1, -1], [2, 2, 2], id="add at rows"),
        pytest.param(TWO, Journal.add, 2, [1, -1], [[1, 2], [3, 4], [6, 5]], id="add to a wide row"),
        pytest.param(TWO, Journal.put, ROW, [7, 8], [[1, 2], [7, 8], [5, 6]], id="put a wide row by its handle"),
        pytest.param(TWO, Journal.add, ROW, [1, -1], [[1, 2], [4, 3], [5, 6]], id="add to a wide row by its handle"),
        pytest.param(TWO, Journal.add, np.int64(1), [1, -1], [[1, 2], [4, 3], [5, 6]], id="by a number of NumPy's"),
        pytest.param(DEEP, Journal.add, 1, [[1], [2]], [[[1], [2]], [[4], [6]]], id="add to a deep row"),
        pytest.param(DEEP, Journal.add, np.array([1]), [[[1], [2]]], [[[1], [2]], [[4], [6]]], id="add to deep rows"),
    ],
)
@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "without stamps"])
def test_a_write_and_its_undo(
    column: tuple[Any, Any], write: Any, index: Any, value: Any, after: Any, stamped: bool
) -> None:
    journal, (written,) = opened(column, stamped=stamped)
    before, mark = state(written), journal.mark()
    write(journal, written, index, np.array(value) if isinstance(value, list) else value)
    assert written.array.tolist() == after
    assert written.version > before[1]
    if written.stamps is not None:
        rows = np.arange(len(written.array))[index].reshape(-1)
        raised = [written.stamps[row] == written.version for row in range(len(written.array))]
        assert raised == [row in rows for row in range(len(raised))]
    journal.rollback(mark)
    assert state(written) == before


@pytest.mark.parametrize("step", [0.1, 1e-9, 1e300])
def test_what_was_added_is_put_back_not_subtracted(step: float) -> None:
    journal, (column,) = opened((np.float64, [[0.3, 0.0], [1.0, -0.0]]))
    before = state(column)
    for _ in range(3):
        journal.add(column, 0, np.array([step, step]))
    journal.rollback(0)
    assert state(column) == before


def test_marks_nest() -> None:
    journal, (column,) = opened((np.float64, [0, 0, 0]))
    journal.put(column, 0, 1.0)
    outer, at_outer = journal.mark(), state(column)
    journal.put(column, 1, 1.0)
    inner, at_inner = journal.mark(), state(column)
    journal.put(column, 2, 1.0)
    journal.put(column, 0, 5.0)
    journal.rollback(inner)
    assert state(column) == at_inner
    journal.put(column, 2, 7.0)
    journal.rollback(outer)
    assert state(column) == at_outer
    journal.rollback(outer)
    assert state(column) == at_outer, "nothing is left to undo"
    journal.rollback(0)
    assert column.array.tolist() == [0, 0, 0]


def test_writes_on_one_row_are_undone_newest_first() -> None:
    journal, (column,) = opened((np.int32, [1]))
    for value in (2, 3, 4):
        journal.put(column, 0, value)
    journal.rollback(1)
    assert column.array.tolist() == [2]
    journal.rollback(0)
    assert column.array.tolist() == [1]


def test_columns_are_undone_together() -> None:
    journal, (one, two) = opened(ONE, TWO)
    before = state(one), state(two)
    journal.put(one, 0, 7)
    journal.add(two, 1, 1.0)
    journal.put(one, 0, 8)
    journal.rollback(0)
    assert (state(one), state(two)) == before


def test_what_is_forgotten_stays() -> None:
    journal, (column,) = opened((np.float64, [0, 0]))
    journal.put(column, 0, 1.0)
    journal.forget()
    assert journal.mark() == 0
    journal.put(column, 1, 1.0)
    journal.rollback(0)
    assert column.array.tolist() == [1, 0]


def test_a_state_that_comes_back_has_the_version_of_then() -> None:
    """What was found out about it holds again."""
    journal, (column,) = opened(ONE)
    journal.put(column, 1, 5)
    known, mark = state(column), journal.mark()
    journal.put(column, 1, 6)
    assert state(column) != known
    journal.rollback(mark)
    assert state(column) == known


def test_no_two_states_have_one_version_though_one_was_rolled_back() -> None:
    journal, (column,) = opened(ONE)
    seen = {column.version}
    for value in (5, 6):
        mark = journal.mark()
        journal.put(column, 1, value)
        assert column.version not in seen, "neither a version of before nor one that was given back"
        seen.add(column.version)
        journal.rollback(mark)
    assert column.array.tolist() == [1, 2, 3]


# -- writes that fail


@pytest.mark.parametrize("column", [ONE, TWO], ids=["numbers", "wide rows"])
@pytest.mark.parametrize("write", [Journal.put, Journal.add], ids=["put", "add"])
@pytest.mark.parametrize("index", [0, [0, 1]], ids=["a row", "rows"])
def test_a_write_on_what_nobody_may_write_leaves_nothing_to_undo(column: Any, write: Any, index: Any) -> None:
    journal, (mine, fixed) = opened(column, column)
    fixed.data.setflags(write=False)
    before = state(mine), state(fixed)
    journal.put(mine, 0, 9)
    with pytest.raises(ValueError, match="read-only"):
        write(journal, fixed, index, 1)
    journal.rollback(0)
    assert (state(mine), state(fixed)) == before


@pytest.mark.parametrize(
    ("write", "index", "value"),
    [
        pytest.param(Journal.put, 0, [1, 2, 3], id="put: too many values"),
        pytest.param(Journal.put, [0, 1], ["1", "x"], id="put: a text after a number"),
        pytest.param(Journal.put, 9, 1, id="put: a row that is not there"),
        pytest.param(Journal.add, [0, 1], np.zeros(3), id="add: too many values"),
        pytest.param(Journal.add, 9, 1, id="add: a row that is not there"),
        pytest.param(Journal.add, 0, "x", id="add: a text"),
    ],
)
def test_a_write_that_fails_half_way_is_undone(write: Any, index: Any, value: Any) -> None:
    journal, (column,) = opened((np.float64, [5, 6, 7]))
    before = state(column)
    with pytest.raises((ValueError, IndexError, TypeError)):
        write(journal, column, index, value)
    journal.rollback(0)
    assert state(column) == before
