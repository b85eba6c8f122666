"""``batch/v1`` Jobs run to their end: what is created, counted and deleted."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion
from pumice.apiserver.refusals import Refusal
from pumice.model.instants import stamp
from pumice.runtime.controllers.batch_jobs import FINALIZER, INDEX
from tests.unit.apiserver.worlds import Clock, cluster, create, found, node, settle, target


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world(clock: Clock) -> Cluster:
    made = cluster(clock)
    create(made, node("n"))
    return made


def start(world: Cluster, **spec: Any) -> None:
    """Create the job j, whose pods run for a minute."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    metadata = {"name": "j", "annotations": {"pumice.dev/duration": "60s"}}
    create(
        world, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template, **spec}}
    )
    settle(world)


def pods(world: Cluster) -> list[dict[str, Any]]:
    return [row.obj for row in world.store.rows("pods")]


def bind(world: Cluster) -> None:
    for row in list(world.store.rows("pods")):
        if not row.obj["spec"].get("nodeName"):
            new = {**row.obj, "spec": {**row.obj["spec"], "nodeName": "n"}}
            world.objects.write(target(world, "pods").resource, row, new)
    settle(world)


def after(world: Cluster, clock: Clock, seconds: float) -> None:
    clock.now += seconds
    settle(world)


def end(world: Cluster, pod: dict[str, Any], phase: str) -> None:
    key = f"default/{pod['metadata']['name']}"
    row = world.store.find("pods", key)
    assert row is not None
    world.objects.write(
        target(world, "pods").resource, row, {**row.obj, "status": {**row.obj["status"], "phase": phase}}
    )
    settle(world)


def status(world: Cluster) -> dict[str, Any]:
    job = found(world, "jobs.batch", "default/j")
    assert job is not None
    return job["status"]


def true(world: Cluster) -> set[str]:
    return {each["type"] for each in status(world).get("conditions", ()) if each["status"] == "True"}


