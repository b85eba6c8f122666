"""ResourceClaims: made from templates, given back by pods that have ended."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion
from pumice.model.pod import ENDED
from tests.unit.apiserver.actors.test_group_protection import native, write
from tests.unit.apiserver.worlds import Clock, cluster, create, found, pod, settle, target

CLAIMS, GROUPS = "resourceclaims.resource.k8s.io", "podgroups.scheduling.k8s.io"
TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
PROTECTION = "resource.kubernetes.io/delete-protection"
ENTRY = {"name": "gpu", "resourceClaimTemplateName": "one"}
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
ALLOCATION = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "0"}]}}


def template(name: str = "one") -> dict[str, Any]:
    spec = {"metadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}}, "spec": SPEC}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def claim(name: str) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": SPEC}


def named_by(world: Cluster, table: str, name: str) -> dict[str, str]:
    """Return the claims that were made for an object, by entry."""
    settle(world)
    listed = ((found(world, table, f"default/{name}") or {}).get("status") or {}).get("resourceClaimStatuses") or []
    return {each["name"]: each["resourceClaimName"] for each in listed}


def claims(world: Cluster) -> dict[str, dict[str, Any]]:
    settle(world)
    return {row.obj["metadata"]["name"]: row.obj for row in world.store.rows(CLAIMS)}


def given(world: Cluster, name: str, *users: dict[str, Any]) -> None:
    """A scheduler gives the claim its device, and reserves it."""
    before = claims(world)[name]
    metadata = {**before["metadata"], "finalizers": [PROTECTION]}
    status = {"allocation": ALLOCATION, "reservedFor": list(users), "devices": [{"driver": "d"}]}
    write(world, CLAIMS, name, {"metadata": metadata, "status": status})


def user(world: Cluster, name: str, table: str = "pods") -> dict[str, Any]:
    uid = (found(world, table, f"default/{name}") or {})["metadata"]["uid"]
    about = {"resource": "pods"} if table == "pods" else {"resource": "podgroups", "apiGroup": "scheduling.k8s.io"}
    return {**about, "name": name, "uid": uid}


@pytest.fixture
def world() -> Cluster:
    return cluster()


@pytest.mark.parametrize("late", [False, True])
def test_a_pod_gets_a_claim_of_its_template_once(world: Cluster, late: bool) -> None:
    first, second = pod("p", resourceClaims=[ENTRY]), template()
    for obj in (first, second) if late else (second, first):
        create(world, obj)
        settle(world)
    (name,) = named_by(world, "pods", "p").values()
    (made,) = claims(world).values()
    assert made["metadata"]["name"] == name and name.startswith("p-gpu-")
    assert made["metadata"]["labels"] == {"team": "x"}
    assert made["metadata"]["annotations"] == {"note": "y", "resource.kubernetes.io/pod-claim-name": "gpu"}
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "p", True)
    assert made["spec"] == SPEC


def test_long_names_are_cut_both(world: Cluster) -> None:
    create(world, template())
    create(world, pod("p" * 60, resourceClaims=[{**ENTRY, "name": "g" * 30}]))
    (name,) = claims(world)
    assert len(name) <= 63 and name.startswith("p" * 37 + "-" + "g" * 18)


@pytest.mark.parametrize("phase", sorted(ENDED))
def test_the_claim_of_a_pod_that_ended_goes(world: Cluster, phase: str) -> None:
    create(world, template())
    create(world, pod("p", resourceClaims=[ENTRY]))
    (name,) = claims(world)
    given(world, name, user(world, "p"))
    assert claims(world)[name]["status"]["reservedFor"]
    write(world, "pods", "p", {"status": {"phase": phase}})
    assert claims(world) == {}


def test_a_claim_of_its_own_stays_and_loses_its_devices_with_the_last_user(world: Cluster) -> None:
    create(world, claim("c"))
    for name in ("p", "q"):
        create(world, pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]))
    given(world, "c", user(world, "p"), user(world, "q"))
    write(world, "pods", "p", {"status": {"phase": "Succeeded"}})
    status = claims(world)["c"]["status"]
    assert [each["name"] for each in status["reservedFor"]] == ["q"] and status["allocation"] == ALLOCATION
    world.objects.delete(target(world, "pods", "q"), Deletion(grace_s=0))
    left = claims(world)["c"]
    assert left["status"] == {} and "finalizers" not in left["metadata"]


def test_a_claim_that_was_allocated_and_never_used_keeps_its_devices(world: Cluster) -> None:
    create(world, claim("c"))
    given(world, "c")
    assert claims(world)["c"]["status"]["allocation"] == ALLOCATION
    world.objects.delete(target(world, CLAIMS, "c"), Deletion())
    assert claims(world) == {}


def test_users_of_kinds_that_are_unknown_stay(world: Cluster) -> None:
    create(world, claim("c"))
    other = {"apiGroup": "x.io", "resource": "things", "name": "t", "uid": "u"}
    given(world, "c", other, {"resource": "pods", "name": "gone", "uid": "u"})
    assert claims(world)["c"]["status"]["reservedFor"] == [other]


def test_a_pod_of_the_same_name_is_another_user(world: Cluster) -> None:
    create(world, claim("c"))
    create(world, pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]))
    given(world, "c", {**user(world, "p"), "uid": "before"})
    assert claims(world)["c"]["status"] == {}


def test_a_deleted_claim_is_made_again_for_a_pod_that_waits(world: Cluster) -> None:
    create(world, template())
    create(world, pod("p", resourceClaims=[ENTRY]))
    (before,) = claims(world)
    world.objects.delete(target(world, CLAIMS, before), Deletion())
    (after,) = claims(world)
    assert after != before and named_by(world, "pods", "p") == {"gpu": after}


def test_a_claim_is_reserved_for_a_pod_that_was_created_with_its_node(world: Cluster) -> None:
    create(world, claim("c"))
    given(world, "c")
    create(world, pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}], nodeName="n"))
    assert claims(world)["c"]["status"]["reservedFor"] == [user(world, "p")]


def test_pods_of_a_group_share_its_claim_until_the_group_is_gone(world: Cluster) -> None:
    create(world, template())
    shared = native("g")
    shared["spec"]["resourceClaims"] = [ENTRY]
    members = [pod(name, resourceClaims=[ENTRY], schedulingGroup={"podGroupName": "g"}) for name in ("p", "q")]
    create(world, members[0])
    assert claims(world) == {}, "the group comes after its pod"
    create(world, shared)
    create(world, members[1])
    (name,) = claims(world)
    assert named_by(world, GROUPS, "g") == named_by(world, "pods", "p") == named_by(world, "pods", "q") == {"gpu": name}
    made = claims(world)[name]["metadata"]
    assert made["annotations"]["resource.kubernetes.io/podgroup-claim-name"] == "gpu"
    given(world, name, user(world, "g", GROUPS))
    for each in ("p", "q"):
        write(world, "pods", each, {"status": {"phase": "Succeeded"}})
    assert claims(world)[name]["status"]["allocation"] == ALLOCATION, "another pod of the group may come"
    world.objects.delete(target(world, GROUPS, "g"), Deletion())
    assert claims(world) == {}


def test_a_spec_that_is_refused_is_tried_again_and_holds_up_nothing() -> None:
    clock = Clock()
    world = cluster(clock)
    wrong = template()
    wrong["spec"]["metadata"]["labels"] = {"team": "not a label!"}
    create(world, wrong)
    create(world, template("two"))
    create(world, pod("p", resourceClaims=[ENTRY]))
    create(world, pod("q", resourceClaims=[{**ENTRY, "resourceClaimTemplateName": "two"}]))
    assert set(named_by(world, "pods", "q")) == {"gpu"}
    assert named_by(world, "pods", "p") == {} and world.claims.step() == clock.now + 5.0
    template_row = found(world, TEMPLATES, "default/one") or {}
    template_row["spec"]["metadata"]["labels"] = {}
    clock.now += 5.0
    assert set(named_by(world, "pods", "p")) == {"gpu"} and world.claims.step() is None


def test_what_was_stored_before_the_start_counts(world: Cluster) -> None:
    create(world, claim("c"))
    create(world, pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]))
    given(world, "c", user(world, "p"))
    world.objects.store.sinks.clear()
    world.objects.delete(target(world, "pods", "p"), Deletion(grace_s=0))
    again = cluster(store=world.store)
    assert claims(again)["c"]["status"] == {}
