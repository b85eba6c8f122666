"""Every byte that a session may write, by name: what a rollback must restore."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session


def moving_columns(ssn: Session) -> Iterator[tuple[str, AnyArray]]:
    """Yield (name, column) of the tables' moving columns and of plugins' columns, and the stamps of rows."""
    yield from ssn.world.moving()
    for name in ("nodes", "jobs"):
        stamps = getattr(ssn.tables, name).stamps
        assert stamps is not None
        yield f"{name} stamps", stamps


def moving_bytes(ssn: Session) -> dict[str, bytes]:
    """Return them as bytes, to compare two moments."""
    return {name: column.tobytes() for name, column in moving_columns(ssn)}


def fixed_bytes(ssn: Session) -> dict[str, bytes]:
    """Return every other column of the tables, which is shared with the snapshot, so that a session must not write
    it."""
    tables = ssn.tables
    found = {}
    for name in ("tasks", "jobs", "subs", "queues", "classes"):
        table = getattr(tables, name)
        for column, field in table.FIELDS.items():
            if not field.moves and field.dtype is not object:
                found[f"{name}.{column}"] = getattr(table, column).tobytes()
    facts = tables.nodes.facts
    for column in ("allocatable", "view_allocatable", "max_pods", "unschedulable", "taint_code", "total"):
        found[f"nodes.{column}"] = getattr(facts, column).tobytes()
    return found


def differing(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Return names of columns whose bytes differ. A column that a plugin made in between is no difference."""
    return [name for name, column in before.items() if after.get(name) != column]
