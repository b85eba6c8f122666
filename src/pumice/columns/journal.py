"""The only writer of session columns, and the undo log behind every rollback.

Every write remembers the bytes it replaces; ``rollback`` puts them back newest first. Undo therefore needs no inverse
operation and cannot be wrong by status, order or rounding.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray


class ChangeLog:
    """Rows that changed, in order of change. A reader keeps its position and catches up from there.

    ``stamp`` names the state of the rows: each change brings a new one, and undoing it the one before.
    """

    __slots__ = ("_read", "_stamps", "rows", "stamp")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.stamp = 0
        self._stamps = count(1)
        self._read = 0

    def end(self) -> int:
        """The position of a reader who knows of all changes."""
        self._read = len(self.rows)
        return self._read

    def since(self, position: int) -> list[int]:
        """The distinct rows changed at or after ``position``, ascending."""
        return sorted(set(self.rows[position:]))

    def note(self, rows: list[int]) -> tuple[int, int]:
        """Rows change. Returns what ``undo`` wants to know."""
        before = len(self.rows), self.stamp
        self.rows.extend(rows)
        self.stamp = next(self._stamps)
        return before

    def undo(self, rows: list[int], before: tuple[int, int]) -> None:
        """The newest change is undone: no news for readers who have not heard of it yet, else another change."""
        length, self.stamp = before
        if self._read <= length:
            del self.rows[length:]
        else:
            self.rows.extend(rows)


class Journal:
    """An append-only log of (array, index, old value). A mark is a position in it."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any]] = []

    def put(self, array: AnyArray, index: Any, value: Any) -> None:
        """Write ``value`` at ``index`` (a row as int, a list or array of rows without repeats, or a mask) and remember
        what stood there."""
        old = array[index]
        if array.ndim > 1 and type(index) is int:
            old = old.copy()  # one row is a view; everything else that indexing gives is a copy already
        self._entries.append((array, index, old))
        array[index] = value

    def add(self, array: AnyArray, index: Any, change: Any) -> None:
        """Add ``change`` at ``index``, likewise."""
        old = array[index]
        if array.ndim > 1 and type(index) is int:
            self._entries.append((array, index, old.copy()))
            np.add(old, change, old)
            return
        self._entries.append((array, index, old))
        array[index] = old + change

    def touch(self, log: ChangeLog, rows: list[int]) -> None:
        """Note that rows changed."""
        self._entries.append((log, log.note(rows), rows))

    def mark(self) -> int:
        return len(self._entries)

    def rollback(self, mark: int) -> None:
        """Undo every write after ``mark``, newest first."""
        entries = self._entries
        while len(entries) > mark:
            target, index, old = entries.pop()
            if isinstance(target, ChangeLog):
                target.undo(old, index)
            else:
                target[index] = old

    def forget(self) -> None:
        """Make everything so far permanent. Marks taken before are void."""
        self._entries.clear()
