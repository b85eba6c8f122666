"""PodGroups of ``scheduling.k8s.io`` stay until no pod uses them."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion
from pumice.model.pod import ENDED
from tests.unit.apiserver.worlds import Clock, cluster, create, found, group, pod, settle, target

TABLE, FINALIZER = "podgroups.scheduling.k8s.io", "scheduling.k8s.io/podgroup-protection"


def native(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def finalizers(world: Cluster, name: str = "g") -> list[str] | None:
    """Return the finalizers of the PodGroup, or None if it is gone."""
    settle(world)
    obj = found(world, TABLE, f"default/{name}")
    return None if obj is None else obj["metadata"].get("finalizers") or []


def write(world: Cluster, table: str, name: str, change: dict[str, Any]) -> None:
    row, resource = world.store.find(table, f"default/{name}"), world.registry.of_table(table)
    assert row is not None and resource is not None
    world.objects.write(resource, row, {**row.obj, **change})


@pytest.fixture
def world() -> Cluster:
    return cluster()


def test_a_new_group_is_protected_and_keeps_the_finalizers_of_its_author(world: Cluster) -> None:
    create(world, native("g"))
    create(world, native("other", finalizers=["example.com/x"]))
    assert finalizers(world) == [FINALIZER]
    assert finalizers(world, "other") == ["example.com/x", FINALIZER]


def test_a_deleted_group_without_pods_goes_at_once(world: Cluster) -> None:
    create(world, native("g"))
    world.objects.delete(target(world, TABLE, "g"), Deletion())
    assert finalizers(world) is None


@pytest.mark.parametrize("phase", sorted(ENDED))
def test_a_deleted_group_stays_until_its_last_pod_has_ended(world: Cluster, phase: str) -> None:
    create(world, native("g"))
    for name in ("p", "q"):
        create(world, pod(name, schedulingGroup={"podGroupName": "g"}))
    world.objects.delete(target(world, TABLE, "g"), Deletion())
    assert finalizers(world) == [FINALIZER]
    world.objects.delete(target(world, "pods", "q"), Deletion())
    assert finalizers(world) == [FINALIZER]
    write(world, "pods", "p", {"status": {"phase": phase}})
    assert finalizers(world) is None


def test_a_group_that_lost_its_finalizer_gets_it_back_while_a_pod_uses_it(world: Cluster) -> None:
    create(world, native("g"))
    write(world, TABLE, "g", {"metadata": {**(found(world, TABLE, "default/g") or {})["metadata"], "finalizers": []}})
    assert finalizers(world) == []
    create(world, pod("p", schedulingGroup={"podGroupName": "g"}))
    assert finalizers(world) == [FINALIZER]


def test_what_was_stored_before_the_start_counts(world: Cluster) -> None:
    create(world, native("g"))
    create(world, pod("p", schedulingGroup={"podGroupName": "g"}))
    settle(world)
    again = cluster(Clock(), world.store)
    again.objects.delete(target(again, TABLE, "g"), Deletion())
    assert finalizers(again) == [FINALIZER]


def test_groups_of_volcano_are_left_alone(world: Cluster) -> None:
    create(world, group("g"))
    create(world, pod("p", schedulingGroup={"podGroupName": "g"}))
    settle(world)
    obj = found(world, "podgroups.scheduling.volcano.sh", "default/g")
    assert obj is not None and "finalizers" not in obj["metadata"]
