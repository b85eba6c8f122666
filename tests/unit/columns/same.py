"""What two snapshots differ in: every byte of every column, every object, and what was made of the objects."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.columns.nodes import NodeFacts
from pumice.columns.snapshot import Snapshot
from pumice.columns.tables import NAMES
from pumice.columns.topology.hypernodes import HyperNodeTree


def differing(left: Snapshot, right: Snapshot) -> list[str]:
    """Names of what is not the same; versions and stamps are not looked at."""
    ours, theirs = dict(_held(left)), dict(_held(right))
    return [name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)]


def _held(snapshot: Snapshot) -> Iterator[tuple[str, object]]:
    tables = snapshot.tables
    for name in NAMES:
        for column, held in getattr(tables, name).columns.items():
            yield f"{name}.{column}", _plain(held.array)
    for slot in NodeFacts.__slots__:
        if slot not in ("axis", "version"):
            yield f"facts.{slot}", _plain(getattr(tables.nodes.facts, slot))
    for name in HyperNodeTree.__struct_fields__:
        if name != "version":
            yield f"tree.{name}", _plain(getattr(tables.tree, name))
    yield "queues.row_of", tables.queues.row_of
    yield "axis", tables.axis.names
    yield "snapshot", (snapshot.number, snapshot.uid, snapshot.shard)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        if value.dtype != np.object_:
            return value.dtype.str, value.shape, value.tobytes()
        return [_plain(each) for each in value]
    return [_plain(each) for each in value] if isinstance(value, list) else value
