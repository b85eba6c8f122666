"""Rows for equal values, counted by their users: what nobody uses any more gives its row back.

So a value that a tenant may choose freely (a request, a role) costs something only while it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)

#: Objects of one value that are known by identity; further ones are found by value.
ALIASES_MAX = 8


class Counted(Generic[V]):
    """``make`` gives a row to a value that has none, ``drop`` takes it back."""

    __slots__ = ("_drop", "_make", "_row_of", "_row_of_id", "_users", "_values")

    def __init__(self, make: Callable[[V], int], drop: Callable[[int], None]) -> None:
        self._make, self._drop = make, drop
        self._row_of: dict[V, int] = {}
        self._row_of_id: dict[int, int] = {}
        self._values: dict[int, list[V]] = {}  # every object that stands for the row: its id is its own while held
        self._users: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._users)

    def take(self, value: V, times: int = 1) -> int:
        """The row of a value, with so many more users. An object seen before is found by identity, which is what makes
        interned values cheap."""
        row = self._row_of_id.get(id(value))
        if row is None:
            row = self._row_of.get(value)
            if row is None:
                row = self._row_of[value] = self._make(value)
                self._values[row], self._users[row] = [], 0
            known = self._values[row]
            if len(known) < ALIASES_MAX:
                self._row_of_id[id(value)] = row
                known.append(value)
        self._users[row] += times
        return row

    def value(self, row: int) -> V:
        """The value that has the row."""
        return self._values[row][0]

    def give_back(self, row: int, times: int = 1) -> None:
        """So many users fewer."""
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
    """A number for each role name that is in use; 0 is the empty name's."""

    __slots__ = ("_counted", "_free", "_next")

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0
        self._counted: Counted[str] = Counted(self._make, self._free.append)
        self._counted.take("")

    def take(self, name: str, times: int = 1) -> int:
        return self._counted.take(name, times)

    def give_back(self, number: int, times: int = 1) -> None:
        self._counted.give_back(number, times)

    def name(self, number: int) -> str:
        """The name that a number in use stands for."""
        return self._counted.value(number)

    def _make(self, name: str) -> int:
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1
