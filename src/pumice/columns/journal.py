"""The only writer of session columns, and the undo log behind every rollback.

Every write remembers the bytes it replaces; ``rollback`` puts them back newest first. Undo therefore needs no inverse
operation and cannot be wrong by status, order or rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray


class ChangeLog:
    """Rows that changed, in order of change. A reader keeps its position and catches up from there."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[int] = []

    def since(self, position: int) -> list[int]:
        """The distinct rows changed at or after ``position``, ascending."""
        return sorted(set(self.rows[position:]))


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
        """Note that rows changed; a rollback notes it again, since the rows change back."""
        log.rows.extend(rows)
        self._entries.append((log, None, rows))

    def mark(self) -> int:
        return len(self._entries)

    def rollback(self, mark: int) -> None:
        """Undo every write after ``mark``, newest first."""
        entries = self._entries
        while len(entries) > mark:
            target, index, old = entries.pop()
            if isinstance(target, ChangeLog):
                target.rows.extend(old)
            else:
                target[index] = old

    def forget(self) -> None:
        """Make everything so far permanent. Marks taken before are void."""
        self._entries.clear()
