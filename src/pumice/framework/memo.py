"""The memory between questions: the only cache. What it gives is what asking again would give.

An answer is kept with its *ground*, the versions and stamps of all that it rests on, and holds while the ground is the
same. Nothing else decides whether it holds. It saves work and changes nothing: a cycle with an empty memo, or with one
that keeps nothing, decides and says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pumice.columns.column import Column
from pumice.columns.dtypes import I64, AnyArray, read_only
from pumice.framework.world import STAMPED, World

V = TypeVar("V")

#: Ground: whatever must be equal. Versions of columns, stamps of rows as bytes, values.
Ground = tuple[Hashable, ...]

#: Answers kept in each of two generations, and bytes that they may hold together in each; when either is reached, what
#: was not asked for since the last time is forgotten.
ANSWERS_MAX = 20_000
BYTES_MAX = 32 << 20


def ground(*columns: Column[Any]) -> Ground:
    """What rests on every row of some columns."""
    return tuple([column.version for column in columns])


def ground_of_rows(stamps: I64 | None, rows: AnyArray) -> bytes:
    """What rests on some rows of a table."""
    assert stamps is not None, "the table keeps no stamps"
    return stamps[rows].tobytes()


class Memo:
    """Belongs to the shell, which gives it to one cycle after the other. ``keeps`` False: every question is answered
    anew."""

    __slots__ = ("_bytes", "_left", "_older", "_stamps", "_under", "_young", "keeps")

    def __init__(self, *, keeps: bool = True) -> None:
        self.keeps = keeps
        self._under: tuple[object, ...] = ()
        self._left: _Left | None = None
        self._stamps: dict[str, tuple[I64, I64]] = {}  # by axis, as the cycle found them, and when plugins were open
        self._clear()

    def _clear(self) -> None:
        self._young: dict[Hashable, tuple[Ground, Any, int]] = {}
        self._older: dict[Hashable, tuple[Ground, Any, int]] = {}
        self._bytes = 0

    # -- questions ----------------------------------------------------------------------------------------------------

    def get(self, question: Hashable, rests_on: Ground, build: Callable[[], V], size: int = 0) -> V:
        """The answer to a question, built anew unless its ground is the one of last time.

        ``question`` names all that the answer depends on and ``rests_on`` does not. ``size``: bytes that the answer
        holds, where these are many.
        """
        found = self.recall(question, rests_on)
        if found is None:
            found = self.keep(question, rests_on, build(), size)
        return found

    def recall(self, question: Hashable, rests_on: Ground) -> Any | None:
        """The answer, None where there is none that holds."""
        known = self._young.get(question)
        if known is None:
            known = self._older.get(question)
            if known is None:
                return None
            if known[0] == rests_on:
                self._add(question, known)
        return known[1] if known[0] == rests_on else None

    def keep(self, question: Hashable, rests_on: Ground, answer: V, size: int = 0) -> V:
        """Keep an answer under its ground, in place of an older one."""
        if self.keeps:
            self._add(question, (rests_on, answer, size))
        return answer

    def _add(self, question: Hashable, entry: tuple[Ground, Any, int]) -> None:
        self._young[question] = entry
        self._bytes += entry[2]
        if len(self._young) >= ANSWERS_MAX or self._bytes >= BYTES_MAX:
            self._older, self._young, self._bytes = self._young, {}, 0

    def by_row(
        self, question: Hashable, rests_on: Ground, stamps: I64, build: Callable[[AnyArray], AnyArray]
    ) -> AnyArray:
        """An answer a row of a table, (rows,): ``build`` is asked for the rows whose stamps are not those of last time.
        Not to be written on."""
        known: tuple[I64, AnyArray] | None = self.recall(question, (*rests_on, len(stamps)))
        if known is None:
            found = build(np.arange(len(stamps)))
        else:
            rows = (known[0] != stamps).nonzero()[0]
            if not len(rows):
                return known[1]
            found = known[1].copy()
            found[rows] = build(rows)
        found.setflags(write=False)
        self.keep(question, (*rests_on, len(stamps)), (stamps.copy(), found), stamps.nbytes + found.nbytes)
        return found

    # -- from one cycle to the next -----------------------------------------------------------------------------------

    def begin(self, world: World, *under: object) -> None:
        """A cycle begins. What rests on another policy, or another store's versions, is forgotten (``under`` is
        compared by identity)."""
        now_under = (world.tables.versions, *under)
        same = len(now_under) == len(self._under) and all(a is b for a, b in zip(now_under, self._under, strict=True))
        if not same:
            self._clear()
            self._under, self._left = now_under, None
        left = self._left
        if left is None or not world.to_write:
            return
        if left.now == world.now.array[0]:
            world.now.version = left.now_version
        for axis, rows in left.stamps.items():
            table = world.table(axis)
            assert table.stamps is not None
            there = table.stamps[: len(rows.found)]  # a table may have got more rows
            if len(there) == len(rows.found):
                # Of a table that sessions do not write on, only what plugins say of a row may have moved.
                np.copyto(there, rows.begun if table.MOVING else rows.ended, where=there == rows.found)

    def begin_column(self, world: World, name: str) -> None:
        """A plugin has made a column anew. Where it is what it was when the last cycle ended, or began, it has the
        version of then; and no row has a stamp under which the plugin said otherwise of it."""
        column, left = world.columns[name], self._left
        column.shared = Column.move  # the next cycle compares with what it begins with
        if left is not None:
            before = left.columns.get(name)
            if before is not None and before.ended is column.array and before.begun is column.array:
                column.version = before.ended_version  # the very answer of last time, most of the time
            else:
                _begin(column, before, left.stamps.get(world.axis_of(name)), world)
        world.begun_with[name] = column.array, column.version

    def begun(self, world: World) -> None:
        """The plugins are open, and have made their columns."""
        if self.keeps and world.to_write:
            axes = dict.fromkeys(map(world.axis_of, world.begun_with))
            self._stamps = {axis: (world.stamps_found(axis), world.stamps(axis)) for axis in axes if axis in STAMPED}

    def end(self, world: World) -> None:
        """The cycle is over, and this is how it left what plugins keep."""
        if not self.keeps or not world.to_write:
            return
        columns = {}
        for name, (begun, version) in world.begun_with.items():
            column = world.columns[name]
            columns[name] = _Kept(begun, version, column.array, column.version)
        stamps = {axis: _Rows(*known, world.stamps(axis)) for axis, known in self._stamps.items()}
        self._left, self._stamps = _Left(float(world.now.array[0]), world.now.version, stamps, columns), {}


class _Rows(NamedTuple):
    """Stamps of a table as a cycle found it, when its plugins were open, and as it ended."""

    found: I64
    begun: I64
    ended: I64


class _Kept(NamedTuple):
    """A plugin's column as a cycle began, and as it ended, with its versions."""

    begun: AnyArray
    begun_version: int
    ended: AnyArray
    ended_version: int


