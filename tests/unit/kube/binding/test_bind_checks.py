"""Binds that wait to be sent are looked at again: what they were decided on may no longer hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.binding.bind import Binder
from pumice.kube.scheduler.cluster import KubeCluster
from pumice.model.decisions import Bind
from pumice.model.events import Event, Gone, Seen, Undone
from pumice.model.node import Node, Taint
from pumice.model.pod import Pod, Toleration
from pumice.testing.build import node, pod, podgroup
from tests.unit.kube.silence import SILENT

N1 = node("n1", uid="u1")
CORDONED = replace(N1, unschedulable=True)
NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
TOLERANT = (Toleration("", "Exists"),)


class Posts:
    """A client that accepts what it is sent."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def post(self, path: str, body: dict[str, Any]) -> None:
        self.paths.append(path)


class World:
    """A cluster of two nodes with a gang whose binds wait, as the last cycle decided them."""

    def __init__(self, *pods: Pod, minimum: int = 1, first: Node = N1) -> None:
        self.cluster, self.posts = KubeCluster(SILENT), Posts()
        self.pods = pods
        seen = (first, node("n2"), podgroup("g", minimum=minimum), *pods)
        self.cluster.sink([Seen(each) for each in seen])
        self.cluster.drain()

    def decided(self, *nodes: str) -> None:
        for each, on in zip(self.pods, nodes, strict=True):
            assert self.cluster.bind(Bind(each.key, each.uid, on, "ns/g")) is None

    async def sent(self) -> list[str]:
        """Let the workers send what waits. Return the pods that were bound."""
        binder = self.cluster._binder
        assert isinstance(binder, Binder)
        binder._client = self.posts  # type: ignore[assignment]
        for each in self.pods:
            entry = self.cluster.in_flight.of(each.key)
            if entry is not None:
                assert await binder.send(entry)
        return [path.split("/")[-2] for path in self.posts.paths]

    def given_back(self) -> list[str]:
        return [each.pod for each in self.cluster.drain() if isinstance(each, Undone)]


def members(count: int, **changes: Any) -> tuple[Pod, ...]:
    return tuple(replace(pod(f"p{i}", "g"), **changes) for i in range(count))


@pytest.mark.parametrize(
    ("event", "is_sent"),
    [
        pytest.param(Gone(Node, "n1"), False, id="node gone"),
        pytest.param(Seen(replace(N1, uid="u2")), False, id="node created again"),
        pytest.param(Seen(CORDONED), False, id="cordoned since"),
        pytest.param(Seen(replace(N1, taints=(NOT_READY,))), False, id="not ready"),
        pytest.param(
            Seen(replace(N1, taints=(replace(NOT_READY, effect="PreferNoSchedule"),))), True, id="a preference"
        ),
        pytest.param(Seen(replace(N1, labels={"a": "b"})), True, id="relabelled"),
        pytest.param(Gone(Node, "n2"), True, id="another node gone"),
        pytest.param(Seen(replace(members(1)[0], deletion=1.0)), False, id="pod deleted"),
    ],
)
async def test_a_bind_is_sent_if_its_node_still_takes_it(event: Event, *, is_sent: bool) -> None:
    world = World(*members(1))
    world.decided("n1")
    world.cluster.sink([event])
    assert await world.sent() == (["p0"] if is_sent else [])
    assert bool(world.given_back()) is (not is_sent and not isinstance(getattr(event, "obj", None), Pod))


@pytest.mark.parametrize("now", [CORDONED, replace(N1, taints=(NOT_READY,))], ids=["cordoned", "not ready"])
async def test_a_pod_that_tolerates_it_is_sent(now: Node) -> None:
    one = members(1)[0]
    world = World(replace(one, spec=replace(one.spec, tolerations=TOLERANT)))
    world.decided("n1")
    world.cluster.sink([Seen(now)])
    assert await world.sent() == ["p0"]


