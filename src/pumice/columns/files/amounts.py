"""Check the numbers of tables that came from a file: each is finite, and those that follow from an object do.

With a NaN or an infinity sums lose their meaning, and a search that runs until nothing moves never ends.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.files.references import PartsDiffer
from pumice.columns.queues import QueueStatusTable, QueueTable
from pumice.columns.table import Table
from pumice.columns.tables import NAMES, Tables

#: The largest number that an amount may be: what 10 billion objects of the largest quantity add up to.
AMOUNT_MAX = 1e29
#: Columns in which a number that is not finite has a meaning: no limit, no status.
_NOT_FINITE = {
    "queues.capability": np.inf,
    "queues.quota": np.inf,
    "queues.limit": np.inf,
    "queue_statuses.allocated": np.nan,
}


def check_amounts(tables: Tables, queues: QueueTable, statuses: QueueStatusTable) -> None:
    """Raise PartsDiffer if a number is none that a store holds. ``queues`` and ``statuses``: made anew from the
    objects."""
    classes = tables.classes
    rows = classes.alive.nonzero()[0]
    if len(rows):
        _check_same("classes", rows, classes, classes.amounts_of([classes.specs[row] for row in rows.tolist()]))
    _check_same("queues", np.arange(len(queues)), tables.queues, _numbers(queues))
    _check_same("queue_statuses", np.arange(len(queues)), tables.queue_statuses, _numbers(statuses))
    _check_finite("nodes.allocatable", tables.nodes.facts.allocatable)
    for name in NAMES:
        table: Table = getattr(tables, name)
        for column, field in table.FIELDS.items():
            if np.dtype(field.dtype).kind == "f":
                _check_finite(f"{name}.{column}", getattr(table, column))


def _numbers(table: Table) -> dict[str, AnyArray]:
    """Return the columns of a table that hold no Python values."""
    return {name: getattr(table, name) for name, field in table.FIELDS.items() if field.dtype != np.object_}


def _check_same(name: str, rows: AnyArray, table: Table, wanted: Mapping[str, AnyArray]) -> None:
    for column, values in wanted.items():
        found = getattr(table, column)[rows]
        different = (found != values) & ~(_is_nan(found) & _is_nan(values))
        _refuse(f"{name}.{column}", rows, different, "is not what its object says")


def _is_nan(values: AnyArray) -> Bool:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)


def _check_finite(name: str, values: AnyArray) -> None:
    wrong = ~(np.abs(values) <= AMOUNT_MAX)  # also true of NaN
    if name in _NOT_FINITE:
        allowed = _NOT_FINITE[name]
        wrong &= ~(np.isnan(values) if np.isnan(allowed) else values == allowed)
    _refuse(name, np.arange(len(values)), wrong, f"is not a number between -{AMOUNT_MAX:g} and {AMOUNT_MAX:g}")


def _refuse(name: str, rows: AnyArray, wrong: Bool, what: str) -> None:
    each = wrong.any(axis=tuple(range(1, wrong.ndim)))
    if each.any():
        raise PartsDiffer(f"{name}: row {int(rows[each.argmax()])} {what}")
