"""What a cycle computes with: the tables, the plugins' own columns beside them, and the journal that writes both."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from pumice.columns.column import Column
from pumice.columns.dtypes import I64, AnyArray
from pumice.columns.journal import Journal
from pumice.columns.ledger import Accounting, Ledger
from pumice.columns.nodes import PIPELINED, RELEASING
from pumice.columns.snapshot import Snapshot
from pumice.columns.table import Table
from pumice.columns.tables import Tables
from pumice.framework.plugin.errors import PluginError

#: Axes on which a plugin may put a column, and their tables. Those of ``STAMPED`` tell changes row by row.
AXES = {"node": "nodes", "task": "tasks", "job": "jobs", "sub": "subs", "queue": "queues", "class": "classes"}
STAMPED = ("node", "job", "queue")


class World:
    """One snapshot, forked: what is written here is seen by nobody else.

    ``now`` is a column of one row, so that what rests on the clock is known to. Not ``to_write``: these are the tables
    of the snapshot itself, and a write is an error. ``before``: those of the snapshot. ``begun_with``: plugins' columns
    as they began, array and version.
    """

    __slots__ = (
        "_axis_of",
        "_futures_differ",
        "before",
        "begun_with",
        "columns",
        "journal",
        "ledger",
        "now",
        "tables",
        "to_write",
    )

    def __init__(self, snapshot: Snapshot, now: float, accounting: Accounting, *, to_write: bool = True) -> None:
        self.tables = snapshot.tables.fork() if to_write else snapshot.tables
        self.before, self.to_write = snapshot.tables, to_write
        versions = self.tables.versions
        self.begun_with: dict[str, tuple[AnyArray, int]] = {}
        self.journal = Journal(versions)
        self.ledger = Ledger(self.tables, self.journal, accounting)
        self.now: Column[Any] = Column(np.array([now]), versions.next())
        self.columns: dict[str, Column[Any]] = {}
        self._axis_of: dict[str, str] = {}
        self._futures_differ: bool | None = None  # nobody has asked

    @property
    def futures_differ(self) -> bool:
        """Whether on some node what will be idle may be other than what is."""
        if self._futures_differ is None:
            self._futures_differ = bool(self.tables.nodes.books[:, RELEASING : PIPELINED + 1].any())
        return self._futures_differ

    @futures_differ.setter
    def futures_differ(self, differ: bool) -> None:
        self._futures_differ = differ

    def table(self, axis: str) -> Table:
        """The table whose rows an axis has."""
        found: Table = getattr(self.tables, AXES[axis])
        return found

    def column(
        self, name: str, axis: str = "", *shape: int, values: AnyArray | None = None, per_task: AnyArray | None = None
    ) -> tuple[str, Column[Any]]:
        """A plugin's own numbers under the name that they have from now on, written through the journal and so rolled
        back with everything else.

        ``name`` is ``plugin.column``. ``axis``: whose rows they are (node, task, job, sub, queue or class), empty for
        rows of its own; ``shape``: the further axes (all of them without ``axis``). ``values`` to begin with, zero
        without; they become the column's. ``per_task``: of a column of nodes, what one task of each class adds to it.
        Raises: PluginError for an axis that there is not.
        """
        if "." not in name:
            raise PluginError(f'column "{name}": wanted the name of the plugin, a dot and a name')
        if axis and axis not in AXES:
            wanted = ", ".join(AXES)
            raise PluginError(f'column "{name}": found axis "{axis}", wanted one of {wanted}, or none for own rows')
        name = name if name not in self.columns else self._free_name(name)
        if values is None:
            values = np.zeros((self.table(axis).capacity, *shape) if axis else shape)
        stamps = self.table(axis).stamps if self.to_write and axis in STAMPED else None
        found: Column[Any] = Column(values, self.tables.versions.next(), stamps, name)
        found.per_task = per_task
        self.columns[name], self._axis_of[name] = found, axis
        return name, found

    def axis_of(self, name: str) -> str:
        """The axis of a plugin's column, empty where its rows are its own."""
        return self._axis_of[name]

    def stamps(self, axis: str) -> I64:
        """The stamps of a table's rows, as they are now."""
        return _stamps_of(self.tables, axis)

    def stamps_found(self, axis: str) -> I64:
        """The same, as they were in the snapshot."""
        return _stamps_of(self.before, axis)

    def _free_name(self, name: str) -> str:
        """A name with a number, for a plugin that is listed twice."""
        count = 2
        while (free := f"{name}#{count}") in self.columns:
            count += 1
        return free

    def columns_on(self, axis: str) -> list[Column[Any]]:
        """All columns of plugins on an axis."""
        return [column for name, column in self.columns.items() if self._axis_of[name] == axis]

    def columns_of(self, plugin: str) -> list[Column[Any]]:
        """All columns of a plugin."""
        return [column for name, column in self.columns.items() if name.partition(".")[0] == plugin]

    def moving_columns(self) -> Iterator[Column[Any]]:
        """Everything that may be written."""
        for axis in AXES:
            table = self.table(axis)
            yield from map(table.columns.__getitem__, table.MOVING)
        yield from self.columns.values()

    def moving(self) -> Iterator[tuple[str, AnyArray]]:
        """(name, array) of everything that may be written, in an order that is always the same."""
        for axis, attribute in AXES.items():
            table = self.table(axis)
            yield from ((f"{attribute}.{name}", getattr(table, name)) for name in table.MOVING)
        yield from sorted((name, column.array) for name, column in self.columns.items())

    def digest(self) -> str:
        """The same for equal bytes of everything that may be written."""
        found = blake2b(digest_size=16)
        for name, array in self.moving():
            found.update(name.encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()


def _stamps_of(tables: Tables, axis: str) -> I64:
    stamps: I64 = getattr(tables, AXES[axis]).stamps
    return stamps.copy()
