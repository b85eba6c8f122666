"""Nothing stops for good: a fault of one object in nodes or garbage collection is reported, and others are served."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pumice.apiserver.api.http import Api
from pumice.apiserver.api.patches import json_patched, merge_patched
from pumice.apiserver.api.server import serving
from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion, Options
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.seed import place_manifests
from pumice.runtime.files.documents import Document
from pumice.runtime.serving.listening import Place
from pumice.runtime.serving.supervision import Health, SupervisedTask
from tests.unit.apiserver.conftest import Client
from tests.unit.apiserver.worlds import Clock, cluster, create, found, group, node, pod, settle, target

RUNS = {"pumice.dev/duration": "60s"}


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def phase(world: Cluster, name: str, of: str = "default") -> str:
    obj = found(world, "pods", f"{of}/{name}")
    return "gone" if obj is None else str(obj["status"].get("phase"))


def forced(world: Cluster, table: str, key: str, **changes: Any) -> None:
    """Put an object into the store past every check, as an older server may have kept it."""
    row = world.store.find(table, key)
    assert row is not None
    world.store.put(table, key, {**row.obj, **changes})


def still_acts(world: Cluster) -> None:
    """Nodes run what is put on them, and namespaces end."""
    create(world, pod("probe", nodeName="n"))
    create(world, namespace("probe"))
    create(world, group("g"), "probe")
    world.objects.delete(target(world, "namespaces", "probe"), Deletion())
    settle(world)
    assert phase(world, "probe") == "Running"
    assert found(world, "namespaces", "probe") is None


# -- what a tenant may send


@pytest.mark.parametrize("seconds", [10**12, 2**63 - 1, 10**30])
@pytest.mark.parametrize("whose", ["the pod's", "the request's"])
def test_a_grace_period_beyond_all_times_ends_nothing(seconds: int, whose: str) -> None:
    world = cluster()
    create(world, node("n"))
    create(world, namespace("a"))
    theirs = seconds if whose == "the pod's" else 30
    create(world, pod("p", nodeName="n", terminationGracePeriodSeconds=theirs), "a")
    settle(world)
    asked = None if whose == "the pod's" else seconds
    marked = world.objects.delete(target(world, "pods", "p", "a"), Deletion(asked))
    assert marked["metadata"]["deletionTimestamp"].startswith("20")
    world.objects.delete(target(world, "namespaces", "a"), Deletion())
    settle(world)
    assert found(world, "namespaces", "a") is None
    still_acts(world)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/spec/containers/0/image"},
        {"op": "replace", "path": "/spec/containers/0/image", "value": ""},
        {"op": "add", "path": "/spec/tolerations", "value": [{"operator": "Perhaps"}]},
    ],
    ids=["no image", "an empty image", "a toleration that is none"],
)
def test_a_change_that_leaves_no_pod_is_refused(operation: dict[str, Any]) -> None:
    world = cluster()
    create(world, pod("a"))
    with pytest.raises(Refusal) as refused:
        world.objects.change(target(world, "pods", "a"), lambda obj: json_patched(obj, [operation]), Options())
    assert refused.value.code == 422


@pytest.mark.parametrize(
    "status",
    [{"startTime": "foo"}, {"startTime": 5}, {"conditions": [{"type": "A", "lastTransitionTime": "yesterday"}]}]
    + [{"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]}, {"phase": 5}],
    ids=str,
)
def test_a_status_that_cannot_be_read_is_refused(status: dict[str, Any]) -> None:
    world = cluster()
    create(world, pod("a"))
    where = target(world, "pods", "a", part="status")
    with pytest.raises(Refusal) as refused:
        world.objects.change(where, lambda obj: merge_patched(obj, {"status": status}), Options())
    assert refused.value.code == 422


def test_a_phase_that_is_taken_away_does_not_end_the_nodes() -> None:
    clock = Clock()
    world = cluster(clock)
    create(world, node("n"))
    create(world, pod("a", nodeName="n", annotations=RUNS))
    settle(world)
    where = target(world, "pods", "a", part="status")
    world.objects.change(where, lambda obj: merge_patched(obj, {"status": {"phase": None}}), Options())
    settle(world)
    clock.now += 61
    settle(world)
    assert phase(world, "a") in ("Running", "Succeeded")
    still_acts(world)
    assert world.kubelets.skipped.count == 0


def test_what_was_unreadable_before_may_still_lose_its_finalizer() -> None:
    world = cluster()
    held = pod("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    create(world, held)
    row = world.store.find("pods", "default/a")
    assert row is not None
    forced(world, "pods", "default/a", spec={**row.obj["spec"], "tolerations": [{"operator": "Perhaps"}]})
    where = target(world, "pods", "a")
    world.objects.delete(where, Deletion())
    world.objects.change(where, lambda obj: merge_patched(obj, {"metadata": {"finalizers": None}}), Options())
    assert phase(world, "a") == "gone"


# -- what is in the store all the same


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"nodeName": "n", "containers": [5]}},
        {"spec": {"nodeName": "n"}},
        {"spec": {"nodeName": ["n"], "containers": []}},
        {"status": {"phase": ["Pending"]}},
        {"status": {"phase": "Running", "startTime": {}}},
        {"status": None},
    ],
    ids=str,
)
def test_an_object_that_nobody_can_deal_with_costs_only_itself(changes: dict[str, Any]) -> None:
    world = cluster()
    create(world, node("n"))
    create(world, namespace("a"))
    create(world, pod("bad", annotations=RUNS), "a")
    create(world, pod("good", annotations=RUNS), "a")
    forced(world, "pods", "a/bad", **changes)
    settle(world)
    world.objects.delete(target(world, "namespaces", "a"), Deletion())
    settle(world)
    assert phase(world, "good", "a") == "gone"
    still_acts(world)


async def test_what_was_left_alone_is_reported(client: Client, world: Cluster) -> None:
    async with client.get("/readyz") as answer:
        assert await answer.text() == "ok"
    create(world, node("n"))
    create(world, pod("bad"))
    forced(world, "pods", "default/bad", spec={"nodeName": "n"})
    settle(world)
    async with client.get("/readyz") as answer:
        assert answer.status == 200  # one object, which a tenant may choose, makes no server unready
        first, reports = (await answer.text()).splitlines()
    assert first == "ok"
    assert reports.startswith("[+]nodes ok: objects skipped: 1, the last pods default/bad: KeyError")


def failing() -> Health:
    return Health(False, "KeyError: secret-name")


async def test_a_part_that_is_not_at_work_is_reported(world: Cluster) -> None:
    api = Api(world, token="a-token-of-some-length")
    api.checks["scheduler"] = failing
    async with serving(api, Place()) as url:
        headers = {"Authorization": "Bearer a-token-of-some-length"}
        for given, reports in ((headers, "[-]scheduler failed: KeyError: secret-name"), ({}, "[-]scheduler failed")):
            async with aiohttp.request("GET", f"{url}/readyz", headers=given) as answer:
                assert (answer.status, (await answer.text()).splitlines()[1:]) == (503, [reports])
            async with aiohttp.request("GET", f"{url}/livez", headers=given) as answer:
                assert answer.status == 200


async def test_parts_that_stop_are_started_again(
    world: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Even by a fault in the middle of a step, where no object is to blame."""
    step, faults, again = world.kubelets.step, [RuntimeError("a fault")], asyncio.Event()

    def faulty(count_max: int = 100) -> float | None:
        if faults:
            raise faults.pop()
        again.set()
        return step(count_max)

    monkeypatch.setattr(world.kubelets, "step", faulty)
    with caplog.at_level(logging.WARNING):
        async with world.running():
            await asyncio.wait_for(again.wait(), 30)
            assert world.checks()["nodes"]() == Health(False, "RuntimeError: a fault")
    assert "nodes restarts in" in caplog.text
    assert all(isinstance(part, SupervisedTask) for part in world._parts)


