"""Groups of rows side by side, against one row after the other."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.algorithms.groups import in_turn, nth_of_its_group

GROUPS = st.lists(st.integers(-2, 5), max_size=80).map(lambda each: np.array(each, dtype=np.int64))


@given(group=GROUPS)
def test_how_many_of_its_group_come_before_a_row(group: np.ndarray) -> None:
    seen: Counter[int] = Counter()
    wanted = []
    for each in group.tolist():
        wanted.append(seen[each])
        seen[each] += 1
    assert nth_of_its_group(group).tolist() == wanted


@given(group=GROUPS)
def test_rows_come_in_the_order_of_their_group_each_once(group: np.ndarray) -> None:
    by_number: dict[int, list[int]] = {}
    for rows, numbers in in_turn(group):
        assert len(set(numbers.tolist())) == len(numbers)
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            by_number.setdefault(number, []).append(row)
    wanted = [[row for row, each in enumerate(group.tolist()) if each == one] for one in sorted(set(group.tolist()))]
    assert [by_number[number] for number in sorted(by_number)] == wanted
