"""Tables: columns with rows in common, from one specification.

    class TaskTable(Table):
        job: I32 = number(np.int32, -1)
        status: I8 = number(np.int8, -1, moves=True)
        pods: list[Pod] = objects()

``table.status`` is the array to read, ``table["status"]`` the column that a writer takes. Rows are reused: a freed row
is given to the next object, and columns grow by a quarter when all rows are in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, get_args, get_type_hints
from weakref import ref

import numpy as np
from msgspec import Struct

from pumice.columns.column import Column, Versions
from pumice.columns.dtypes import I64, AnyArray, Bool, ResourceAxis, read_only


class Field(Struct, frozen=True):
    """The specification of one column.

    ``unused`` is the value in rows that are not in use. ``moves``: sessions may write it. ``rows_last``: in memory the
    axis of rows varies fastest, so one amount of all rows is contiguous.

    ``rows_of``: the values are rows of that table (``tree``: of the hypernodes), or -1. ``below``: the values are codes
    less than this number. Without both, any number is allowed.
    """

    dtype: Any
    unused: Any
    moves: bool
    rows_last: bool = False
    rows_of: str = ""
    below: int | None = None


def number(
    dtype: Any,
    unused: Any = 0,
    *,
    moves: bool = False,
    rows_last: bool = False,
    rows_of: str = "",
    below: int | None = None,
) -> Any:
    """Declare a column of numbers. The table's constructor gives the lengths of further axes by column name."""
    return Field(dtype, unused, moves, rows_last, rows_of, below)


def objects(*, moves: bool = False) -> Any:
    """Declare a column of Python values, None in rows that are not in use."""
    return Field(np.object_, None, moves)


class WriteGuard:
    """The ``shared`` of a table's columns: before a write it lets the table decide whether to copy the column."""

    __slots__ = ("_table",)

    def __init__(self, table: Table) -> None:
        # Weak, because the table refers to this through its columns. With a cycle of references a table would live on
        # until the garbage collector runs, and its memory would be copied for a reader that no longer exists.
        self._table = ref(table)

    def __call__(self, column: Column[AnyArray]) -> None:
        table = self._table()
        assert table is not None, "a column is written after its table is gone"
        table.part(column)


