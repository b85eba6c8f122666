"""The only writer of a session, and the undo log behind every rollback.

Every write remembers the bytes it replaces, with their version and stamps; ``rollback`` puts all of it back, newest
first. Undo therefore needs no inverse operation and cannot be wrong by status, order or rounding, and a state that
comes back is known to be the one that was.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pumice.columns.column import Column, Versions
from pumice.columns.dtypes import AnyArray

Entry = tuple[Column[AnyArray], Any, Any, int, Any]  # column, index, old values, old version, old stamps


class Journal:
    """An append-only log of writes. A mark is a position in it; ``open_statements`` counts who may still go back."""

    __slots__ = ("_entries", "_next_version", "open_statements")

    def __init__(self, versions: Versions) -> None:
        self._entries: list[Entry] = []
        self._next_version = versions.next
        self.open_statements = 0

    def put(self, column: Column[AnyArray], index: Any, value: Any) -> None:
        """Write ``value`` at ``index`` (a row as int, a list or array of rows without repeats, or a mask) and remember
        what stood there."""
        if column.shared is not None:
            column.part()
        data, stamps = column.data, column.stamps
        if type(index) is not int:
            index = _as_int(index)
        old = data[index]
        if data.ndim > 1 and type(index) is int:
            old = old.copy()  # one row is a view; everything else that indexing gives is a copy already
        self._entries.append((column, index, old, column.version, None if stamps is None else stamps[index]))
        try:
            data[index] = value
        except ValueError:
            self._not_written(column)
            raise
        version = column.version = self._next_version()
        if stamps is not None:
            stamps[index] = version

    def _not_written(self, column: Column[AnyArray]) -> None:
        """A write failed. Of a column that nobody may write there is nothing to put back."""
        if not column.data.flags.writeable:
            self._entries.pop()

    def add(self, column: Column[AnyArray], index: Any, change: Any) -> None:
        """Add ``change`` at ``index``, likewise."""
        if column.shared is not None:
            column.part()
        data, stamps = column.data, column.stamps
        if type(index) is not int:
            index = _as_int(index)
        old = data[index]
        stamp = None if stamps is None else stamps[index]
        try:
            if data.ndim > 1 and type(index) is int:
                self._entries.append((column, index, old.copy(), column.version, stamp))
                np.add(old, change, old)
            else:
                self._entries.append((column, index, old, column.version, stamp))
                data[index] = old + change
        except ValueError:
            self._not_written(column)
            raise
        version = column.version = self._next_version()
        if stamps is not None:
            stamps[index] = version

    def mark(self) -> int:
        return len(self._entries)

    def rollback(self, mark: int) -> None:
        """Undo every write after ``mark``, newest first."""
        entries = self._entries
        while len(entries) > mark:
            column, index, old, version, stamp = entries.pop()
            column.data[index] = old
            column.version = version
            if column.stamps is not None:
                column.stamps[index] = stamp

    def forget(self) -> None:
        """Make everything so far permanent. Marks taken before are void."""
        self._entries.clear()


def _as_int(index: Any) -> Any:
    """An index that names one row as an int, others as they are: of one row NumPy gives a view, which has to be copied
    before the row is written, and of several a copy."""
    return index if isinstance(index, np.ndarray | list | tuple | slice) else operator.index(index)
