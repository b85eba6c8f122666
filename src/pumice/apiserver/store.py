"""The stored objects, under one version that counts every change, and past changes, as far as they are kept.

A watcher is a cursor in this history: it has no queue that could grow, and one that falls behind gets 410. Objects
are never changed in place: a write stores a new one.
"""

from __future__ import annotations

from asyncio import Event
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import msgspec

from pumice.apiserver.bounds import weight
from pumice.apiserver.refusals import Refusal, expired
from pumice.model.manifest.reading.fields import Obj

HISTORY_MAX = 20_000  # changes that are kept per kind
HISTORY_BYTES_MAX = 128 << 20  # memory of all kept changes

_encode = msgspec.json.Encoder().encode
_version_of = attrgetter("version")


class Stored(NamedTuple):
    """A stored object. ``key``: namespace/name, or the name of a cluster-wide one. ``raw``: its JSON."""

    key: str
    version: int
    obj: Obj
    raw: bytes


class Change(NamedTuple):
    """A change of one object. ``now``, if deleted: its last state, at the version of its deletion."""

    table: str
    version: int
    before: Stored | None
    now: Stored
    deleted: bool


Sink = Callable[[Change], None]


@dataclass(slots=True)
class _Table:
    """The objects of one kind, by key and in the order of keys. Changes up to version ``floor`` are no longer kept."""

    floor: int
    rows: dict[str, Stored] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    history: list[Change] = field(default_factory=list)
    history_bytes: int = 0
    waiting: set[Event] = field(default_factory=set)


