"""Checks that tables read from a file agree with each other, so that no cycle on them fails.

Rows that are named must exist, and the lists of owners and the owners of rows must match. Of sums, only the number of
tasks in each state is checked: wrong amounts describe another cluster, on which a cycle still ends well if they are
finite (``amounts``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.table import Field, Table
from pumice.columns.tables import NAMES, Tables
from pumice.columns.tasks import TaskTable
from pumice.model.status import STATUS_COUNT

#: Columns of Python values that must have one in every row in use.
_NEEDED = {
    "tasks": ("pods",),
    "jobs": ("uids", "tasks", "subs", "role_min"),
    "subs": ("uids", "gids", "tasks"),
    "queues": ("objs", "names"),
    "queue_statuses": ("objs",),
    "classes": ("specs", "asked"),
    "budgets": ("objs",),
    "topologies": ("objs",),
    "claims": ("objs",),
    "quotas": ("objs",),
    "usages": ("names",),
    "histories": ("names",),
    "label_usages": ("label", "label_value"),
    "numas": ("objs",),
    "zones": ("objs",),
    "device_grants": ("objs",),
}


class PartsDiffer(ValueError):
    """The tables contradict each other, as the message says."""


def check_references(tables: Tables) -> None:
    """Check all tables.

    Raises: PartsDiffer if a row, code, list or count is wrong.
    """
    # Rows first: the checks of lists and counts below use rows as indices.
    for name in NAMES:
        table: Table = getattr(tables, name)
        for column, field in table.FIELDS.items():
            if field.rows_of:
                _check_rows(f"{name}.{column}", getattr(table, column), table.alive, _alive(tables, field.rows_of))
            elif field.below is not None:
                _check_codes(f"{name}.{column}", getattr(table, column), field)
        for column in _NEEDED.get(name, ()):
            _refuse(f"{name}.{column}", table.alive & _is_none(getattr(table, column)), "holds nothing")
    _check_fixed(tables)
    tasks, jobs, subs = tables.tasks, tables.jobs, tables.subs
    _refuse("tasks.status", tasks.alive & (tasks.status < 0), "is in no state")
    _refuse("tasks.cls", tasks.alive & (tasks.cls < 0), "is of no class")
    _refuse("jobs.groups", jobs.alive & (jobs.queue >= 0) & _is_none(jobs.groups), "has a queue and no PodGroup")
    _refuse("jobs.ask", jobs.ask < -1, "is not a number of minResources")
    _check_members("jobs.tasks", jobs.alive, jobs.tasks, tasks.alive, tasks.job)
    _check_members("subs.tasks", subs.alive, subs.tasks, tasks.alive, tasks.sub)
    _check_members("jobs.subs", jobs.alive, jobs.subs, subs.alive, subs.job)
    _refuse(
        "jobs.size",
        jobs.alive & (jobs.size != [0 if rows is None else len(rows) for rows in jobs.tasks]),
        "is not how many tasks it has",
    )
    _check_counts("jobs.counts", jobs.counts, tasks.job, tasks)
    _check_counts("subs.counts", subs.counts, tasks.sub, tasks)
    _check_unused(tables)


def _is_none(values: Sequence[Any]) -> Bool:
    return np.array([value is None for value in values], dtype=bool)


def _refuse(name: str, wrong: Bool, what: str) -> None:
    if wrong.any():
        raise PartsDiffer(f"{name}: row {int(wrong.argmax())} {what}")


def _alive(tables: Tables, name: str) -> Bool:
    """Return which rows of a table are in use. Shape (rows,)."""
    if name == "tree":
        return np.ones(len(tables.tree), dtype=bool)
    alive: Bool = getattr(tables, name).alive
    return alive


def _check_rows(name: str, values: AnyArray, alive: Bool, there: Bool) -> None:
    _refuse(name, (values < -1) | (values >= len(there)), "names a row that no table has")
    if len(there):
        _refuse(name, alive & (values >= 0) & ~there[values], "names a row that is not in use")


def _check_codes(name: str, values: AnyArray, field: Field) -> None:
    assert field.below is not None
    # The unused value (-1, for instance) is allowed in any row.
    _refuse(name, (values < min(field.unused, 0)) | (values >= field.below), f"is not below {field.below}")


def _check_fixed(tables: Tables) -> None:
    """Check the tables that have exactly one row for each object."""
    queues = len(tables.queues.row_of)
    for name, count in (("nodes", len(tables.nodes.facts)), ("queues", queues), ("queue_statuses", queues)):
        alive = getattr(tables, name).alive
        if len(alive) != count or not alive.all():
            raise PartsDiffer(f"{name}: found {len(alive)} rows for {count} objects")
    if list(tables.queues.row_of) != list(tables.queues.names):
        raise PartsDiffer("queues.names: the rows are not those of the objects, by creation and name")


def _check_unused(tables: Tables) -> None:
    """Check that rows that are not in use hold nothing: what lists all rows with a value must not find them."""
    for name in NAMES:
        table: Table = getattr(tables, name)
        unused = ~table.alive
        if not unused.any():
            continue
        for column, field in table.FIELDS.items():
            values = getattr(table, column)
            empty = _is_none(values) if np.dtype(field.dtype) == np.object_ else _is(values, field.unused)
            _refuse(f"{name}.{column}", unused & ~empty, "is not in use and holds a value")


def _is(values: AnyArray, wanted: Any) -> Bool:
    """Rows in which every number is ``wanted``, which may be nan, (rows,)."""
    same = np.isnan(values) if np.isnan(wanted) else values == wanted
    return np.asarray(same.all(axis=tuple(range(1, same.ndim))))


def _check_members(
    name: str, owners_alive: Bool, lists: Sequence[AnyArray | tuple[int, ...]], alive: Bool, owner: AnyArray
) -> None:
    """Check that the lists of owners in use contain exactly the rows that name them as owner, each once."""
    owners = owners_alive.nonzero()[0]
    sizes = [len(lists[row]) for row in owners.tolist()]
    # All lists in one array: a snapshot of 50,000 pods is checked with a few array operations, not pod by pod.
    members = np.fromiter((each for row in owners.tolist() for each in lists[row]), dtype=np.int64, count=sum(sizes))
    inside = (members >= 0) & (members < len(alive))
    if not inside.all() or (owner[members] != np.repeat(owners, sizes)).any():
        raise PartsDiffer(f"{name}: a list holds a row of another owner")
    # All rows listed are of the right owner by now, so with no repeats and the right number none is missing.
    if len(distinct(members)) != len(members) or len(members) != np.count_nonzero(alive & (owner >= 0)):
        raise PartsDiffer(f"{name}: a list leaves a row out, or holds one twice")


def _check_counts(name: str, counts: AnyArray, owner: AnyArray, tasks: TaskTable) -> None:
    """Check that ``counts`` (owners, statuses) are the numbers of tasks in use."""
    own = tasks.alive & (owner >= 0)
    found = np.bincount(owner[own].astype(np.int64) * STATUS_COUNT + tasks.status[own], minlength=counts.size)
    _refuse(name, (found.reshape(counts.shape) != counts).any(axis=1), "is not what its tasks are")
