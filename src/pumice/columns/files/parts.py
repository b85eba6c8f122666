"""Snapshots as arrays and model values, for files: ``take_apart`` and ``put_together``.

What follows from objects alone (facts of nodes, the tree of hypernodes) is computed again. Everything else is kept to
the byte, including rows that are not in use, so that a cycle on the file decides what it decided on the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.columns.column import Versions
from pumice.columns.dtypes import AnyArray, ResourceAxis
from pumice.columns.files.amounts import check_amounts
from pumice.columns.files.references import PartsDiffer, check_references
from pumice.columns.nodes import NodeFacts, NodeTable
from pumice.columns.objects.device_amounts import amounts_by_devices
from pumice.columns.queues import QueueStatusTable, QueueTable
from pumice.columns.snapshot import Shard, Snapshot
from pumice.columns.tables import NAMES, Tables
from pumice.columns.topology.hypernodes import build_tree
from pumice.model.node import Node
from pumice.model.topology import HyperNode
from pumice.model.workloads.gang import DEFAULT_NODE_POOL


class Parts(Struct, frozen=True):
    """All that a snapshot is made from.

    ``offered`` and ``unoffered`` define the axis of resources. ``columns`` has every column of every table, by
    ``table.column``.
    """

    offered: tuple[str, ...]
    unoffered: bool
    columns: Mapping[str, AnyArray]
    nodes: tuple[Node, ...]
    hypernodes: tuple[HyperNode, ...]
    number: int
    shard: Shard | None
    notes: Mapping[str, float] = {}
    node_pool: str = DEFAULT_NODE_POOL


class ColumnSpec(Struct, frozen=True):
    """What a column must be: its dtype, ``further`` (the shape without the rows), and ``holds`` (the type of its Python
    values, None for numbers)."""

    dtype: np.dtype[Any]
    further: tuple[int, ...]
    holds: Any


@lru_cache(maxsize=16)
def wanted_columns(width: int) -> Mapping[str, ColumnSpec]:
    """Return what every column must be in a snapshot with so many resources, by ``table.column``."""
    found = {}
    # Read from empty tables: lengths of axes are known to the tables' constructors only.
    more = width - len(ResourceAxis())
    empty = Tables.empty(Versions(), ResourceAxis(map(str, range(more - 1)), unoffered=more > 0))
    for name in NAMES:
        table = getattr(empty, name)
        for column, kind in table.FIELDS.items():
            dtype = np.dtype(kind.dtype)
            holds = table.value_type(column) if dtype == np.object_ else None
            found[f"{name}.{column}"] = ColumnSpec(dtype, table.shape(column, 0)[1:], holds)
    return MappingProxyType(found)


def take_apart(snapshot: Snapshot) -> Parts:
    """Return the parts from which ``put_together`` makes an equal snapshot."""
    tables = snapshot.tables
    return Parts(
        tables.axis.offered,
        tables.axis.unoffered >= 0,
        {f"{name}.{column}": held.array for name in NAMES for column, held in getattr(tables, name).columns.items()},
        tables.nodes.facts.objs,
        tables.tree.objs,
        snapshot.number,
        snapshot.shard,
        snapshot.notes,
        snapshot.node_pool,
    )


def put_together(parts: Parts) -> Snapshot:
    """Return the snapshot with these parts, whose columns must be as ``wanted_columns`` says.

    Raises: PartsDiffer if parts contradict each other.
    """
    # A source of its own: numbers from the file could be equal to versions of other contents in this process.
    versions, axis = Versions(), ResourceAxis(parts.offered, unoffered=parts.unoffered)
    specs = parts.columns["classes.specs"]
    if axis.offered != parts.offered or not all(axis.covers(spec.request) for spec in specs if spec is not None):
        raise PartsDiffer("the resources are not in order, or not all that pods ask for")
    queues = [queue for queue in parts.columns["queues.objs"] if queue is not None]
    tables = Tables.empty(versions, axis)
    # Computed again as the store did, from objects that the file has.
    slices, classes = parts.columns["slices.objs"], parts.columns["device_classes.objs"]
    by_devices = amounts_by_devices(parts.nodes, slices, classes, axis.column)
    facts = NodeFacts(versions, parts.nodes, axis, by_devices)
    if facts.objs != parts.nodes or len(facts.row_of) != len(facts):
        raise PartsDiffer("nodes are not in the order of their creation and names, or one is there twice")
    tables.nodes = NodeTable(versions, facts)
    statuses = [status for status in parts.columns["queue_statuses.objs"] if status is not None]
    tables.queues = fresh_queues = QueueTable(versions, queues, axis)
    tables.queue_statuses = fresh_statuses = QueueStatusTable(versions, statuses, axis)
    # Above, the tables made for nodes and queues fix the order of rows; ``restored`` below replaces their columns.
    labels = [node.labels for node in facts.objs]
    tables.tree = build_tree(parts.hypernodes, facts.names, labels, versions.next())
    for name in NAMES:
        table = getattr(tables, name)
        setattr(tables, name, table.restored({column: parts.columns[f"{name}.{column}"] for column in table.FIELDS}))
    check_references(tables)
    check_amounts(tables, fresh_queues, fresh_statuses)
    tables.version = versions.next()
    return Snapshot(tables, parts.number, parts.shard, parts.notes, parts.node_pool)