def test_a_definition_keeps_the_scope_of_what_is_there() -> None:
    world = cluster()
    where = target(world, "customresourcedefinitions.apiextensions.k8s.io", "queues.scheduling.volcano.sh")
    with pytest.raises(Refusal, match="immutable"):
        world.objects.change(where, lambda obj: merge_patched(obj, {"spec": {"scope": "Namespaced"}}), Options())


@pytest.mark.parametrize("group_name", ["apps", "apiextensions.k8s.io", "coordination.k8s.io"])
def test_no_definition_takes_the_place_of_a_kind_of_kubernetes(group_name: str) -> None:
    world = cluster()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group_name}"},
        "spec": {
            "group": group_name,
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }
    with pytest.raises(Refusal, match="a group of Kubernetes' own"):
        create(world, definition)


def test_a_namespace_with_very_much_in_it_ends_step_by_step() -> None:
    world = cluster()
    create(world, namespace("a"))
    for i in range(450):
        create(world, group(f"g{i}"), "a")
    world.objects.delete(target(world, "namespaces", "a"), Deletion())
    world.collector.step()
    assert world.store.count("podgroups.scheduling.volcano.sh") == 250  # requests come in between
    settle(world)
    assert found(world, "namespaces", "a") is None


@pytest.mark.parametrize(
    "obj",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "\ud800"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "n": 10**5000},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {None: "x"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": 5},
        {"apiVersion": ["v1"], "kind": {}},
    ],
    ids=["half a character", "a number beyond JSON", "a key that is none", "no metadata", "no kind"],
)
def test_a_manifest_that_no_client_could_send_is_a_problem(tmp_path: Path, obj: dict[str, Any]) -> None:
    """Or it could be read back no more from what is kept."""
    world = cluster()
    documents = [Document("a.yaml document 1", obj), Document("a.yaml document 2", node("n"))]
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr("pumice.apiserver.seed.documents", lambda path: documents)
        (problem,) = place_manifests(world, [tmp_path / "a.yaml"])
    assert problem.where == "a.yaml document 1"
    assert "unexpected error" not in problem.what
    assert found(world, "nodes", "n") is not None
