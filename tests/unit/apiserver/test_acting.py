"""Those who act on a cluster: binding and eviction, nodes that run pods, and the collector."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.kinds.pods import bind, evict
from pumice.apiserver.objects import Deletion, Options
from pumice.apiserver.refusals import Refusal
from tests.unit.apiserver.worlds import START, Clock, cluster, create, found, group, node, pod, settle, target

NAMES = ["default", "kube-node-lease", "kube-public", "kube-system", "volcano-system"]


def to(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": metadata, "target": {"kind": "Node", "name": name}}


def put_on(world: Cluster, name: str, where: str = "n") -> None:
    bind(world.objects, target(world, "pods", name), to(where))


def phase(world: Cluster, name: str) -> str:
    obj = found(world, "pods", f"default/{name}")
    return "gone" if obj is None else str(obj["status"]["phase"])


# -- binding


def test_binding_gives_the_node() -> None:
    world = cluster()
    create(world, pod("a"))
    bind(world.objects, target(world, "pods", "a"), to("n", annotations={"x": "y"}))
    obj = found(world, "pods", "default/a")
    assert obj is not None
    assert (obj["spec"]["nodeName"], obj["metadata"]["annotations"]) == ("n", {"x": "y"})
    assert [(c["type"], c["status"]) for c in obj["status"]["conditions"]] == [("PodScheduled", "True")]


@pytest.mark.parametrize(
    ("obj", "binding", "code"),
    [
        pytest.param(pod("a", nodeName="m"), to("n"), 409, id="bound already"),
        pytest.param(pod("a", schedulingGates=[{"name": "g"}]), to("n"), 409, id="gated"),
        pytest.param(pod("a"), to("n", uid="another"), 409, id="another pod of this name"),
        pytest.param(pod("a"), to("n", resourceVersion="1"), 409, id="an older pod"),
        pytest.param(pod("a"), to(""), 422, id="no node"),
        pytest.param(pod("a"), {"target": []}, 422, id="no target"),
        pytest.param(pod("b"), to("n"), 404, id="no pod"),
    ],
)
def test_what_is_not_bound(obj: dict[str, Any], binding: dict[str, Any], code: int) -> None:
    world = cluster()
    create(world, obj)
    before = world.store.version
    with pytest.raises(Refusal) as refused:
        bind(world.objects, target(world, "pods", "a"), binding)
    assert (refused.value.code, world.store.version) == (code, before)


def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    world = cluster()
    held = pod("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    create(world, held)
    world.objects.delete(target(world, "pods", "a"), Deletion())
    with pytest.raises(Refusal, match="being deleted"):
        put_on(world, "a")


# -- eviction


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [
        pytest.param({"minAvailable": 1}, True, id="one may go"),
        pytest.param({"minAvailable": 2}, False, id="none may go"),
        pytest.param({"minAvailable": "100%"}, False, id="all in percent"),
        pytest.param({"minAvailable": "50%"}, True, id="half"),
        pytest.param({"maxUnavailable": 0}, False, id="none unavailable"),
        pytest.param({"maxUnavailable": 1}, True, id="one unavailable"),
    ],
)
def test_eviction_under_a_budget(budget: dict[str, Any], allowed: bool) -> None:
    world = cluster()
    create(world, node("n"))
    for name in "ab":
        create(world, pod(name, labels={"app": "x"}))
        put_on(world, name)
    spec = {"selector": {"matchLabels": {"app": "x"}}, **budget}
    create(world, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": spec})
    settle(world)
    where = target(world, "pods", "a")
    if allowed:
        evict(world.objects, where, {}, Deletion())
        settle(world)
        assert phase(world, "a") == "gone"
    else:
        with pytest.raises(Refusal) as refused:
            evict(world.objects, where, {}, Deletion())
        assert (refused.value.code, phase(world, "a")) == (429, "Running")


def test_a_pod_that_is_not_up_may_always_go() -> None:
    world = cluster()
    create(world, pod("a", labels={"app": "x"}))
    spec = {"selector": {}, "minAvailable": 5}
    create(world, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": spec})
    evict(world.objects, target(world, "pods", "a"), {}, Deletion())
    assert phase(world, "a") == "gone"


# -- nodes


def test_a_node_that_nobody_spoke_for_is_ready() -> None:
    world = cluster()
    create(world, node("n"))
    said = node("m")
    said["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    create(world, said)
    settle(world)
    states = {name: found(world, "nodes", name)["status"]["conditions"][0]["status"] for name in "nm"}  # type: ignore[index]
    assert states == {"n": "True", "m": "False"}
    assert found(world, "nodes", "n")["status"]["allocatable"] == {"pods": "110", "cpu": "8"}  # type: ignore[index]


def test_a_bound_pod_runs_and_ends_after_its_duration() -> None:
    clock = Clock()
    world = cluster(clock)
    create(world, node("n"))
    create(world, pod("a", annotations={"pumice.dev/duration": "90s"}))
    create(world, pod("b"))
    settle(world)
    assert (phase(world, "a"), phase(world, "b")) == ("Pending", "Pending")
    put_on(world, "a")
    put_on(world, "b")
    assert world.kubelets.step() == START + 90
    assert (phase(world, "a"), phase(world, "b")) == ("Running", "Running")
    clock.now += 89
    world.kubelets.step()
    assert phase(world, "a") == "Running"
    clock.now += 1
    assert world.kubelets.step() is None
    assert (phase(world, "a"), phase(world, "b")) == ("Succeeded", "Running")


def test_speed_shortens_what_a_pod_takes() -> None:
    world = cluster(speed=60.0)
    create(world, node("n"))
    create(world, pod("a", annotations={"pumice.dev/duration": "1h"}))
    put_on(world, "a")
    assert world.kubelets.step() == START + 60


def test_a_job_says_how_long_its_pods_run() -> None:
    world = cluster()
    create(world, node("n"))
    job = group("j")
    job["metadata"]["annotations"] = {"pumice.dev/duration": "2h"}
    uid = create(world, job)["metadata"]["uid"]
    member = pod("a")
    owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": "j", "uid": uid, "controller": True}
    member["metadata"]["ownerReferences"] = [owner]
    create(world, member)
    put_on(world, "a")
    assert world.kubelets.step() == START + 7200


def test_another_pod_of_the_name_has_a_time_of_its_own() -> None:
    clock = Clock()
    world = cluster(clock)
    create(world, node("n"))
    for delay in (0, 50):
        clock.now += delay
        create(world, pod("a", annotations={"pumice.dev/duration": "90s"}))
        put_on(world, "a")
        settle(world)
        if not delay:
            world.objects.delete(target(world, "pods", "a"), Deletion(grace_s=0))
    clock.now = START + 90
    world.kubelets.step()
    assert phase(world, "a") == "Running"
    clock.now = START + 140
    world.kubelets.step()
    assert phase(world, "a") == "Succeeded"


def test_a_pod_on_a_node_that_is_not_there_waits() -> None:
    world = cluster()
    create(world, pod("a"))
    put_on(world, "a", "nowhere")
    settle(world)
    assert phase(world, "a") == "Pending"


def test_a_deleted_pod_goes_from_its_node() -> None:
    world = cluster()
    create(world, node("n"))
    create(world, pod("a"))
    put_on(world, "a")
    settle(world)
    world.objects.delete(target(world, "pods", "a"), Deletion())
    assert "deletionTimestamp" in found(world, "pods", "default/a")["metadata"]  # type: ignore[index]
    settle(world)
    assert phase(world, "a") == "gone"


# -- what goes because something else went


def test_what_has_no_owner_left_goes() -> None:
    world = cluster()
    first, second = (create(world, group(name))["metadata"]["uid"] for name in ("one", "two"))
    create(world, pod("a", owners=[first]))
    create(world, pod("b", owners=[first, second]))
    create(world, pod("c"))
    create(world, pod("d", owners=["uid-that-never-was"]))
    settle(world)
    assert [phase(world, name) for name in "abcd"] == ["Pending", "Pending", "Pending", "gone"]
    world.objects.delete(target(world, "podgroups.scheduling.volcano.sh", "one"), Deletion())
    settle(world)
    assert [phase(world, name) for name in "abc"] == ["gone", "Pending", "Pending"]
    world.objects.delete(target(world, "podgroups.scheduling.volcano.sh", "two"), Deletion())
    settle(world)
    assert [phase(world, name) for name in "bc"] == ["gone", "Pending"]


def test_a_chain_of_owners_goes_to_its_end() -> None:
    world = cluster()
    uid = create(world, group("g"))["metadata"]["uid"]
    for i in range(5):
        uid = create(world, pod(f"p{i}", owners=[uid]))["metadata"]["uid"]
    world.objects.delete(target(world, "podgroups.scheduling.volcano.sh", "g"), Deletion())
    settle(world)
    assert [phase(world, f"p{i}") for i in range(5)] == ["gone"] * 5


def test_what_is_released_lives_on() -> None:
    world = cluster()
    uid = create(world, group("g"))["metadata"]["uid"]
    create(world, pod("a", owners=[uid]))
    world.collector.release(uid)
    world.objects.delete(target(world, "podgroups.scheduling.volcano.sh", "g"), Deletion())
    settle(world)
    assert phase(world, "a") == "Pending"
    assert found(world, "pods", "default/a")["metadata"]["ownerReferences"] == []  # type: ignore[index]


def test_a_namespace_goes_when_it_is_empty() -> None:
    world = cluster()
    create(world, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    for obj in (pod("a"), held, group("g")):
        create(world, obj, "team")
    world.objects.delete(target(world, "namespaces", "team"), Deletion())
    with pytest.raises(Refusal, match="being terminated"):
        create(world, pod("late"), "team")
    settle(world)
    assert [row.key for row in world.store.rows("pods")] == ["team/held"]
    assert found(world, "namespaces", "team")["status"]["phase"] == "Terminating"  # type: ignore[index]
    where = target(world, "pods", "held", "team")
    world.objects.change(where, lambda old: {**old, "metadata": {**old["metadata"], "finalizers": []}}, Options())
    settle(world)
    assert [row.key for row in world.store.rows("namespaces")] == NAMES


def test_what_may_not_be_deleted_does_not_stop_the_collector() -> None:
    world = cluster()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "gone"}
    for name in ("default", "other"):
        if name == "other":
            create(world, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        metadata = {"ownerReferences": [owner]}
        where = target(world, "namespaces", name)
        world.objects.change(
            where, lambda old, more=metadata: {**old, "metadata": {**old["metadata"], **more}}, Options()
        )
    settle(world)
    assert [row.key for row in world.store.rows("namespaces")] == NAMES
