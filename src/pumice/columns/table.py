"""Tables: columns with rows in common, from one specification.

    class TaskTable(Table):
        job: I32 = number(np.int32, -1)
        status: I8 = number(np.int8, -1, moves=True)
        pods: list[Pod] = objects()

``table.status`` is the array to read, ``table["status"]`` the column that a writer takes. Rows come and go: columns
grow by a quarter when full, for much is worked out over all rows, and freed rows are handed out again.
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
    """``unused``: the value of a row that is not in use. ``moves``: a session may write it. ``rows_last``: in memory
    the rows run fastest, so that one amount of all rows lies side by side.

    ``rows_of``: values are rows of that table (``tree``: of the hypernodes), -1 none. ``below``: they are codes, below
    this number. Neither: any number.
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
    """A column of numbers. Further axes have the lengths that the table's constructor gives by name."""
    return Field(dtype, unused, moves, rows_last, rows_of, below)


def objects(*, moves: bool = False) -> Any:
    """A column of Python values, None in rows that are not in use."""
    return Field(np.object_, None, moves)


class Parting:
    """What a writer calls before it writes to memory that others may read: their table says whether anybody does."""

    __slots__ = ("_table",)

    def __init__(self, table: Table) -> None:
        self._table = ref(table)  # it holds this by its columns, and is to be free as soon as nobody wants it

    def __call__(self, column: Column[AnyArray]) -> None:
        table = self._table()
        assert table is not None, "a column is written after its table is gone"
        table.part(column)


