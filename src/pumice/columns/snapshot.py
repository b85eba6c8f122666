"""A snapshot: the cluster at one moment, as a value. Neither cycles nor later events change it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.columns.tables import Tables
from pumice.model.workloads.gang import DEFAULT_NODE_POOL


class Shard(Struct, frozen=True):
    """The nodes of this scheduler. If ``hard``, only these nodes may be used; otherwise these are preferred."""

    nodes: frozenset[str]
    hard: bool


class Snapshot(Struct, frozen=True):
    """All that a cycle reads of a cluster.

    ``number`` counts the snapshots of one store and names the session in conditions. ``shard`` is None without
    sharding. ``notes`` are numbers that plugins and actions keep from cycle to cycle, by ``plugin.name``, until a
    cycle writes NaN. ``node_pool`` is the name of the nodes in this snapshot if a cluster is divided among schedulers.
    """

    tables: Tables
    number: int = 0
    shard: Shard | None = None
    notes: Mapping[str, float] = {}
    node_pool: str = DEFAULT_NODE_POOL

    @property
    def uid(self) -> str:
        """The name of the session on this snapshot: deterministic, and unique within one store."""
        return f"session-{self.number}"
