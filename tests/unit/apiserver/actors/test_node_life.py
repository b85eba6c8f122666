"""What becomes of pods whose node goes or is not well."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion
from tests.unit.apiserver.worlds import Clock, cluster, create, node, pod, settle, target

DEDICATED = {"key": "dedicated", "value": "ml", "effect": "NoExecute"}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world(clock: Clock) -> Cluster:
    made = cluster(clock)
    for name in ("n", "other"):
        create(made, node(name))
    create(made, pod("p", nodeName="n"))
    create(made, pod("q", nodeName="other"))
    settle(made)
    return made


def pods(world: Cluster) -> dict[str, str]:
    return {row.key: row.obj["status"]["phase"] for row in world.store.rows("pods")}


def change(world: Cluster, name: str, **parts: Any) -> None:
    row = world.store.find("nodes", name)
    assert row is not None
    new = {**row.obj, **{part: {**row.obj.get(part, {}), **fields} for part, fields in parts.items()}}
    world.objects.write(target(world, "nodes").resource, row, new)
    settle(world)


def says(world: Cluster, ready: str) -> None:
    change(world, "n", status={"conditions": [{"type": "Ready", "status": ready}]})


def taints(world: Cluster) -> set[tuple[str, str]]:
    row = world.store.find("nodes", "n")
    assert row is not None
    return {(taint["key"].rpartition("/")[2], taint["effect"]) for taint in row.obj["spec"].get("taints", ())}


def test_the_pods_of_a_node_that_went_go(world: Cluster) -> None:
    world.objects.delete(target(world, "nodes", "n"), Deletion())
    settle(world)
    assert pods(world) == {"default/q": "Running"}


def test_a_pod_whose_node_was_never_there_stays(world: Cluster) -> None:
    create(world, pod("early", nodeName="later"))
    settle(world)
    assert pods(world)["default/early"] == "Pending"


@pytest.mark.parametrize(("ready", "key"), [("False", "not-ready"), ("Unknown", "unreachable")])
def test_a_node_that_is_not_well_is_tainted_until_it_is(world: Cluster, ready: str, key: str) -> None:
    says(world, ready)
    assert taints(world) == {(key, "NoSchedule"), (key, "NoExecute")}
    says(world, "True")
    assert taints(world) == set()


def test_pods_stay_five_minutes_on_a_node_that_is_not_ready(world: Cluster, clock: Clock) -> None:
    says(world, "False")
    clock.now += 299
    settle(world)
    assert "default/p" in pods(world)
    clock.now += 2
    settle(world)
    assert set(pods(world)) == {"default/q"}


def test_a_node_that_is_well_in_time_keeps_its_pods(world: Cluster, clock: Clock) -> None:
    says(world, "False")
    clock.now += 200
    says(world, "True")
    clock.now += 500
    settle(world)
    assert set(pods(world)) == {"default/p", "default/q"}


def test_a_node_that_is_not_well_again_gives_its_pods_the_whole_time_again(world: Cluster, clock: Clock) -> None:
    says(world, "False")
    clock.now += 200
    says(world, "True")
    clock.now += 50
    says(world, "False")
    clock.now += 299
    settle(world)
    assert set(pods(world)) == {"default/p", "default/q"}
    clock.now += 2
    settle(world)
    assert set(pods(world)) == {"default/q"}


def test_a_node_that_reports_again_and_again_leaves_one_time_for_each_pod(world: Cluster, clock: Clock) -> None:
    for _ in range(5):
        clock.now += 10
        says(world, "False")
    assert len(world.node_life._leaves) == 1
    clock.now += 261
    settle(world)
    assert set(pods(world)) == {"default/q"}


def test_a_taint_that_evicts_evicts_who_does_not_tolerate_it(world: Cluster, clock: Clock) -> None:
    tolerates = {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoExecute"}
    create(world, pod("stays", nodeName="n", tolerations=[tolerates]))
    create(world, pod("a-while", nodeName="n", tolerations=[{**tolerates, "tolerationSeconds": 60}]))
    settle(world)
    change(world, "n", spec={"taints": [DEDICATED]})
    assert set(pods(world)) == {"default/q", "default/stays", "default/a-while"}
    clock.now += 61
    settle(world)
    assert set(pods(world)) == {"default/q", "default/stays"}