class Table:
    """Columns with rows in common. It is one of three things, which share memory until one of them is written to.

    * The store's table. Events write to it.
    * A value (``freeze``): the store's table at one moment. Read-only.
    * A fork of a value (``fork``): what one session writes to.

    ``alive`` marks the rows in use. ``stamps`` (rows,): a row gets a new stamp when any of its columns is written, so
    equal stamps mean equal bytes of the row. None in a table without stamps.
    ``value``: the present value of the store's table, None as soon as something was written after ``freeze``.

    Memory is copied on write, and only if a value that reads it is still referenced (decision 0006).
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {}
    MOVING: ClassVar[tuple[str, ...]] = ()
    #: Columns of plugins renew the stamps of its rows (``World.column``), even if sessions write no column of its own.
    BEARS_COLUMNS: ClassVar[bool] = False
    #: Sessions write to it, so a session needs a fork. Other tables are used as they are in the snapshot.
    IS_WRITTEN_ON: ClassVar[bool] = False
    _BLANK: ClassVar[Mapping[str, Any]] = {}

    alive: Bool
    columns: dict[str, Column[AnyArray]]
    stamps: I64 | None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: cls.__dict__[name] for name in cls.__annotations__ if isinstance(cls.__dict__.get(name), Field)}
        # The names become attributes of each instance (``_adopt``). A specification left on the class would be read in
        # place of an array that was forgotten.
        for name in own:
            delattr(cls, name)
        cls.FIELDS = {"alive": Field(np.bool_, False, moves=False), **own}
        cls._BLANK = {name: field.unused for name, field in cls.FIELDS.items()}
        cls.MOVING = tuple(name for name, field in cls.FIELDS.items() if field.moves)
        cls.IS_WRITTEN_ON = cls.BEARS_COLUMNS or bool(cls.MOVING)

    def __init__(
        self, versions: Versions, lengths: Mapping[str, tuple[int, ...]] | None = None, *, stamped: bool = True
    ) -> None:
        self._versions = versions
        self._free: list[int] = []
        self._lengths = lengths or {}
        self._stamped = stamped
        self.columns = {}
        self.value: Self | None = None
        # Columns of the last value. Those in ``_written`` have changed since, and have memory of their own.
        self._frozen: dict[str, Column[AnyArray]] = {}
        self._written: list[Column[AnyArray]] = []
        # Weak, so that a value that is no longer used costs no copy (``part``).
        self._older_values: list[ref[Self]] = []
        # The value that a fork was made from. The reference keeps the shared memory from being written in place.
        self._source: Self | None = None
        self._guard = WriteGuard(self)
        self._resize(0)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        """Return a table without rows, for a cluster with these resources."""
        return cls(versions)

    def __getitem__(self, name: str) -> Column[AnyArray]:
        """Return a column by name, for a writer."""
        return self.columns[name]

    @property
    def capacity(self) -> int:
        """Number of rows, used or not: the length of every column."""
        return len(self.alive)

    @classmethod
    def value_type(cls, name: str) -> Any:
        """Return the type of the values of an object column, from its annotation ``Sequence[…]``."""
        return get_args(get_type_hints(cls)[name])[0]

    def shape(self, name: str, rows: int) -> tuple[int, ...]:
        """Return the shape of a column of a table with so many rows."""
        return (rows, *self._lengths.get(name, ()))

    def _unused(self, name: str, rows: int) -> AnyArray:
        """Return memory for so many unused rows of a column."""
        field = self.FIELDS[name]
        order: Literal["C", "F"] = "F" if field.rows_last else "C"
        return np.full(self.shape(name, rows), field.unused, dtype=field.dtype, order=order)

    # -- writing facts: the store's side -------------------------------------------------------------------------------

    def write(self, rows: Any, **values: Any) -> None:
        """Write to ``rows`` (an int, a list or an array) of each named column a value or an array of values."""
        version, columns = self._versions.next(), self.columns
        for name, value in values.items():
            column = columns[name]
            # As ``Column.part``, without going through the guard: this is the store's table.
            if column.shared is not None:
                column.shared = None
                self.part(column)
            column.data[rows] = value
            column.version = version
        if self.stamps is not None:
            self.stamps[rows] = version

    def new_rows(self, count: int, **values: Any) -> list[int]:
        """Return so many new rows, alive and with these values (one for all, or one for each row)."""
        missing = count - len(self._free)
        if missing > 0:
            # A quarter and not twice as much: much of a cycle is computed over all rows, used or not.
            self._resize(self.capacity + max(missing, self.capacity // 4, 64))
        # ``_free`` is a stack with the lowest row on top after a resize, so rows in use stay close together.
        rows = self._free[: -count - 1 : -1]
        del self._free[-count:]
        self.write(np.array(rows) if count > 1 else rows[0], alive=True, **values)
        return rows

    def free_rows(self, rows: Sequence[int]) -> None:
        """Free rows and reset their columns to the unused values."""
        self.write(np.array(rows) if len(rows) > 1 else rows[0], **self._BLANK)
        self._free.extend(rows)

    def free_row(self, row: int) -> None:
        """Free a row (see ``free_rows``)."""
        self.free_rows((row,))

    def _remake(self, lengths: Mapping[str, tuple[int, ...]]) -> None:
        """Replace columns by empty ones whose further axes have other lengths."""
        self._lengths, version = {**self._lengths, **lengths}, self._versions.next()
        # Before the new columns take the present stamps, which values may still read.
        self._leave_value()
        for name in lengths:
            self._adopt(Column(self._unused(name, self.capacity), version, self.stamps, name))
        if self.stamps is not None:
            self.stamps[:] = version

    def _resize(self, size: int) -> None:
        """Replace every column by one with ``size`` rows; the added rows are unused."""
        version = self._versions.next()
        self._leave_value()
        old = len(self.columns["alive"].data) if self.columns else 0
        if self._stamped:
            stamps = np.full(size, version, dtype=np.int64)
            if old and self.stamps is not None:
                stamps[:old] = self.stamps
            self.stamps = stamps
        else:
            self.stamps = None
        # The columns in it are replaced now, all of them by ``_adopt``.
        self._written = []
        for name in self.FIELDS:
            data = self._unused(name, size)
            if old:
                data[:old] = self.columns[name].data
            self._adopt(Column(data, version, self.stamps, name))
        # Descending, so that ``new_rows`` pops the lowest row first.
        self._free.extend(range(size - 1, old - 1, -1))

    def _adopt(self, column: Column[AnyArray]) -> None:
        self.columns[column.name] = column
        self._written.append(column)
        # A plain attribute: ``table.status`` is read in inner loops and must not be a call.
        self.__dict__[column.name] = column.array

    # -- values and forks ----------------------------------------------------------------------------------------------

    def freeze(self) -> Self:
        """Return the store's table as it is now, as a value. Later writes do not change it."""
        assert self._source is None, "only the store's tables have values, not those of a session"
        # No write since the last call: the same object, so readers can compare tables by identity.
        if self.value is not None:
            return self.value
        # Columns that were not written are those of the last value; the cost follows the number of changed columns.
        columns = self._frozen = self._frozen.copy()
        for column in self._written:
            column.shared = self._guard
            columns[column.name] = column.reader()
        self._written = []
        stamps = None if self.stamps is None else read_only(self.stamps)
        self.value = self._twin(columns=columns, stamps=stamps, _frozen={}, _older_values=[])
        return self.value

    def _twin(self, **others: Any) -> Self:
        """Return a table with the same attributes except for these, in which nothing was written yet."""
        # Copying the dictionary is faster than filling an empty one, and calling __init__ would allocate columns.
        twin, attributes = object.__new__(type(self)), self.__dict__.copy()
        attributes.update(others, _written=[])
        twin.__dict__ = attributes
        return twin

    def _leave_value(self) -> None:
        """Prepare for the first write after ``freeze``: the present value becomes an older one."""
        if self.value is None:
            return
        self._older_values.append(ref(self.value))
        # Drop the own reference before asking: a value without other references is freed here, and costs no copy.
        self.value = None
        if self._is_read() and self.stamps is not None:
            self.stamps = self.stamps.copy()
            for column in self.columns.values():
                column.stamps = self.stamps

    def _is_read(self) -> bool:
        """Return True if an older value is still referenced."""
        self._older_values = [each for each in self._older_values if each() is not None]
        return bool(self._older_values)

    def part(self, column: Column[AnyArray]) -> None:
        """Prepare a column for a write: give it memory of its own if a value still reads the present memory."""
        if self.value is not None:
            self._leave_value()
        self._written.append(column)
        # A fork always copies: its memory is that of the value, which it refers to itself.
        if self._source is not None or (self._older_values and self._is_read()):
            column.move()
            self.__dict__[column.name] = column.array

    def adopt(self, other: Table) -> None:
        """Take over versions and stamps from a session's table where the bytes are equal."""
        # A session that binds tasks and the store that then assumes those binds write the same bytes under different
        # versions. With the session's versions, what the session computed after its writes holds in the next cycle.
        if other.capacity != self.capacity or self.stamps is None or other.stamps is None:
            return
        rows = (self.stamps != other.stamps).nonzero()[0]
        same: Bool | None = None  # None: all of ``rows`` are equal so far
        for name, column in self.columns.items():
            then = other.columns[name]
            if column.version == then.version:
                continue
            if column.array.shape != then.array.shape:  # the axis of resources has changed since
                return
            # Only rows with different stamps can differ, by the rule of stamps.
            equal = equal_rows(column.array, then.array, rows)
            if equal is not None:
                same = equal if same is None else same & equal
            elif column.shared is None:
                # Only if it was written since ``freeze``: otherwise a value exists that has the present version.
                column.version = then.version
        self._leave_value()
        # A stamp covers the whole row, so it is taken over only where all columns agree.
        carried = rows if same is None else rows[same]
        self.stamps[carried] = other.stamps[carried]

    def restored(self, arrays: Mapping[str, AnyArray]) -> Self:
        """Return a value with these columns, which must be complete and of one length. Versions and stamps are new."""
        next_version = self._versions.next
        twin = self._twin(columns={}, _free=[], value=None, _frozen={}, _older_values=[])
        # A stamp of its own for each row: with a common one, unequal rows would pass for equal (``identity``).
        stamps = [next_version() for _ in range(len(arrays["alive"]))] if self._stamped else None
        twin.stamps = None if stamps is None else read_only(np.array(stamps, dtype=np.int64))
        for name in self.FIELDS:
            twin._adopt(Column(read_only(arrays[name]), next_version(), None, name))
        return twin

    def fork(self) -> Self:
        """Return a table for a session to write to. Its moving columns share memory with this value until written."""
        assert not self.columns["alive"].data.flags.writeable, "only a value can be forked, not a table that changes"
        # Copied at once: the first write of the session needs them, and there is no session without a write.
        stamps = None if self.stamps is None else self.stamps.copy()
        columns = self.columns.copy()
        twin = self._twin(columns=columns, stamps=stamps, _source=self)
        guard = WriteGuard(twin)
        for name in self.MOVING:
            column = columns[name] = columns[name].sharing(stamps)
            column.shared = guard
        return twin


def equal_rows(left: AnyArray, right: AnyArray, rows: AnyArray) -> Bool | None:
    """Return which of some rows are equal, or None if all are. Python values are equal if they are the same object."""
    left, right = left[rows], right[rows]
    if left.dtype == np.object_:
        # By identity: comparing pods field by field costs more than the stamps save.
        equal = np.array([a is b for a, b in zip(left.tolist(), right.tolist(), strict=True)], dtype=bool)
        return None if equal.all() else equal
    # Usually all rows are equal, and comparing bytes finds that out without a temporary mask. It also treats nan as
    # equal to itself.
    if left.tobytes() == right.tobytes():
        return None
    found: Bool = (left == right).reshape(len(rows), -1).all(axis=1)
    return found
