"""What becomes of pods and Jobs in files that have no PodGroup, under both languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.matrix.kit import KAI, NODE, VOLCANO, batch_job, pod, volcano_job, written
from tests.unit.cli.kit import run

Raw = dict[str, Any]
QUEUES = {"volcano": VOLCANO, "kai-scheduler": KAI}
SCHEDULERS = tuple(QUEUES)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_pods_of_a_job_of_batch_are_one_gang_of_minimum_1(tmp_path: Path, scheduler: str) -> None:
    words = written(tmp_path, "", *QUEUES[scheduler], batch_job("a", 3, scheduler, cores=3))
    found = run("schedule", *words, "--json").json
    assert len(found["binds"]) == 2 and len(found["unscheduled"]) == 1 and len(found["podgroups"]) == 1


def test_a_job_of_kai_whose_pods_are_in_the_file_gets_no_more(tmp_path: Path) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": True}
    made = pod("a-x7k2p", "kai-scheduler", owner=owner)
    words = written(tmp_path, "", *KAI, batch_job("a", 3, "kai-scheduler", uid="u"), made)
    assert list(run("schedule", *words, "--json").json["binds"]) == ["ml/a-x7k2p"]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_each_pod_arrives_and_runs_as_its_annotations_say(tmp_path: Path, scheduler: str, kind: str) -> None:
    spans = {"pumice.dev/arrival": "100s", "pumice.dev/duration": "60s"}
    one = {"Job": batch_job("a", 3, scheduler, cores=3, **spans), "Pod": pod("a", scheduler, cores=3, **spans)}[kind]
    found = run("simulate", *written(tmp_path, "", *QUEUES[scheduler], one), "--json").json
    # Two of the three pods of the Job run at once, and the third after them.
    assert found["simulated_s"] == pytest.approx({"Job": 220.0, "Pod": 160.0}[kind], abs=3)
    assert found["completed"] == 1 and found["binds"] == {"Job": 3, "Pod": 1}[kind]


def test_more_pods_than_all_jobs_of_kai_may_have_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.runtime.files.kai_pods.MADE_PODS_MAX", 4)
    jobs = [batch_job(name, 2, "kai-scheduler") for name in ("a", "b", "c")]
    result = run("schedule", *written(tmp_path, "", *KAI, *jobs), "--json")
    assert len(result.json["binds"]) == 4
    assert any(
        "Job ml/c: gets no PodGroup: Jobs of KAI create at most 4 pods" in line for line in result.lines("error")
    )


def test_fewer_pods_than_completions_are_named(tmp_path: Path) -> None:
    job = batch_job("a", 2, "kai-scheduler")
    job["spec"]["completions"] = 5
    result = run("schedule", *written(tmp_path, "", *KAI, job), "--json")
    assert any("only the first 2 pods are run" in line for line in result.lines("warning"))


@pytest.mark.parametrize("command", [("simulate",), ("schedule",), ("next",), ("explain", "--all")])
def test_pods_that_are_in_no_job_are_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    words = written(tmp_path, "", *VOLCANO, pod("a", "default-scheduler"))
    (note,) = run(*command, *words).lines("note")
    assert note.startswith("Pod ml/a: is not placed: it is in no PodGroup and names the scheduler default-scheduler")


def test_a_pod_with_a_node_or_that_has_ended_is_not_named(tmp_path: Path) -> None:
    there = {**pod("a", "default-scheduler"), "status": {"phase": "Running"}}
    there["spec"] = {**there["spec"], "nodeName": NODE["metadata"]["name"]}
    ended = {**pod("b", "default-scheduler"), "status": {"phase": "Succeeded"}}
    assert run("simulate", *written(tmp_path, "", *VOLCANO, there, ended)).lines("note") == []


def test_a_simulation_calls_jobs_of_pods_by_their_pods_in_text(tmp_path: Path) -> None:
    words = written(tmp_path, "", *VOLCANO, pod("a", "volcano", cores=9))
    result = run("simulate", *words)
    assert "job ml/a: can never run" in result.err and "  ml/a  " in result.out
    assert "podgroup-" not in result.out + result.err


def test_the_class_that_kai_gives_to_pods_needs_not_exist(tmp_path: Path) -> None:
    assert run("schedule", *written(tmp_path, "", *KAI, pod("a", "kai-scheduler"))).lines("warning") == []
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
    named = {**group, "spec": {"minMember": 1, "queue": "team", "priorityClassName": "train"}}
    warnings = run("schedule", *written(tmp_path, "", *KAI, high, named)).lines("warning")
    assert any("PriorityClass train does not exist" in warning for warning in warnings)


def test_a_cron_job_without_a_time_of_creation_creates_its_jobs(tmp_path: Path) -> None:
    (job,) = volcano_job("a", 1)
    spec = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {**job["spec"], "runningEstimate": "60s"}}}
    cron = {**job, "kind": "CronJob", "spec": spec}
    found = run("simulate", *written(tmp_path, "", *VOLCANO, cron), "--until", "31m", "--json").json
    assert (found["jobs"], found["completed"]) == (6, 5)
