"""A column: one array that only a writer changes, and the version of what it holds.

    equal version          =>  equal bytes
    equal stamp of a row   =>  equal bytes of that row, in every column of its table

Versions and stamps come from one source that never repeats, and whoever takes a write back takes its version and stamps
back with it. So what somebody found out holds as long as the versions it rests on are the same: there is no other rule
by which anything is kept (``framework.memo``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Generic, TypeVar

from pumice.columns.dtypes import F64, I64, AnyArray

A = TypeVar("A", bound=AnyArray)


class Versions:
    """A source of numbers that never repeats: one for a store, its snapshots and the sessions on them.

    ``next`` gives a number that none was given before. Two sources give equal numbers for different things, so what
    rests on versions of one must not be asked under another: ``framework.memo`` sees to that.
    """

    __slots__ = ("next",)

    def __init__(self, first: int = 1) -> None:
        self.next = count(first).__next__


_unmade = object.__new__


class Column(Generic[A]):
    """``array`` to read; ``data``, the same memory, for writers alone. Axis 0 is the rows.

    ``stamps`` (rows,) belong to the table: a write to any of its columns raises those of the rows written; None where
    nobody asks for single rows. Of a value's column ``data`` is read-only too, and a write is NumPy's ValueError.

    ``name``: in its table. ``shared``: others may read the same memory, as it is. Whoever writes calls ``part`` before,
    which calls this, and so leaves them what they read. None where the memory is the column's own.

    ``per_task`` (C, …), of a column of nodes: what one more task of each class adds to its node's row. It lets rows be
    read as they would be after a placement (``NodeRows.read``); None: placements leave the column alone.
    """

    __slots__ = ("array", "data", "name", "per_task", "shared", "stamps", "version")

    def __init__(self, data: A, version: int, stamps: I64 | None = None, name: str = "") -> None:
        self.name = name
        self.data = data
        self.array: A = data
        if data.flags.writeable:
            self.array = data.view()
            self.array.setflags(write=False)
        self.version = version
        self.stamps = stamps
        self.shared: Callable[[Column[A]], object] | None = None
        self.per_task: F64 | None = None

    def reader(self) -> Column[A]:
        """The same memory and version, for who only reads: a value for as long as nobody writes there (``part``)."""
        return self.sharing(None)

    def sharing(self, stamps: I64 | None) -> Column[A]:
        """The same memory and version under other stamps. Whoever may write there sets ``shared``."""
        twin: Column[A] = _unmade(Column)  # tables make dozens of them a cycle: half of what __init__ takes
        twin.name, twin.version, twin.stamps = self.name, self.version, stamps
        twin.data = twin.array = self.array
        twin.shared = twin.per_task = None
        return twin

    def part(self) -> None:
        """Have memory of its own from now on, where others need what is there."""
        leave, self.shared = self.shared, None
        if leave is not None:
            leave(self)

    def move(self) -> None:
        """Go on with a copy."""
        self.data = self.data.copy("K")
        self.array = self.data.view()
        self.array.setflags(write=False)


class Writer:
    """Writes and raises versions, and remembers nothing: what the store has for events, which are facts."""

    __slots__ = ("next_version",)

    def __init__(self, versions: Versions) -> None:
        self.next_version = versions.next

    def put(self, column: Column[AnyArray], index: Any, value: Any) -> None:
        """Write ``value`` at ``index``: a row as int, a list or array of rows without repeats, or a mask."""
        if column.shared is not None:
            column.part()
        version = column.version = self.next_version()
        column.data[index] = value
        if column.stamps is not None:
            column.stamps[index] = version

    def add(self, column: Column[AnyArray], index: Any, change: Any) -> None:
        """Add ``change`` at ``index``, likewise."""
        if column.shared is not None:
            column.part()
        version = column.version = self.next_version()
        column.data[index] += change
        if column.stamps is not None:
            column.stamps[index] = version
