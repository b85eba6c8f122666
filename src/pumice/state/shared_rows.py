"""Rows for values, with a count of users: a value without users gives its row back.

Users of a cluster choose requests and roles freely. With counts, a value costs memory only while a pod has it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)

#: The most objects of one value that are found by identity. Further ones are found by value, so that a client that
#: makes a new object for each pod cannot make the index grow.
ALIASES_MAX = 8


class SharedRows(Generic[V]):
    """Rows of values. ``make`` returns a row for a new value, ``drop`` takes back a row without users."""

    __slots__ = ("_drop", "_make", "_row_of", "_row_of_id", "_users", "_values")

    def __init__(self, make: Callable[[V], int], drop: Callable[[int], None]) -> None:
        self._make, self._drop = make, drop
        self._row_of: dict[V, int] = {}
        self._row_of_id: dict[int, int] = {}
        # The objects in ``_row_of_id``, by row. While they are referenced no other object can get their id.
        self._values: dict[int, list[V]] = {}
        self._users: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._users)

    def take(self, value: V, times: int = 1) -> int:
        """Return the row of a value, and add users to it."""
        # By identity first: pods of one job mostly have the same spec object, and hashing a spec is slow.
        row = self._row_of_id.get(id(value))
        if row is None:
            row = self._row_of.get(value)
            if row is None:
                row = self._row_of[value] = self._make(value)
                self._values[row], self._users[row] = [], 0
            aliases = self._values[row]
            if len(aliases) < ALIASES_MAX:
                self._row_of_id[id(value)] = row
                aliases.append(value)
        self._users[row] += times
        return row

    def value(self, row: int) -> V:
        """Return the value of a row."""
        return self._values[row][0]

    def give_back(self, row: int, times: int = 1) -> None:
        """Remove users from a row. Without users it is freed."""
        left = self._users[row] - times
        if left > 0:
            self._users[row] = left
            return
        values = self._values.pop(row)
        for value in values:
            del self._row_of_id[id(value)]
        del self._row_of[values[0]], self._users[row]
        self._drop(row)


class RoleNumbers:
    """Numbers for the names of roles in use. 0 is the number of the empty name."""

    __slots__ = ("_counted", "_free", "_next")

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0
        self._counted: SharedRows[str] = SharedRows(self._make, self._free.append)
        # Never given back, so that 0 stays the number of tasks without a role.
        self._counted.take("")

    def take(self, name: str, times: int = 1) -> int:
        """Return the number of a name, and add users to it."""
        return self._counted.take(name, times)

    def give_back(self, number: int, times: int = 1) -> None:
        """Remove users from a number."""
        self._counted.give_back(number, times)

    def name(self, number: int) -> str:
        """Return the name of a number that is in use."""
        return self._counted.value(number)

    def _make(self, name: str) -> int:
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1