async def test_what_the_cycle_knew_already_is_a_matter_of_its_policy() -> None:
    world = World(*members(1), first=replace(CORDONED, taints=(NOT_READY,)))
    world.decided("n1")
    world.cluster.sink([Seen(replace(CORDONED, taints=(NOT_READY,), labels={"a": "b"}))])
    assert await world.sent() == ["p0"]


async def test_a_node_that_changed_while_the_cycle_ran_is_noticed() -> None:
    world = World(*members(1))
    world.cluster.sink([Seen(CORDONED)])
    world.decided("n1")
    assert await world.sent() == []


@pytest.mark.parametrize(
    ("minimum", "sent"), [pytest.param(3, [], id="needs all"), pytest.param(2, ["p0", "p2"], id="has one to spare")]
)
async def test_the_rest_of_a_gang_is_given_back_where_it_would_fall_below_its_minimum(
    minimum: int, sent: list[str]
) -> None:
    world = World(*members(3), minimum=minimum)
    world.decided("n2", "n1", "n2")
    world.cluster.sink([Gone(Node, "n1")])
    assert await world.sent() == sent
    assert world.given_back() == [each.key for each in world.pods if each.name not in sent]


async def test_a_member_that_is_deleted_gives_the_rest_back() -> None:
    world = World(*members(3), minimum=3)
    world.decided("n1", "n1", "n1")
    world.cluster.sink([Gone(Pod, "ns/p1")])
    assert await world.sent() == []
    assert world.given_back() == ["ns/p0", "ns/p2"]


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        pytest.param(lambda p: p, ["p0"], id="runs"),
        pytest.param(lambda p: replace(p, phase="Succeeded"), ["p0"], id="has succeeded"),
        pytest.param(lambda p: replace(p, phase="Failed"), [], id="has failed"),
        pytest.param(lambda p: replace(p, deletion=1.0), [], id="is leaving"),
    ],
)
async def test_members_on_nodes_count(change: Callable[[Pod], Pod], sent: list[str]) -> None:
    world, there = World(*members(2), minimum=2), pod("old", "g", on="n2")
    world.cluster.sink([Seen(there)])
    world.cluster.sink([Seen(change(there))])
    world.decided("n2", "n1")
    world.cluster.sink([Gone(Node, "n1")])
    assert await world.sent() == sent


async def test_a_gang_is_judged_again_once_other_binds_wait() -> None:
    world = World(*members(3), minimum=2)
    world.decided("n2", "n1", "n2")
    world.cluster.sink([Gone(Node, "n1")])
    world.pods = world.pods[1:]
    assert await world.sent() == ["p2"]


async def test_a_gang_falls_also_if_the_bind_that_cannot_be_sent_is_looked_at_first() -> None:
    world = World(*members(3), minimum=3)
    world.decided("n1", "n2", "n2")
    world.cluster.sink([Gone(Node, "n1")])
    assert await world.sent() == []
    assert world.given_back() == ["ns/p0", "ns/p1", "ns/p2"]


async def test_a_gang_that_loses_a_bound_member_gives_the_rest_back() -> None:
    world, there = World(*members(2), minimum=3), pod("old", "g", on="n2")
    world.cluster.sink([Seen(there)])
    world.decided("n1", "n2")
    world.cluster.sink([Gone(Pod, there.key)])
    assert await world.sent() == []


@pytest.mark.parametrize(("begun", "sent"), [(False, []), (True, ["p0", "p1", "p2"])])
async def test_once_it_stops_only_gangs_that_are_begun_are_finished(begun: bool, sent: list[str]) -> None:
    world = World(*members(3), minimum=3)
    world.decided("n1", "n2", "n2")
    if begun:
        world.pods = world.pods[:1]
        await world.sent()
        world.pods = members(3)
    world.cluster._checks.stop()
    assert sorted({*await world.sent()}) == sent


async def test_a_gang_that_holds_nodes_is_finished() -> None:
    world, there = World(*members(1), minimum=2), pod("old", "g", on="n2")
    world.cluster.sink([Seen(there)])
    world.decided("n1")
    world.cluster._checks.stop()
    assert await world.sent() == ["p0"]
