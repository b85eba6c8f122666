"""The journal: every kind of write is undone, newest first, down to the last byte. (At random: tests/properties.)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.journal import ChangeLog, Journal

ONE = (np.int32, [1, 2, 3])
TWO = (np.float64, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
DEEP = (np.float64, [[[1.0], [2.0]], [[3.0], [4.0]]])
FLAGS = (np.bool_, [False, True, False])


@pytest.mark.parametrize(
    ("column", "write", "index", "value", "after"),
    [
        pytest.param(ONE, Journal.put, 1, 9, [1, 9, 3], id="put a number"),
        pytest.param(ONE, Journal.put, [2, 0], 9, [9, 2, 9], id="put at rows"),
        pytest.param(ONE, Journal.put, np.array([2, 0]), [8, 9], [9, 2, 8], id="put one a row"),
        pytest.param(ONE, Journal.put, np.array([True, False, True]), 0, [0, 2, 0], id="put by mask"),
        pytest.param(FLAGS, Journal.put, 0, True, [True, True, False], id="put a flag"),
        pytest.param(TWO, Journal.put, 1, [7, 8], [[1, 2], [7, 8], [5, 6]], id="put a wide row"),
        pytest.param(TWO, Journal.put, (1, 0), 7, [[1, 2], [7, 4], [5, 6]], id="put one cell"),
        pytest.param(TWO, Journal.put, [0, 2], 0, [[0, 0], [3, 4], [0, 0]], id="put wide rows"),
        pytest.param(ONE, Journal.add, 0, 4, [5, 2, 3], id="add a number"),
        pytest.param(ONE, Journal.add, np.array([0, 2]), [1, -1], [2, 2, 2], id="add at rows"),
        pytest.param(TWO, Journal.add, 2, [1, -1], [[1, 2], [3, 4], [6, 5]], id="add to a wide row"),
        pytest.param(DEEP, Journal.add, 1, [[1], [2]], [[[1], [2]], [[4], [6]]], id="add to a deep row"),
        pytest.param(DEEP, Journal.add, np.array([1]), [[[1], [2]]], [[[1], [2]], [[4], [6]]], id="add to deep rows"),
    ],
)
def test_a_write_and_its_undo(column: tuple[Any, Any], write: Any, index: Any, value: Any, after: Any) -> None:
    array = np.array(column[1], dtype=column[0])
    before = array.tobytes()
    journal = Journal()
    mark = journal.mark()
    write(journal, array, index, np.array(value) if isinstance(value, list) else value)
    assert array.tolist() == after
    journal.rollback(mark)
    assert array.tobytes() == before


@pytest.mark.parametrize("step", [0.1, 1e-9, 1e300])
def test_what_was_added_is_put_back_not_subtracted(step: float) -> None:
    array = np.array([[0.3, 0.0], [1.0, -0.0]])
    before = array.tobytes()
    journal = Journal()
    for _ in range(3):
        journal.add(array, 0, np.array([step, step]))
    journal.rollback(0)
    assert array.tobytes() == before


def test_marks_nest() -> None:
    array = np.zeros(3)
    journal = Journal()
    journal.put(array, 0, 1.0)
    outer = journal.mark()
    journal.put(array, 1, 1.0)
    inner = journal.mark()
    journal.put(array, 2, 1.0)
    journal.put(array, 0, 5.0)
    journal.rollback(inner)
    assert array.tolist() == [1, 1, 0]
    journal.put(array, 2, 7.0)
    journal.rollback(outer)
    assert array.tolist() == [1, 0, 0]
    journal.rollback(outer)
    assert array.tolist() == [1, 0, 0], "nothing is left to undo"
    journal.rollback(0)
    assert array.tolist() == [0, 0, 0]


def test_writes_on_one_row_are_undone_newest_first() -> None:
    array = np.array([1])
    journal = Journal()
    for value in (2, 3, 4):
        journal.put(array, 0, value)
    journal.rollback(1)
    assert array.tolist() == [2]
    journal.rollback(0)
    assert array.tolist() == [1]


def test_what_is_forgotten_stays() -> None:
    array = np.zeros(2)
    journal = Journal()
    journal.put(array, 0, 1.0)
    journal.forget()
    assert journal.mark() == 0
    journal.put(array, 1, 1.0)
    journal.rollback(0)
    assert array.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("position", "since"),
    [pytest.param(0, [1, 3, 4], id="all"), pytest.param(2, [3, 4], id="from there on"), pytest.param(4, [], id="none")],
)
def test_a_reader_of_the_change_log_catches_up(position: int, since: list[int]) -> None:
    log = ChangeLog()
    journal = Journal()
    journal.touch(log, [3, 1])
    journal.touch(log, [4, 3])
    assert log.since(position) == since


def test_rows_that_change_back_have_changed_again_for_who_saw_them_change() -> None:
    log = ChangeLog()
    journal = Journal()
    journal.touch(log, [1])
    mark, seen, stamp = journal.mark(), log.end(), log.stamp
    journal.touch(log, [2, 3])
    late = log.end()
    journal.rollback(mark)
    assert log.since(seen) == [2, 3]
    assert log.since(late) == [2, 3]
    assert log.since(0) == [1, 2, 3], "nothing is taken out of the log"
    assert log.stamp == stamp


def test_a_change_that_nobody_saw_leaves_no_trace() -> None:
    log = ChangeLog()
    journal = Journal()
    journal.touch(log, [1])
    mark, seen, stamp = journal.mark(), log.end(), log.stamp
    journal.touch(log, [2, 3])
    journal.touch(log, [4])
    journal.rollback(mark)
    assert (log.since(seen), log.stamp) == ([], stamp)
    journal.touch(log, [5])
    assert (log.since(seen), log.stamp > stamp + 2) == ([5], True), "no state is named twice"