class Store:
    """``version``: of the last change. ``sinks``: called with each change at once, in order; they must not write.

    ``bytes``: of all objects, as JSON. The history is bounded by count and by memory: a watcher that continues from
    before its start is answered 410, and lists again.
    """

    def __init__(
        self, version: int = 1, history_max: int = HISTORY_MAX, history_bytes_max: int = HISTORY_BYTES_MAX
    ) -> None:
        self.version = version
        self.bytes = 0
        self.sinks: list[Sink] = []
        self._first_version = version
        self._history_max, self._history_bytes_max = history_max, history_bytes_max
        self._history_bytes = 0
        self._tables: dict[str, _Table] = {}

    # -- reading -------------------------------------------------------------------------------------------------------

    def find(self, table: str, key: str) -> Stored | None:
        found = self._tables.get(table)
        return None if found is None else found.rows.get(key)

    def rows(self, table: str, prefix: str = "", after: str = "", at: int | None = None) -> Iterator[Stored]:
        """Yield objects whose key begins with ``prefix`` and comes after ``after``, in the order of keys.

        ``at``: as they were at that version. Raises: Refusal 410 if that is too long ago.
        """
        found = self._tables.get(table)
        if found is None:
            return
        if at is None or at >= self.version:
            keys, rows = found.keys, found.rows
        else:
            keys, rows = _as_it_was(found, at)
        start = bisect_right(keys, after) if after > prefix else bisect_left(keys, prefix)
        for i in range(start, len(keys)):
            if not keys[i].startswith(prefix):
                return
            yield rows[keys[i]]

    def tables(self) -> list[str]:
        """Return the tables that are not empty, sorted."""
        return sorted(name for name, table in self._tables.items() if table.rows)

    def count(self, table: str) -> int:
        found = self._tables.get(table)
        return 0 if found is None else len(found.rows)

    # -- writing -------------------------------------------------------------------------------------------------------

    def put(self, table: str, key: str, obj: Obj) -> Stored:
        """Store an object as a new version. Its resourceVersion is set here and never changed after that."""
        rows = self._table(table)
        before = rows.rows.get(key)
        now = self._next(key, obj)
        rows.rows[key] = now
        self.bytes += len(now.raw) - (len(before.raw) if before is not None else 0)
        if before is None:
            insort(rows.keys, key)
        self._publish(rows, Change(table, now.version, before, now, False))
        return now

    def remove(self, table: str, key: str) -> Stored:
        """Remove an object. Return its last state, at the version of its deletion."""
        rows = self._table(table)
        before = rows.rows.pop(key)
        self.bytes -= len(before.raw)
        del rows.keys[bisect_left(rows.keys, key)]
        now = self._next(key, before.obj)
        self._publish(rows, Change(table, now.version, before, now, True))
        return now

    def load(self, table: str, key: str, version: int, obj: Obj) -> None:
        """Restore an object from the disk, without a change for watchers."""
        self.unload(table, key)
        rows = self._table(table)
        insort(rows.keys, key)
        rows.rows[key] = Stored(key, version, obj, _encode(obj))
        self.bytes += len(rows.rows[key].raw)

    def unload(self, table: str, key: str) -> None:
        """Apply a deletion from the disk."""
        rows = self._table(table)
        before = rows.rows.pop(key, None)
        if before is not None:
            self.bytes -= len(before.raw)
            del rows.keys[bisect_left(rows.keys, key)]

    def loaded(self, version: int) -> None:
        """End the restoration: history begins here."""
        self.version = self._first_version = max(version, self.version)
        for rows in self._tables.values():
            rows.floor = self.version

    # -- following -----------------------------------------------------------------------------------------------------

    def since(self, table: str, version: int, count_max: int | None = None) -> list[Change]:
        """Return the first changes after a version.

        Raises: Refusal 410 if they are no longer kept, or for a future version.
        """
        rows = self._table(table)
        if version < rows.floor:
            raise _too_old(version, rows.floor)
        if version > self.version:
            raise expired(f"too large resource version: {version} ({self.version})")
        first = bisect_right(rows.history, version, key=_version_of)
        return rows.history[first : None if count_max is None else first + count_max]

    def last(self, table: str) -> int:
        """Return the version of the last change of a kind, as far as it is kept."""
        rows = self._table(table)
        return rows.history[-1].version if rows.history else rows.floor

    @contextmanager
    def woken_by(self, table: str) -> Iterator[Event]:
        """Yield an event that is set whenever something of this kind changes."""
        rows = self._table(table)
        event = Event()
        rows.waiting.add(event)
        try:
            yield event
        finally:
            rows.waiting.discard(event)

    def wake(self, table: str = "") -> None:
        """Wake watchers of a kind (or all) although nothing changed: there may be nothing left to watch."""
        for name, rows in self._tables.items():
            if table in ("", name):
                for woken in rows.waiting:
                    woken.set()

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _table(self, name: str) -> _Table:
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = _Table(self._first_version)
        return found

    def _next(self, key: str, obj: Obj) -> Stored:
        version = self.version + 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
        raw = _encode(obj)
        self.version = version
        return Stored(key, version, obj, raw)

    def _publish(self, rows: _Table, change: Change) -> None:
        rows.history.append(change)
        added = _weight(change)
        rows.history_bytes += added
        self._history_bytes += added
        if len(rows.history) > 2 * self._history_max:  # in large steps, because cutting a list costs its length
            self._forget(rows, len(rows.history) - self._history_max)
        while self._history_bytes > self._history_bytes_max:
            largest = max(self._tables.values(), key=lambda table: table.history_bytes)
            self._forget(largest, (len(largest.history) + 1) // 2)
        for sink in self.sinks:
            sink(change)
        for woken in rows.waiting:
            woken.set()

    def _forget(self, rows: _Table, count: int) -> None:
        """Forget the oldest changes of a kind."""
        freed = sum(map(_weight, rows.history[:count]))
        rows.history_bytes -= freed
        self._history_bytes -= freed
        rows.floor = rows.history[count - 1].version
        del rows.history[:count]


def _weight(change: Change) -> int:
    """Return about how much memory a change takes."""
    return weight(change.now.raw) + (weight(change.before.raw) if change.before is not None else 0)


def _too_old(version: int, floor: int) -> Refusal:
    return expired(f"too old resource version: {version} ({floor})")


def _as_it_was(table: _Table, at: int) -> tuple[list[str], dict[str, Stored]]:
    """Return keys and objects at an earlier version, by undoing later changes, newest first."""
    if at < table.floor:
        raise _too_old(at, table.floor)
    rows = dict(table.rows)
    for change in reversed(table.history[bisect_right(table.history, at, key=_version_of) :]):
        if change.before is None:
            rows.pop(change.now.key, None)
        else:
            rows[change.now.key] = change.before
    return sorted(rows), rows
