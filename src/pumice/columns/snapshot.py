"""A snapshot: the cluster at one moment, as a value. No cycle on it and no event after it changes a byte of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pumice.columns.tables import Tables
from pumice.model.gang import DEFAULT_NODE_POOL


@dataclass(frozen=True, slots=True)
class Shard:
    """Nodes that are this scheduler's. ``hard``: only these; soft: these first."""

    nodes: frozenset[str]
    hard: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``number`` counts snapshots of one store and names the session in conditions. ``shard`` is None without
    sharding. ``notes``: what plugins wanted to know again, by ``plugin.name``. ``node_pool``: what the nodes are called
    that are all there is, where a cluster is divided among schedulers."""

    tables: Tables
    number: int = 0
    shard: Shard | None = None
    notes: Mapping[str, float] = field(default_factory=dict)
    node_pool: str = DEFAULT_NODE_POOL

    @property
    def uid(self) -> str:
        """The session's identity: deterministic, unique within one store."""
        return f"session-{self.number}"
