"""Divide the nodes of a cluster among schedulers: each one has a NodeShard that lists the nodes it should use.

A node moves from one scheduler to another in two steps, so that two never use it in hard mode: the one that gives it
up says so in the status of its NodeShard, and only then does the other one take it.

Source: Volcano, ``pkg/scheduler/cache`` (NodeShards), ``--scheduler-sharding-mode``, ``--scheduler-sharding-name``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from pumice.columns.snapshot import Shard
from pumice.kube.api.client import Client
from pumice.kube.api.codec import Object
from pumice.kube.api.errors import KubeError
from pumice.kube.api.kinds import NODE_SHARDS
from pumice.model.instants import stamp

_log = logging.getLogger("pumice.kube")
_STATUS_S = 0.5  # how often the status is compared with what the cycles use


class Sharding(Struct, frozen=True):
    """Which NodeShard belongs to this scheduler. ``hard``: no other node is used; else other nodes come second."""

    name: str
    hard: bool


class NodeShards:
    """The shard of this scheduler, and the status of its NodeShard.

    ``objects``: the NodeShards as last seen, by name. ``is_bound_to``: returns whether a bind to a node is in flight.
    """

    def __init__(
        self, sharding: Sharding, objects: Callable[[], Mapping[str, Object]], is_bound_to: Callable[[str], object]
    ) -> None:
        self._sharding, self._objects, self._is_bound_to = sharding, objects, is_bound_to
        self._shard: Shard | None = None  # of the last cycle
        self._is_missing = False

    def shard(self) -> Shard:
        """Return the nodes for the next cycle, the same object as before if they are the same: answers of earlier
        cycles are kept by its identity. Without a NodeShard they stay as they were, as in Volcano; at first, none."""
        objects, name = dict(self._objects()), self._sharding.name
        before = self._shard
        if name not in objects:
            if not self._is_missing:
                use = "no node is used" if self._sharding.hard else "no node is preferred"
                _log.error("NodeShard %s does not exist: %s", name, use if before is None else "its nodes stay in use")
            self._is_missing = True
            found = before.nodes if before is not None else frozenset[str]()
        else:
            self._is_missing = False
            found = own_nodes(name, {key: _fields(each) for key, each in objects.items()})
        if before is None or before.nodes != found:
            self._shard = before = Shard(found, self._sharding.hard)
            _log.info("NodeShard %s: %d nodes", name, len(found))
        return before

    async def run(self, client: Client) -> None:
        """Keep the status of the own NodeShard as the cycles are, until cancelled. The leader alone runs this."""
        refused = ""
        while True:
            await asyncio.sleep(_STATUS_S)
            status = self.status_to_write()
            if status is None:
                continue
            body = {"status": {**status, "lastUpdateTime": stamp(time.time())}}
            try:
                await client.patch(NODE_SHARDS.path(self._sharding.name, "status"), body)
                refused = ""
            except KubeError as error:
                if str(error) != refused:
                    _log.error("NodeShard %s: its status cannot be written: %s", self._sharding.name, error)
                refused = str(error)

    def status_to_write(self) -> dict[str, list[str]] | None:
        """Return the status of the own NodeShard, or None if it is written already, or if there is nothing to say.

        A node that was given up counts as in use while a bind to it is in flight.
        """
        own = self._objects().get(self._sharding.name)
        if self._shard is None or own is None:
            return None
        spec, status = _fields(own)
        before, desired = _names(status, "nodesInUse"), _names(spec, "nodesDesired")
        used = self._shard.nodes | {name for name in before - self._shard.nodes if self._is_bound_to(name)}
        wanted = {
            "nodesInUse": sorted(used),
            "nodesToRemove": sorted(used - desired),
            "nodesToAdd": sorted(desired - used),
        }
        return None if all(_names(status, key) == set(names) for key, names in wanted.items()) else wanted


def own_nodes(name: str, shards: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]) -> frozenset[str]:
    """Return the nodes of the NodeShard ``name``: those it should use that no other one has in use.

    ``shards``: spec and status of each NodeShard, by name.
    """
    others: Iterable[frozenset[str]] = (
        _names(status, "nodesInUse") for key, (_, status) in shards.items() if key != name
    )
    return _names(shards[name][0], "nodesDesired").difference(*others)


def _fields(found: Object) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return spec and status. The model has no NodeShard, so the object is a dictionary."""
    value = found.value if isinstance(found.value, dict) else {}
    return _mapping(value.get("spec")), _mapping(value.get("status"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _names(fields: Mapping[str, Any], key: str) -> frozenset[str]:
    """Return a list of names. The CRD ensures the types; without it, what is no name is left out."""
    found = fields.get(key)
    return frozenset(each for each in found if isinstance(each, str)) if isinstance(found, list) else frozenset()