def test_an_indexed_job_gives_each_pod_its_index_and_completes(world: Cluster, clock: Clock) -> None:
    start(world, completionMode="Indexed", completions=3, parallelism=2)
    assert [pod["metadata"]["labels"][INDEX] for pod in pods(world)] == ["0", "1"]
    first = pods(world)[0]
    assert first["metadata"]["name"].startswith("j-0-") and first["spec"]["hostname"] == "j-0"
    (env,) = first["spec"]["containers"][0]["env"]
    assert env["name"] == "JOB_COMPLETION_INDEX"
    assert env["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
    bind(world)
    assert status(world)["active"] == status(world)["ready"] == 2
    after(world, clock, 61)
    assert status(world)["completedIndexes"] == "0,1" and status(world)["succeeded"] == 2
    bind(world)
    after(world, clock, 61)
    assert status(world)["completedIndexes"] == "0-2" and true(world) == {"SuccessCriteriaMet", "Complete"}
    assert "active" not in status(world) and not status(world)["uncountedTerminatedPods"]
    assert len(pods(world)) == 3 and not any(pod["metadata"].get("finalizers") for pod in pods(world))
    assert status(world)["completionTime"] == stamp(clock.now)


def test_an_index_that_failed_is_tried_again_after_a_while(world: Cluster, clock: Clock) -> None:
    start(world, completionMode="Indexed", completions=2, parallelism=2)
    bind(world)
    end(world, pods(world)[1], "Failed")
    assert status(world)["failed"] == 1 and len(pods(world)) == 2
    after(world, clock, 11)
    assert [pod["metadata"]["labels"][INDEX] for pod in pods(world)].count("1") == 2


def test_a_job_with_too_many_failures_ends_and_its_pods_go(world: Cluster, clock: Clock) -> None:
    start(world, completions=4, parallelism=2, backoffLimit=1)
    bind(world)
    end(world, pods(world)[0], "Failed")
    assert true(world) == set()
    after(world, clock, 11)
    end(world, next(pod for pod in pods(world) if pod["status"]["phase"] != "Failed"), "Failed")
    assert true(world) == {"FailureTarget", "Failed"} and status(world)["failed"] == 2
    assert [pod["status"]["phase"] for pod in pods(world)] == ["Failed", "Failed"]


def test_pods_that_were_deleted_after_they_ended_still_count(world: Cluster, clock: Clock) -> None:
    start(world, completions=2, parallelism=1)
    bind(world)
    after(world, clock, 61)
    ended = next(pod for pod in pods(world) if pod["status"]["phase"] == "Succeeded")
    world.objects.delete(target(world, "pods", ended["metadata"]["name"]), Deletion())
    settle(world)
    bind(world)
    after(world, clock, 61)
    assert status(world)["succeeded"] == 2 and "Complete" in true(world)


def test_a_pod_that_ended_is_counted_once_whenever_the_server_stops(world: Cluster, clock: Clock) -> None:
    start(world, completions=3, parallelism=1)
    bind(world)
    row = next(world.store.rows("pods"))
    ended = {**row.obj, "status": {**row.obj["status"], "phase": "Succeeded"}}
    world.objects.write(target(world, "pods").resource, row, ended)
    for _ in range(4):  # one write of the controller, then a stop
        world.jobs.step(1)
        world = cluster(clock, world.store)
    settle(world)
    assert status(world)["succeeded"] == 1


def test_without_a_number_of_completions_one_success_is_enough(world: Cluster, clock: Clock) -> None:
    start(world, parallelism=2)
    bind(world)
    end(world, pods(world)[0], "Succeeded")
    assert true(world) == set() and len(pods(world)) == 2
    after(world, clock, 61)
    assert "Complete" in true(world) and status(world)["succeeded"] == 2


def test_a_suspended_job_has_no_pods_until_it_is_resumed(world: Cluster) -> None:
    start(world, parallelism=2, completions=2, suspend=True)
    assert pods(world) == [] and true(world) == {"Suspended"} and "startTime" not in status(world)
    for value in (False, True, False):
        change(world, suspend=value)
    assert len(pods(world)) == 2 and true(world) == set() and "failed" not in status(world)


def change(world: Cluster, **spec: Any) -> None:
    row = world.store.find("jobs.batch", "default/j")
    assert row is not None
    new = {**row.obj, "spec": {**row.obj["spec"], **spec}}
    world.objects.write(target(world, "jobs.batch").resource, row, new)
    settle(world)


def test_fewer_at_a_time_end_the_youngest(world: Cluster) -> None:
    start(world, parallelism=3, completions=3)
    change(world, parallelism=1)
    assert len(pods(world)) == 1 and "failed" not in status(world)


def test_deadline_and_time_to_stay(world: Cluster, clock: Clock) -> None:
    start(world, activeDeadlineSeconds=30, ttlSecondsAfterFinished=100)
    bind(world)
    after(world, clock, 29)
    assert true(world) == set()
    after(world, clock, 1)
    assert (
        true(world) == {"FailureTarget", "Failed"} and status(world)["conditions"][-1]["reason"] == "DeadlineExceeded"
    )
    after(world, clock, 100)
    assert found(world, "jobs.batch", "default/j") is None and pods(world) == []


def test_a_deleted_job_takes_its_pods_along(world: Cluster) -> None:
    start(world, parallelism=2, completions=2)
    assert all(FINALIZER in pod["metadata"]["finalizers"] for pod in pods(world))
    world.objects.delete(target(world, "jobs.batch", "j"), Deletion())
    settle(world)
    assert pods(world) == []


def test_a_refused_pod_is_tried_again(world: Cluster, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        start(world, suspend=True)
        patched.setattr(world.objects, "create", refuse)
        change(world, suspend=False)
        assert pods(world) == [] and "startTime" in status(world)
    after(world, clock, 6)
    assert len(pods(world)) == 1


def refuse(*_: object) -> None:
    raise Refusal(507, "InsufficientStorage", "full")


def test_many_changes_leave_one_wake_for_each(world: Cluster, clock: Clock) -> None:
    start(world, completions=3, activeDeadlineSeconds=3600)
    for _ in range(3):
        bind(world)
        after(world, clock, 61)
    assert status(world)["succeeded"] == 3 and len(world.jobs._wakes) == 1
