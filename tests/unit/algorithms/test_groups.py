"""Groups of rows side by side, against one row after the other."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.algorithms.groups import RowsOf, distinct, in_turn, neighbours, nth_of_its_group, of_equal, runs

GROUPS = st.lists(st.integers(-2, 5), max_size=80).map(lambda each: np.array(each, dtype=np.int64))


@given(group=GROUPS)
def test_how_many_of_its_group_come_before_a_row(group: np.ndarray) -> None:
    seen: Counter[int] = Counter()
    wanted = []
    for each in group.tolist():
        wanted.append(seen[each])
        seen[each] += 1
    assert nth_of_its_group(group).tolist() == wanted


@given(group=GROUPS, numbers=st.sets(st.integers(-3, 6)))
def test_rows_that_have_some_of_the_numbers(group: np.ndarray, numbers: set[int]) -> None:
    wanted = [row for row, each in enumerate(group.tolist()) if each in numbers]
    assert RowsOf(group)(*numbers).tolist() == wanted


@given(group=GROUPS)
def test_rows_come_in_the_order_of_their_group_each_once(group: np.ndarray) -> None:
    by_number: dict[int, list[int]] = {}
    for rows, numbers in in_turn(group):
        assert len(set(numbers.tolist())) == len(numbers)
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            by_number.setdefault(number, []).append(row)
    wanted = [[row for row, each in enumerate(group.tolist()) if each == one] for one in sorted(set(group.tolist()))]
    assert [by_number[number] for number in sorted(by_number)] == wanted


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=40))
@settings(max_examples=30)
def test_equal_rows_are_together_in_their_order(rows: list[tuple[int, int]]) -> None:
    found = of_equal([np.array([row[column] for row in rows], dtype=np.int64) for column in range(2)])
    wanted: dict[tuple[int, int], list[int]] = {}
    for at, row in enumerate(rows):
        wanted.setdefault(row, []).append(at)
    assert [each.tolist() for each in found] == list(wanted.values())


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=20))
def test_neighbours_that_are_equal_are_counted(rows: list[tuple[int, int]]) -> None:
    found = list(neighbours(np.array([row[column] for row in rows]) for column in range(2)))
    assert [values for values, count in found for _ in range(count)] == rows
    assert all(one != next_one for (one, _), (next_one, _) in pairwise(found))


@pytest.mark.parametrize("count", [1, 32, 33, 200])
def test_rows_that_are_all_equal_are_one_group(count: int) -> None:
    found = of_equal([np.full(count, 3), np.full(count, True)])
    assert [each.tolist() for each in found] == [list(range(count))]


@given(st.lists(st.integers(-3, 3)))
def test_distinct_values_are_in_order_and_each_once(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int32)).tolist() == sorted(set(values))
    assert distinct(np.array([values, values], dtype=np.int64)).tolist() == sorted(set(values))
    assert distinct([f"a{each}" for each in values] or np.array([], dtype=str)).tolist() == sorted(
        {f"a{each}" for each in values}
    )


@given(st.sets(st.integers(0, 20)))
def test_numbers_that_follow_each_other_are_one_run(numbers: set[int]) -> None:
    found = list(runs(sorted(numbers)))
    assert [number for start, end in found for number in range(start, end)] == sorted(numbers)
    assert all(end < start for (_, end), (start, _) in pairwise(found)), "runs do not touch"
