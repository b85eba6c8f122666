"""Groups of rows: equal rows, runs of rows, and the position of each row within its group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

#: The number of rows up to which plain Python is faster than NumPy.
_FEW = 32


def distinct(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the different values in ascending order. For whole numbers and texts: each ``nan`` counts as different."""
    # ``np.unique`` imports ``numpy.ma`` to find out whether the array is masked, which costs a command milliseconds.
    found = np.sort(np.asarray(values), axis=None)
    first = np.ones(len(found), dtype=np.bool_)
    first[1:] = found[1:] != found[:-1]
    return found[first]


def all_equal(values: list[Any]) -> bool:
    """Return True if all values of a list, which must not be empty, are equal."""
    # ``count`` runs in C, and is faster than a comprehension or a set.
    return values.count(values[0]) == len(values)


def runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Split ascending whole numbers into runs without gaps. Yield the first number of each, and the one after the
    last."""
    at = 0
    while at < len(numbers):
        start = numbers[at]
        while at + 1 < len(numbers) and numbers[at + 1] == numbers[at] + 1:
            at += 1
        yield start, numbers[at] + 1
        at += 1


def nth_of_its_group(group: npt.NDArray[Any]) -> I64:
    """Return for each row how many rows of its group come before it. Shapes (rows,) -> (rows,)."""
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
    """Yield the first row of every group, then every second row, and so on.

    So a calculation that goes row by row within each group can be done for all groups at once. Each step yields the
    rows, and the number of each row's group (from 0). Shapes: (groups that have so many rows,).
    """
    order, starts, lengths = _sorted(group)
    left = np.arange(len(starts))
    for step in range(int(lengths.max(initial=0))):
        if step:  # every group has a first row
            left = left[lengths[left] > step]
        yield order[starts[left] + step], left


def of_equal(columns: Sequence[npt.NDArray[Any]]) -> list[I64]:
    """Split rows into groups that are equal in every column (rows,).

    Rows are ascending within a group, and groups are in the order of their first rows.
    """
    count = len(columns[0])
    if count <= _FEW:
        found: dict[tuple[Any, ...], list[int]] = {}
        for row, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            found.setdefault(values, []).append(row)
        return [np.array(rows, dtype=np.int64) for rows in found.values()]
    # One group is frequent (a gang of equal tasks), and is found without sorting.
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
    """Split rows into runs that are equal in every column (rows,). Yield the values of each run and its length."""
    listed = [column.tolist() for column in columns]
    if all(map(all_equal, listed)):
        yield tuple(values[0] for values in listed), len(listed[0])
        return
    for values, equal in groupby(zip(*listed, strict=True)):
        yield values, sum(1 for _ in equal)


class RowsOf:
    """An index from whole numbers to the rows that have them."""

    # One sort, and then two binary searches for each number: cheaper than a mask over all rows from the second on.

    __slots__ = ("_numbers", "_order")

    def __init__(self, group: npt.NDArray[Any]) -> None:
        self._order: I64 = group.argsort(kind="stable")
        self._numbers = group[self._order]

    def __call__(self, *numbers: int) -> I64:
        """Return the rows that have one of some numbers, ascending."""
        begin = self._numbers.searchsorted(numbers)
        end = self._numbers.searchsorted(numbers, side="right")
        if len(begin) == 1:  # ascending already, as the sort is stable
            return self._order[begin[0] : end[0]]
        lengths = end - begin
        places = np.arange(int(lengths.sum())) + np.repeat(end - lengths.cumsum(), lengths)
        return np.sort(self._order[places])


def _sorted(group: npt.NDArray[Any]) -> tuple[I64, I64, I64]:
    """Return the rows sorted by group (stable), and the start and length of each group in that order."""
    order = group.argsort(kind="stable")
    ordered = group[order]
    begins = np.ones(len(group), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    starts = begins.nonzero()[0]
    return order, starts, np.diff(np.append(starts, len(group)))
