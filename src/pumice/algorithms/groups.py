"""Groups of rows, gone through side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

#: Rows up to which plain Python is quicker.
_FEW = 32


def distinct(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """The values that there are, each once, in order. Whole numbers and texts: of several ``nan`` each is its own.

    ``np.unique`` that is asked for no counts and no places loads ``numpy.ma`` to ask whether the array is a masked
    one; here none is."""
    found = np.sort(np.asarray(values), axis=None)
    first = np.ones(len(found), dtype=np.bool_)
    first[1:] = found[1:] != found[:-1]
    return found[first]


def all_equal(values: list[Any]) -> bool:
    """Whether some values, of which there is at least one, are all the same. ``nan`` is like nothing."""
    return values.count(values[0]) == len(values)


def runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Of rising whole numbers those that follow each other: the first one, and the one behind the last."""
    at = 0
    while at < len(numbers):
        start = numbers[at]
        while at + 1 < len(numbers) and numbers[at + 1] == numbers[at] + 1:
            at += 1
        yield start, numbers[at] + 1
        at += 1


def nth_of_its_group(group: npt.NDArray[Any]) -> I64:
    """For each row how many of its group come before it. Shapes (rows,) -> (rows,)."""
    if len(group) <= _FEW:
        count: dict[Any, int] = {}
        nth = []
        for each in group.tolist():
            nth.append(count.get(each, 0))
            count[each] = nth[-1] + 1
        return np.array(nth, dtype=np.int64)
    order, starts, lengths = _sorted(group)
    found = np.empty(len(group), dtype=np.int64)
    found[order] = np.arange(len(group)) - np.repeat(starts, lengths)
    return found


def in_turn(group: npt.NDArray[Any]) -> Iterator[tuple[I64, I64]]:
    """The first row of every group, then the second ones, and so on: what is worked out row by row within each group,
    for all groups at once. Each time the rows, and which group each is of, from 0; both (groups that are not
    over,)."""
    order, starts, lengths = _sorted(group)
    left = np.arange(len(starts))
    for step in range(int(lengths.max(initial=0))):
        if step:
            left = left[lengths[left] > step]
        yield order[starts[left] + step], left


def of_equal(columns: Sequence[npt.NDArray[Any]]) -> list[I64]:
    """Rows that are equal in every column, each (rows,), in groups: rising within each, the group of the first row
    first."""
    count = len(columns[0])
    if count <= _FEW:
        found: dict[tuple[Any, ...], list[int]] = {}
        for row, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            found.setdefault(values, []).append(row)
        return [np.array(rows, dtype=np.int64) for rows in found.values()]
    if all((column == column[0]).all() for column in columns):
        return [np.arange(count)]
    order = np.lexsort(columns)  # stable: equal rows keep their order
    begins = np.zeros(count, dtype=bool)
    begins[:1] = True
    for column in columns:
        ordered = column[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
    return sorted(np.split(order, begins.nonzero()[0][1:]), key=lambda rows: int(rows[0]))


def neighbours(columns: Iterable[npt.NDArray[Any]]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Rows that are equal in every column, each (rows,), to the row before: their values, and how many there are."""
    listed = [column.tolist() for column in columns]
    if all(map(all_equal, listed)):
        yield tuple(values[0] for values in listed), len(listed[0])
        return
    for values, alike in groupby(zip(*listed, strict=True)):
        yield values, sum(1 for _ in alike)


class RowsOf:
    """Rows by the whole number that each has, found without looking at the others."""

    __slots__ = ("_numbers", "_order")

    def __init__(self, group: npt.NDArray[Any]) -> None:
        self._order: I64 = group.argsort(kind="stable")
        self._numbers = group[self._order]

    def __call__(self, *numbers: int) -> I64:
        """Those that have one of some numbers, ascending."""
        begin = self._numbers.searchsorted(numbers)
        end = self._numbers.searchsorted(numbers, side="right")
        if len(begin) == 1:
            return self._order[begin[0] : end[0]]
        lengths = end - begin
        places = np.arange(int(lengths.sum())) + np.repeat(end - lengths.cumsum(), lengths)
        return np.sort(self._order[places])


def _sorted(group: npt.NDArray[Any]) -> tuple[I64, I64, I64]:
    """Rows by group, in their order within each; where each group begins among them, and its length."""
    order = group.argsort(kind="stable")
    ordered = group[order]
    begins = np.ones(len(group), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    starts = begins.nonzero()[0]
    return order, starts, np.diff(np.append(starts, len(group)))
