"""A snapshot: the cluster at one moment, as a value that a cycle reads and never writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pumice.columns.tables import Tables


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``number`` counts snapshots of one store and names the session in conditions. ``shard`` is None without
    sharding.

    ``memory`` is one for all snapshots of a store: what a cycle found out and the next one need not find out again,
    each with what it rests on. It changes no decision: with an empty one all is found out anew.
    """

    tables: Tables
    number: int = 0
    shard: Shard | None = None
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def uid(self) -> str:
        """The session's identity: deterministic, unique within one store."""
        return f"session-{self.number}"


@dataclass(frozen=True, slots=True)
class Shard:
    """Nodes that are this scheduler's. ``hard``: only these; soft: these first."""

    nodes: frozenset[str]
    hard: bool
