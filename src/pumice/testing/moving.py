"""Every byte that a session may move, by name: what a rollback has to restore."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.framework.session import Session

#: Notes about discarded transactions: a rollback writes them.
NOTES = ("last_status", "last_node", "last_evicted")


def moving_columns(ssn: Session) -> Iterator[tuple[str, AnyArray]]:
    """(name, column) of the tables' moving columns and of the arrays that plugins keep as attributes."""
    tables = ssn.tables
    yield "nodes.books", tables.nodes.books
    yield "nodes.view", tables.nodes.view
    for name in ("tasks", "jobs", "subs"):
        table = getattr(tables, name)
        yield from ((f"{name}.{column}", getattr(table, column)) for column in table.MOVING if column not in NOTES)
    for i, (name, instance) in enumerate(ssn.plugins):
        for attribute, value in sorted(getattr(instance, "__dict__", {}).items()):
            if isinstance(value, np.ndarray):
                yield f"{name}[{i}].{attribute}", value


def moving_bytes(ssn: Session) -> dict[str, bytes]:
    """The same as bytes, to compare one moment with another."""
    return {name: column.tobytes() for name, column in moving_columns(ssn)}


def fixed_bytes(ssn: Session) -> dict[str, bytes]:
    """Every other column of the tables: shared with the store, so a session must leave it alone."""
    tables = ssn.tables
    found = {}
    for name in ("tasks", "jobs", "subs"):
        table = getattr(tables, name)
        for column in (*table.NUMBERS, *table.WIDE):
            if column not in table.MOVING:
                found[f"{name}.{column}"] = getattr(table, column).tobytes()
    facts = tables.nodes.facts
    for column in ("allocatable", "view_allocatable", "max_pods", "unschedulable", "taint_code", "total"):
        found[f"nodes.{column}"] = getattr(facts, column).tobytes()
    for column in ("creation", "weight", "priority", "open", "guarantee"):
        found[f"queues.{column}"] = getattr(tables.queues, column).tobytes()
    return found


def differing(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Names of the columns that are not the same bytes. A column that a plugin made in between is no difference."""
    return [name for name, column in before.items() if after.get(name) != column]