class Table:
    """``alive`` marks rows in use. ``stamps`` (rows,): raised for each row that is written, in whatever column; equal
    stamps mean equal bytes of the row. None where the table is ``unstamped``. ``value``: the store's table as a value,
    None since it was written.

    Memory is copied when it is written, and only where others read it: a value (``freeze``) and a fork of it have the
    memory of the table that they are of, until one of them is written to; and what nobody holds any more when the store
    moves on is not copied at all (decision 0006).
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {}
    MOVING: ClassVar[tuple[str, ...]] = ()
    #: Whether plugins' columns raise the stamps of its rows (``World.column``), though a session writes none of these.
    BEARS_COLUMNS: ClassVar[bool] = False
    IS_WRITTEN_ON: ClassVar[bool] = False  # by sessions
    _BLANK: ClassVar[Mapping[str, Any]] = {}  # a row that is not in use

    alive: Bool
    columns: dict[str, Column[AnyArray]]
    stamps: I64 | None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: cls.__dict__[name] for name in cls.__annotations__ if isinstance(cls.__dict__.get(name), Field)}
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
        self._known: dict[str, Column[AnyArray]] = {}  # columns of the last value
        self._written: list[Column[AnyArray]] = []  # those that are not as they were in it: their memory is their own
        self._held: list[ref[Self]] = []  # values from before the last write that somebody may still hold
        self._source: Self | None = None  # of a fork: the value that it began as
        self._parting = Parting(self)
        self._resize(0)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        """One without rows, in a cluster of these resources."""
        return cls(versions)

    def __getitem__(self, name: str) -> Column[AnyArray]:
        """The column of a name, for a writer."""
        return self.columns[name]

    @property
    def capacity(self) -> int:
        """Number of rows, used or not: the length of every column."""
        return len(self.alive)

    @classmethod
    def value_type(cls, name: str) -> Any:
        """What a column of Python values holds in the rows that are in use, as its annotation ``Sequence[…]`` says."""
        return get_args(get_type_hints(cls)[name])[0]

    def shape(self, name: str, rows: int) -> tuple[int, ...]:
        """The shape that a column has when the table has so many rows."""
        return (rows, *self._lengths.get(name, ()))

    def _unused(self, name: str, rows: int) -> AnyArray:
        """So many rows of a column, unused."""
        field = self.FIELDS[name]
        order: Literal["C", "F"] = "F" if field.rows_last else "C"
        return np.full(self.shape(name, rows), field.unused, dtype=field.dtype, order=order)

    # -- writing facts: the store's side -------------------------------------------------------------------------------

    def write(self, rows: Any, **values: Any) -> None:
        """Put a value, or an array of values, into ``rows`` (an int, a list or an array) of each named column."""
        version, columns = self._versions.next(), self.columns
        for name, value in values.items():
            column = columns[name]
            if column.shared is not None:
                column.shared = None
                self.part(column)
            column.data[rows] = value
            column.version = version
        if self.stamps is not None:
            self.stamps[rows] = version

    def new_rows(self, count: int, **values: Any) -> list[int]:
        """So many rows, marked alive, with these values (one for all, or one a row) and the others unused."""
        missing = count - len(self._free)
        if missing > 0:
            self._resize(self.capacity + max(missing, self.capacity // 4, 64))
        rows = self._free[: -count - 1 : -1]
        del self._free[-count:]
        self.write(np.array(rows) if count > 1 else rows[0], alive=True, **values)
        return rows

    def free_rows(self, rows: Sequence[int]) -> None:
        """Give rows back and blank them."""
        self.write(np.array(rows) if len(rows) > 1 else rows[0], **self._BLANK)
        self._free.extend(rows)

    def free_row(self, row: int) -> None:
        """Give a row back and blank it."""
        self.free_rows((row,))

    def _remake(self, lengths: Mapping[str, tuple[int, ...]]) -> None:
        """Give columns other lengths than they had, with nothing in them."""
        self._lengths, version = {**self._lengths, **lengths}, self._versions.next()
        self._move_on()
        for name in lengths:
            self._adopt(Column(self._unused(name, self.capacity), version, self.stamps, name))
        if self.stamps is not None:
            self.stamps[:] = version

    def _resize(self, size: int) -> None:
        """Make every column ``size`` rows long; those that come are unused."""
        version = self._versions.next()
        self._move_on()
        old = len(self.columns["alive"].data) if self.columns else 0
        if self._stamped:
            stamps = np.full(size, version, dtype=np.int64)
            if old and self.stamps is not None:
                stamps[:old] = self.stamps
            self.stamps = stamps
        else:
            self.stamps = None
        self._written = []
        for name in self.FIELDS:
            data = self._unused(name, size)
            if old:
                data[:old] = self.columns[name].data
            self._adopt(Column(data, version, self.stamps, name))
        self._free.extend(range(size - 1, old - 1, -1))

    def _adopt(self, column: Column[AnyArray]) -> None:
        self.columns[column.name] = column
        self._written.append(column)
        self.__dict__[column.name] = column.array

    # -- the same rows for others --------------------------------------------------------------------------------------

    def freeze(self) -> Self:
        """The store's table as it is now, as a value: what is written later does not change it. Columns that were not
        written since the last call are the same."""
        assert self._source is None, "what a session writes is told to nobody: its tables are no values"
        if self.value is not None:
            return self.value
        columns = self._known = self._known.copy()
        for column in self._written:
            column.shared = self._parting
            columns[column.name] = column.reader()
        self._written = []
        stamps = None if self.stamps is None else read_only(self.stamps)
        self.value = self._twin(columns=columns, stamps=stamps, _known={}, _held=[])
        return self.value

    def _twin(self, **others: Any) -> Self:
        """Another with the same attributes, but for these, and nothing written yet."""
        twin, attributes = object.__new__(type(self)), self.__dict__.copy()  # faster than to update an empty one
        attributes.update(others, _written=[])
        twin.__dict__ = attributes
        return twin

    def _move_on(self) -> None:
        """Something is about to be written for the first time since the table was a value."""
        if self.value is None:
            return
        self._held.append(ref(self.value))
        self.value = None  # if nobody else has it, it is gone now
        if self._is_read() and self.stamps is not None:
            self.stamps = self.stamps.copy()
            for column in self.columns.values():
                column.stamps = self.stamps

    def _is_read(self) -> bool:
        """Whether somebody holds a value from before the last write."""
        self._held = [each for each in self._held if each() is not None]
        return bool(self._held)

    def part(self, column: Column[AnyArray]) -> None:
        """Leave the memory of a column, which is about to be written, to those who read it."""
        if self.value is not None:
            self._move_on()
        self._written.append(column)
        if self._source is not None or (self._held and self._is_read()):
            column.move()
            self.__dict__[column.name] = column.array

    def adopt(self, other: Table) -> None:
        """Take the versions and stamps of a table of the same bytes: a session's, which did what has been done here
        now. Rows and columns that are others keep theirs."""
        if other.capacity != self.capacity or self.stamps is None or other.stamps is None:
            return
        rows = (self.stamps != other.stamps).nonzero()[0]
        same: Bool | None = None  # all of them
        for name, column in self.columns.items():
            then = other.columns[name]
            if column.version == then.version:
                continue
            if column.array.shape != then.array.shape:  # a resource came that nobody had counted
                return
            equal = unequal_rows(column.array, then.array, rows)
            if equal is not None:
                same = equal if same is None else same & equal
            elif column.shared is None:  # written since the table was a value, which has the versions of before
                column.version = then.version
        self._move_on()
        carried = rows if same is None else rows[same]
        self.stamps[carried] = other.stamps[carried]

    def restored(self, arrays: Mapping[str, AnyArray]) -> Self:
        """The table with these columns, all of them and of one length, as a value. Versions are new, and so is the
        stamp of each row, which no other row has."""
        next_version = self._versions.next
        twin = self._twin(columns={}, _free=[], value=None, _known={}, _held=[])
        stamps = [next_version() for _ in range(len(arrays["alive"]))] if self._stamped else None
        twin.stamps = None if stamps is None else read_only(np.array(stamps, dtype=np.int64))
        for name in self.FIELDS:
            twin._adopt(Column(read_only(arrays[name]), next_version(), None, name))
        return twin

    def fork(self) -> Self:
        """A value's rows, to write on: moving columns are shared until they are written, stamps are its own."""
        assert not self.columns["alive"].data.flags.writeable, (
            "only a value is forked: who writes on a table is not told"
        )
        stamps = None if self.stamps is None else self.stamps.copy()
        columns = self.columns.copy()
        twin = self._twin(columns=columns, stamps=stamps, _source=self)
        parting = Parting(twin)
        for name in self.MOVING:
            column = columns[name] = columns[name].sharing(stamps)
            column.shared = parting
        return twin


def unequal_rows(left: AnyArray, right: AnyArray, rows: AnyArray) -> Bool | None:
    """Which of some rows are equal, None where all are, which is found out fast; Python values are equal where they are
    the same object."""
    left, right = left[rows], right[rows]
    if left.dtype == np.object_:
        equal = np.array([a is b for a, b in zip(left.tolist(), right.tolist(), strict=True)], dtype=bool)
        return None if equal.all() else equal
    if left.tobytes() == right.tobytes():
        return None
    found: Bool = (left == right).reshape(len(rows), -1).all(axis=1)
    return found
