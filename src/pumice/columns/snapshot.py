"""A snapshot: the cluster at one moment, as a value. No cycle on it and no event after it changes a byte of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.columns.tables import Tables
from pumice.model.workloads.gang import DEFAULT_NODE_POOL


class Shard(Struct, frozen=True):
    """Nodes that are this scheduler's. ``hard``: only these; soft: these first."""

    nodes: frozenset[str]
    hard: bool


class Snapshot(Struct, frozen=True):
    """``number`` counts snapshots of one store and names the session in conditions. ``shard`` is None without
    sharding. ``notes``: what plugins wanted to know again, by ``plugin.name``. ``node_pool``: what the nodes are called
    that are all there is, where a cluster is divided among schedulers."""

    tables: Tables
    number: int = 0
    shard: Shard | None = None
    notes: Mapping[str, float] = {}
    node_pool: str = DEFAULT_NODE_POOL

    @property
    def uid(self) -> str:
        """The session's identity: deterministic, unique within one store."""
        return f"session-{self.number}"
