"""The state of a cycle: tables, plugins' columns beside them, and the journal through which both are written."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from pumice.columns.column import AnyColumn, Column
from pumice.columns.dtypes import I64, AnyArray
from pumice.columns.journal import Journal
from pumice.columns.ledger import Accounting, Ledger
from pumice.columns.nodes import PIPELINED, RELEASING
from pumice.columns.snapshot import Snapshot
from pumice.columns.table import Table
from pumice.columns.tables import Tables
from pumice.framework.plugin.errors import PluginError

#: Axes on which a plugin may put a column, with their tables. The tables of ``STAMPED`` record changes by row.
AXES = {"node": "nodes", "task": "tasks", "job": "jobs", "sub": "subs", "queue": "queues", "class": "classes"}
STAMPED = ("node", "job", "queue")


class World:
    """A snapshot, forked, so that no other cycle sees what is written here.

    ``now``: a column of one row, so that answers can rest on the clock. ``to_write`` False: the tables are those of the
    snapshot itself, and a write is an error. ``before``: tables of the snapshot. ``begun_with``: plugins' columns at
    the beginning, array and version. ``refused``: rows of jobs that were placed and of which the cluster refused a
    bind.
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
        "refused",
        "tables",
        "to_write",
    )

    def __init__(self, snapshot: Snapshot, now: float, accounting: Accounting, *, to_write: bool = True) -> None:
        # A fork copies no memory. A column is copied when it is first written (``columns.column``).
        self.tables = snapshot.tables.fork() if to_write else snapshot.tables
        # Kept, because statuses are written only where they differ from what the cycle found.
        self.before, self.to_write = snapshot.tables, to_write
        versions = self.tables.versions
        self.begun_with: dict[str, tuple[AnyArray, int]] = {}
        # Only tested for membership and turned into a mask, so its order decides nothing.
        self.refused: set[int] = set()
        self.journal = Journal(versions)
        self.ledger = Ledger(self.tables, self.journal, accounting)
        # As a column, so that the clock has a version like everything else that answers rest on.
        self.now: AnyColumn = Column(np.array([now]), versions.next())
        self.columns: dict[str, AnyColumn] = {}
        self._axis_of: dict[str, str] = {}
        self._futures_differ: bool | None = None  # not computed yet

    @property
    def futures_differ(self) -> bool:
        """True if on some node the resources that will be idle may differ from those that are idle now."""
        # Computed when it is first needed, and from then on only set: a cycle without releasing tasks skips many
        # checks.
        if self._futures_differ is None:
            self._futures_differ = bool(self.tables.nodes.books[:, RELEASING : PIPELINED + 1].any())
        return self._futures_differ

    @futures_differ.setter
    def futures_differ(self, differ: bool) -> None:
        self._futures_differ = differ

    def without_refused(self, rows: AnyArray) -> AnyArray:
        """Return those of some jobs of which no bind was refused in this cycle."""
        if not self.refused:
            return rows
        found: AnyArray = rows[~np.isin(rows, list(self.refused))]
        return found

    def table(self, axis: str) -> Table:
        """Return the table with the rows of an axis."""
        found: Table = getattr(self.tables, AXES[axis])
        return found

    def column(
        self, name: str, axis: str = "", *shape: int, values: AnyArray | None = None, per_task: AnyArray | None = None
    ) -> tuple[str, AnyColumn]:
        """Return a plugin's own column and its name. The column is written through the journal and rolled back with
        everything else.

        ``name``: ``plugin.column``. ``axis``: the rows that it has (node, task, job, sub, queue or class), "" for its
        own. ``shape``: the further axes (all of them if ``axis`` is ""). ``values``: its initial values, which it takes
        over; zero if not given. ``per_task``: for a column of nodes, what a task of each class adds. Raises:
        PluginError for an unknown axis.
        """
        if "." not in name:
            raise PluginError(f'column "{name}": wanted the name of the plugin, a dot and a name')
        if axis and axis not in AXES:
            wanted = ", ".join(AXES)
            raise PluginError(f'column "{name}": found axis "{axis}", wanted one of {wanted}, or none for own rows')
        # A plugin that is listed twice has two instances, whose numbers must not mix.
        name = name if name not in self.columns else self._free_name(name)
        if values is None:
            values = np.zeros((self.table(axis).capacity, *shape) if axis else shape)
        # The column shares the stamps of its table, so that a row counts as changed if any of its columns was written.
        stamps = self.table(axis).stamps if self.to_write and axis in STAMPED else None
        found: AnyColumn = Column(values, self.tables.versions.next(), stamps, name)
        found.per_task = per_task
        self.columns[name], self._axis_of[name] = found, axis
        return name, found

    def axis_of(self, name: str) -> str:
        """Return the axis of a plugin's column, "" for its own rows."""
        return self._axis_of[name]

    def stamps(self, axis: str) -> I64:
        """Return the present stamps of a table's rows."""
        return _stamps_of(self.tables, axis)

    def stamps_found(self, axis: str) -> I64:
        """Return the stamps of a table's rows in the snapshot."""
        return _stamps_of(self.before, axis)

    def _free_name(self, name: str) -> str:
        """Return the name with a number, for a plugin that is listed twice."""
        count = 2
        while (free := f"{name}#{count}") in self.columns:
            count += 1
        return free

    def columns_on(self, axis: str) -> list[AnyColumn]:
        """Return all columns of plugins on an axis."""
        return [column for name, column in self.columns.items() if self._axis_of[name] == axis]

    def columns_of(self, plugin: str) -> list[AnyColumn]:
        """Return all columns of a plugin."""
        return [column for name, column in self.columns.items() if name.partition(".")[0] == plugin]

    def moving(self) -> Iterator[tuple[str, AnyArray]]:
        """Yield name and array of everything that may be written, always in the same order."""
        # Columns in the order of AXES and MOVING, both constants: the digest must not depend on the order of a set.
        for axis, attribute in AXES.items():
            table = self.table(axis)
            yield from ((f"{attribute}.{name}", getattr(table, name)) for name in table.MOVING)
        # By name: plugins may be opened in another order in an equal session.
        yield from sorted((name, column.array) for name, column in self.columns.items())

    def digest(self) -> str:
        """Return a digest of the bytes of everything that may be written."""
        found = blake2b(digest_size=16)
        for name, array in self.moving():
            found.update(name.encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()


def _stamps_of(tables: Tables, axis: str) -> I64:
    stamps: I64 = getattr(tables, AXES[axis]).stamps
    return stamps.copy()
