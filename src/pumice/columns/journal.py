"""The only writer of a session, and the undo log behind every rollback.

1. Every write appends an entry with the bytes that it replaces, the version of the column and the stamps of the rows.
2. ``rollback`` copies the entries back, newest first. There are no inverse operations, so an undo cannot be wrong by
   status, by order or by floating-point rounding.
3. Versions and stamps are restored with the bytes. After a rollback, answers that the memo keeps under them hold again.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pumice.columns.column import Column, Versions
from pumice.columns.dtypes import AnyArray

Entry = tuple[Column[AnyArray], Any, Any, int, Any]  # column, index, old values, old version, old stamps


class Journal:
    """An append-only log of writes to columns.

    A mark is a position in the log. ``open_statements`` counts the statements that may still roll back.
    """

    __slots__ = ("_entries", "_next_version", "open_statements")

    def __init__(self, versions: Versions) -> None:
        self._entries: list[Entry] = []
        self._next_version = versions.next
        self.open_statements = 0

    def put(self, column: Column[AnyArray], index: Any, value: Any) -> None:
        """Write ``value`` at ``index`` and log what it replaces.

        ``index`` is a row (int), a list or array of rows without repeats, or a mask.
        """
        # Copy on write: snapshots and other sessions may read the same memory.
        if column.shared is not None:
            column.part()
        data, stamps = column.data, column.stamps
        # Most writes are of one row with a plain int; the test by type spares them a call.
        if type(index) is not int:
            index = _as_int(index)
        old = data[index]
        # NumPy returns a view for one row, which the write below would change; every other index gives a copy.
        if data.ndim > 1 and type(index) is int:
            old = old.copy()
        # Logged before the write: if NumPy stops halfway (a value that cannot be cast), rollback repairs the row.
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
        """Drop the entry of a failed write to a read-only column."""
        # Nothing was written, and rollback would fail with the same ValueError. A writeable column keeps its entry,
        # because some rows may have been written before the error.
        if not column.data.flags.writeable:
            self._entries.pop()

    def add(self, column: Column[AnyArray], index: Any, change: Any) -> None:
        """Add ``change`` at ``index`` (as in ``put``) and log what it replaces."""
        # The body repeats ``put`` instead of calling it: books and counts of every placement go through here.
        if column.shared is not None:
            column.part()
        data, stamps = column.data, column.stamps
        if type(index) is not int:
            index = _as_int(index)
        old = data[index]
        stamp = None if stamps is None else stamps[index]
        try:
            if data.ndim > 1 and type(index) is int:
                # ``old`` is a view of the row: add in place, which allocates no array for the sum.
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
        """Return the present position, for ``rollback``."""
        return len(self._entries)

    def rollback(self, mark: int) -> None:
        """Undo every write after ``mark``, newest first."""
        entries = self._entries
        # Newest first: where several entries are of one row, the oldest has the value from before the mark.
        while len(entries) > mark:
            column, index, old, version, stamp = entries.pop()
            # Value, version and stamp together, so that answers from before the mark hold again.
            column.data[index] = old
            column.version = version
            if column.stamps is not None:
                column.stamps[index] = stamp

    def forget(self) -> None:
        """Make all writes so far permanent. Marks that were taken before are no longer valid."""
        # Called when no statement is open, so no mark is left to which anything could be rolled back.
        self._entries.clear()


def _as_int(index: Any) -> Any:
    """Return an index of one row as int, and any other index unchanged."""
    # A NumPy integer or a handle (``Row``) indexes one row too, and yields a view that ``put`` has to copy.
    return index if isinstance(index, np.ndarray | list | tuple | slice) else operator.index(index)
