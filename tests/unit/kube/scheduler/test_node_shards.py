"""Which nodes a scheduler takes from NodeShards, and what it writes into the status of its own one."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kube.api.codec import Object
from pumice.kube.scheduler.node_shards import NodeShards, Sharding


def node_shard(name: str, desired: object, in_use: object = ()) -> dict[str, Object]:
    fields: dict[str, Any] = {"spec": {"nodesDesired": desired}, "status": {"nodesInUse": in_use}}
    return {name: Object(name, "uid", "1", fields)}


class World:
    """NodeShards as they were seen, and nodes with binds in flight."""

    def __init__(self, *, hard: bool = True) -> None:
        self.objects: dict[str, Object] = {}
        self.flying: set[str] = set()
        self.it = NodeShards(Sharding("a", hard), lambda: self.objects, lambda node: node in self.flying)

    def nodes(self) -> set[str]:
        return set(self.it.shard().nodes)


@pytest.mark.parametrize(
    ("own", "other", "used"),
    [
        pytest.param(["n1", "n2"], [], {"n1", "n2"}, id="all that it should use"),
        pytest.param(["n1", "n2"], ["n2"], {"n1"}, id="but what another one has in use"),
        pytest.param(["n1"], ["n1"], set(), id="nothing is left"),
        pytest.param(None, None, set(), id="fields that are missing"),
        pytest.param("n1", {"n1": 1}, set(), id="fields of other types"),
        pytest.param(["n1", 5], [5], {"n1"}, id="items that are no names"),
    ],
)
def test_a_scheduler_uses_its_nodes(own: object, other: object, used: set[str]) -> None:
    world = World()
    world.objects = node_shard("a", own) | node_shard("b", ["n1", "n2"], other)
    assert world.nodes() == used


@pytest.mark.parametrize("hard", [True, False])
def test_the_mode_is_kept_and_an_equal_shard_is_the_same_object(hard: bool) -> None:
    world = World(hard=hard)
    world.objects = node_shard("a", ["n1"])
    first = world.it.shard()
    world.objects = node_shard("a", ["n1"], ["n1"])
    assert first.hard is hard
    assert world.it.shard() is first


def test_without_its_node_shard_nodes_stay_as_they_were() -> None:
    world = World()
    assert world.nodes() == set()
    world.objects = node_shard("a", ["n1"])
    assert world.nodes() == {"n1"}
    world.objects = {}
    assert world.nodes() == {"n1"}
    assert world.it.status_to_write() is None, "there is no object to write to"


def test_status_is_written_after_a_cycle_and_only_if_it_differs() -> None:
    world = World()
    world.objects = node_shard("a", ["n1", "n2"]) | node_shard("b", [], ["n2"])
    assert world.it.status_to_write() is None, "no cycle has used them yet"
    world.nodes()
    assert world.it.status_to_write() == {"nodesInUse": ["n1"], "nodesToRemove": [], "nodesToAdd": ["n2"]}
    world.objects = node_shard("a", ["n1"], ["n1"])
    world.nodes()
    assert world.it.status_to_write() is None


def test_a_node_is_in_use_until_its_last_bind_has_arrived() -> None:
    world = World()
    world.objects = node_shard("a", ["n1", "n2"], ["n1", "n2"])
    world.nodes()
    world.objects, world.flying = node_shard("a", ["n1"], ["n1", "n2"]), {"n2"}
    assert world.nodes() == {"n1"}
    assert world.it.status_to_write() == {"nodesInUse": ["n1", "n2"], "nodesToRemove": ["n2"], "nodesToAdd": []}
    world.flying = set()
    assert world.it.status_to_write() == {"nodesInUse": ["n1"], "nodesToRemove": [], "nodesToAdd": []}
