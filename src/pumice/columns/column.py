"""A column: one array that only a writer changes, and the version of its contents.

1. Equal version of a column means equal bytes of the column.
2. Equal stamp of a row means equal bytes of that row in every column of its table.
3. Versions and stamps come from one source that never repeats a number.
4. A rollback restores the version and the stamps together with the bytes.

It follows that an answer is valid as long as the versions that it was computed from are the present ones. No other rule
of validity is used anywhere (``framework.memo``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Generic, TypeVar

from pumice.columns.dtypes import F64, I64, AnyArray

A = TypeVar("A", bound=AnyArray)


class Versions:
    """A source of numbers that never repeats. A store, its snapshots and their sessions have one in common.

    ``next`` returns a number that it has not returned before. Two sources return equal numbers for different contents:
    ``framework.memo`` keeps answers of different sources apart.
    """

    __slots__ = ("next",)

    def __init__(self, first: int = 1) -> None:
        # The bound method of a C iterator: one call of a few nanoseconds, with no Python frame, for each write.
        self.next = count(first).__next__


_unmade = object.__new__


class Column(Generic[A]):
    """One array of a table, with its version. Axis 0 is the rows.

    ``array`` is for readers; ``data`` is the same memory, for writers only. In a column of a value ``data`` is
    read-only too, so that a write raises ValueError.

    ``name`` is the column's name in its table. ``stamps`` (rows,) belong to the table: a write to any of its columns
    renews the stamps of the rows written. They are None in tables whose rows are not compared one by one.

    ``shared`` is None where the memory is the column's own. Otherwise other columns read the same memory: a writer
    calls ``part`` first, which calls ``shared``, which gives this column a copy where one is needed.

    ``per_task`` (C, …) exists in columns of nodes: what one more task of each class adds to the row of its node.
    ``NodeRows.read`` uses it to show rows as they would be after a placement. None means that a placement does not
    change the column.
    """

    __slots__ = ("array", "data", "name", "per_task", "shared", "stamps", "version")

    def __init__(self, data: A, version: int, stamps: I64 | None = None, name: str = "") -> None:
        self.name = name
        self.data = data
        self.array: A = data
        # A plugin that writes to ``array`` would change bytes without changing the version: make that an error.
        if data.flags.writeable:
            self.array = data.view()
            self.array.setflags(write=False)
        self.version = version
        self.stamps = stamps
        self.shared: Callable[[Column[A]], object] | None = None
        self.per_task: F64 | None = None

    def reader(self) -> Column[A]:
        """Return a read-only column of the same memory and version.

        It is a value: a writer of this column calls ``part`` first, which leaves the memory to the reader.
        """
        return self.sharing(None)

    def sharing(self, stamps: I64 | None) -> Column[A]:
        """Return a column of the same memory and version under other stamps. A caller that writes to it must set
        ``shared``."""
        # Every cycle makes dozens of columns this way; without __init__ it takes half the time.
        twin: Column[A] = _unmade(Column)
        twin.name, twin.version, twin.stamps = self.name, self.version, stamps
        # ``array`` is the read-only view, so a write that skipped ``part`` fails instead of changing what others read.
        twin.data = twin.array = self.array
        twin.shared = twin.per_task = None
        return twin

    def part(self) -> None:
        """Prepare for a write: give the column memory of its own if other columns still read the present memory."""
        # Reset before the call: the next write must not ask again, and ``shared`` decides whether to copy at all.
        leave, self.shared = self.shared, None
        if leave is not None:
            leave(self)

    def move(self) -> None:
        """Replace the memory by a copy. The version stays, because the bytes are equal."""
        self.data = self.data.copy("K")  # "K" keeps the order of axes: books lie resource by resource (``rows_last``)
        self.array = self.data.view()
        self.array.setflags(write=False)


class Writer:
    """Writes without an undo log. The store uses it for events, which are facts and are never rolled back."""

    __slots__ = ("next_version",)

    def __init__(self, versions: Versions) -> None:
        self.next_version = versions.next

    def put(self, column: Column[AnyArray], index: Any, value: Any) -> None:
        """Write ``value`` at ``index``: a row (int), a list or array of rows without repeats, or a mask."""
        if column.shared is not None:
            column.part()
        # The new version comes first: a write that fails halfway must not leave changed bytes under the old version.
        version = column.version = self.next_version()
        column.data[index] = value
        if column.stamps is not None:
            column.stamps[index] = version

    def add(self, column: Column[AnyArray], index: Any, change: Any) -> None:
        """Add ``change`` at ``index`` (as in ``put``)."""
        if column.shared is not None:
            column.part()
        version = column.version = self.next_version()
        # Buffered: an index that is repeated would be added once only, which is why repeats are forbidden.
        column.data[index] += change
        if column.stamps is not None:
            column.stamps[index] = version


#: A column whose type of number does not matter.
AnyColumn = Column[Any]