class _Left(NamedTuple):
    """What a cycle left of what plugins keep: its moment, with its version; by axis the stamps of rows, by name the
    columns."""

    now: float
    now_version: int
    stamps: dict[str, _Rows]
    columns: dict[str, _Kept]


def _begin(column: Column[Any], before: _Kept | None, rows: _Rows | None, world: World) -> None:
    """Find out what a column has in common with the one of the last cycle."""
    known = before is not None and _equal(before.ended, column.array)
    if before is not None and known:
        column.version = before.ended_version
    elif before is not None and _equal(before.begun, column.array):
        column.version = before.begun_version
    if column.stamps is None:
        return
    if before is None or rows is None or not _goes_on(before.ended, column.array):
        column.stamps[:] = world.tables.versions.next()  # it was not there under the stamps that rows have
    elif not (known and before.begun is before.ended):
        _raise_others(column.stamps, rows, before, column, world)


def _raise_others(stamps: I64, rows: _Rows, before: _Kept, column: Column[Any], world: World) -> None:
    """Give new stamps to the rows that have one under which a plugin's column said otherwise of them."""
    for known, array in ((rows.begun, before.begun), (rows.ended, before.ended)):
        others = _differing(array, column.array if len(array) == len(column.array) else column.array[: len(array)])
        if len(others):
            others = others[stamps[others] == known[others]]
            if len(others):
                stamps[others] = world.tables.versions.next()


def _equal(left: AnyArray, right: AnyArray) -> bool:
    """Whether two arrays are the same bytes in the same shape."""
    return left is right or (left.shape == right.shape and left.tobytes() == right.tobytes())


def _goes_on(left: AnyArray, right: AnyArray) -> bool:
    """Whether the second array has as many rows as the first, or more, of the same shape."""
    return left.shape[1:] == right.shape[1:] and len(left) <= len(right)


def _differing(left: AnyArray, right: AnyArray) -> AnyArray:
    """Rows of two arrays of one shape that differ; some may come several times."""
    if left is right:
        return _NONE
    places: AnyArray = (left != right).reshape(-1).nonzero()[0]
    return places if left.ndim == 1 else places // (left.size // len(left))


_NONE: AnyArray = read_only(np.zeros(0, dtype=np.int64))
