"""The memory between questions: the only cache. What it gives is what asking again would give.

An answer is kept with its *ground*, the versions and stamps of all that it rests on, and holds while the ground is the
same. Nothing else decides whether it holds. It saves work and changes nothing: a cycle with an empty memo, or with one
that keeps nothing, decides and says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from pumice.columns.column import Column, Versions
from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.table import Table
from pumice.framework.world import World

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

    __slots__ = ("_bytes", "_last", "_older", "_under", "_young", "keeps")

    def __init__(self, *, keeps: bool = True) -> None:
        self.keeps = keeps
        self._under: tuple[object, ...] = ()
        self._last: World | None = None
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
        self.keep(question, (*rests_on, len(stamps)), (stamps.copy(), found), stamps.nbytes + found.nbytes)
        return found

    # -- from one cycle to the next -----------------------------------------------------------------------------------

    def begin(self, world: World, *under: object) -> None:
        """A cycle begins. What rests on another policy, or another store's versions, is forgotten (``under`` is
        compared by identity); and what the last cycle left as it is now is known to be the same."""
        now_under = (world.tables.versions, *under)
        same = len(now_under) == len(self._under) and all(a is b for a, b in zip(now_under, self._under, strict=True))
        if not same:
            self._clear()
            self._under, self._last = now_under, None
        last = self._last
        if last is None or not world.to_write:
            return
        if last.now.array[0] == world.now.array[0]:
            world.now.version = last.now.version
        _carry(world.tables.nodes, last.tables.nodes, last.before.nodes, last.begun)
        _carry_unwritten(world.tables.jobs, last.tables.jobs, last.before.jobs, world.tables.versions)
        _carry_unwritten(world.tables.queues, last.tables.queues, last.before.queues, world.tables.versions)

    def begin_column(self, name: str, column: Column[Any]) -> Column[Any]:
        """A plugin has made a column anew: where it is what the last cycle left, it has that version again. The
        column."""
        before = self._last.columns.get(name) if self._last is not None else None
        if before is not None and before.array.shape == column.array.shape:
            if before.array is column.array or before.array.tobytes() == column.array.tobytes():
                column.version = before.version
            elif column.stamps is not None:
                changed = before.array != column.array
                column.stamps[changed.reshape(len(changed), -1).any(axis=1)] = column.version
        elif column.stamps is not None:
            column.stamps[:] = column.version
        return column

    def end(self, world: World) -> None:
        """The cycle is over, and this is how it left the world."""
        if self.keeps and world.to_write:
            self._last = world


def _carry(now: Table, last: Table, before: Table, begun: int) -> None:
    """Rows and columns that are, to the byte, as the last cycle left them have the stamps and versions of then.

    Only rows that the store wrote since that cycle began (``before``), or the cycle itself (after ``begun``), are
    compared: the others are as they were.
    """
    if now.capacity != last.capacity or now.stamps is None or last.stamps is None or before.stamps is None:
        return
    written = (now.stamps != before.stamps) | (last.stamps > begun)
    rows = written.nonzero()[0]
    np.copyto(now.stamps, last.stamps, where=~written)
    same: Bool | None = None  # all of them
    for name, column in now.columns.items():
        then = last.columns[name]
        if column.version == then.version:
            continue
        if column.array.shape != then.array.shape:  # a resource came that nobody had counted
            same = np.zeros(len(rows), dtype=bool)
            continue
        equal = _unequal_rows(column.array, then.array, rows)
        if equal is not None:
            same = equal if same is None else same & equal
        elif name in now.MOVING:
            column.version = then.version
    carried = rows if same is None else rows[same]
    now.stamps[carried] = last.stamps[carried]


def _carry_unwritten(now: Table, last: Table, before: Table, versions: Versions) -> None:
    """Rows that the store has not written since the last cycle began (``before``), and that the cycle or a plugin's
    column changed, have the stamps of then again where they are as the cycle left them, else new ones.

    Rows that the store wrote have new ones anyway: to find out whether it wrote what the cycle had written costs more
    than it saves, for what rests on rows of jobs is found for all of them at once.
    """
    if now.capacity != last.capacity or now.stamps is None or last.stamps is None or before.stamps is None:
        return
    rows = ((now.stamps == before.stamps) & (now.stamps != last.stamps)).nonzero()[0]
    if not len(rows):
        return
    same: Bool | None = None
    for name in now.MOVING:
        if now.columns[name].version != last.columns[name].version:
            equal = _unequal_rows(now.columns[name].array, last.columns[name].array, rows)
            if equal is not None:
                same = equal if same is None else same & equal
    now.stamps[rows] = last.stamps[rows] if same is None else np.where(same, last.stamps[rows], versions.next())


def _unequal_rows(left: AnyArray, right: AnyArray, rows: AnyArray) -> Bool | None:
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
