"""One job has one reason: each command names the same job, code and sentence for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.kit import run

Raw = dict[str, Any]
NODE: Raw = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}},
}
VOLCANO = [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"}}]
_AMOUNTS = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
_KAI: Raw = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"}}
KAI = [{**_KAI, "spec": {"resources": dict.fromkeys(("cpu", "memory", "gpu"), _AMOUNTS)}}]


def pod_spec(scheduler: str, cores: int = 1) -> Raw:
    requests = {"cpu": str(cores), "memory": "1Gi"}
    return {
        "schedulerName": scheduler,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
    }


def volcano_job(name: str, pods: int, cores: int = 1) -> list[Raw]:
    task = {"name": "w", "replicas": pods, "template": {"spec": pod_spec("volcano", cores)}}
    spec = {"queue": "team", "schedulerName": "volcano", "minAvailable": pods, "tasks": [task]}
    metadata = {"name": name, "namespace": "ml"}
    return [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}]


def gang(version: str, annotation: str, scheduler: str, name: str, pods: int, cores: int = 1) -> list[Raw]:
    metadata = {"name": name, "namespace": "ml"}
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": metadata}
    made: list[Raw] = [{**group, "spec": {"minMember": pods, "queue": "team"}}]
    for i in range(pods):
        of_pod = {"name": f"{name}-{i}", "namespace": "ml", "annotations": {annotation: name}}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": of_pod, "spec": pod_spec(scheduler, cores)})
    return made


def kai_gang(name: str, pods: int, cores: int = 1) -> list[Raw]:
    return gang("scheduling.run.ai/v2alpha2", "pod-group-name", "kai-scheduler", name, pods, cores)


def volcano_gang(name: str, pods: int, cores: int = 1) -> list[Raw]:
    return gang("scheduling.volcano.sh/v1beta1", "scheduling.k8s.io/group-name", "volcano", name, pods, cores)


def written(folder: Path, conf: str, *objects: Raw) -> tuple[object, ...]:
    """Write a cluster and a policy, and return the words of a command that name them."""
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *objects]}))
    if not conf:
        return (folder / "all.json",)
    (folder / "policy.conf").write_text(conf)
    return folder / "all.json", "--conf", folder / "policy.conf"


def reasons(words: tuple[object, ...], job: str) -> dict[str, str]:
    """Return by command the sentence about a job, "" where it is not named."""
    listed = [each for each in run("explain", "--all", *words, "--json").json["waiting"] if job in each["jobs"]]
    (why,) = run("explain", job, *words, "--no-ways", "--json").json["reason"]
    simulated = run("simulate", *words, "--json").json
    alone = [each["why"] for each in simulated["never_run"] if each["job"] == job]
    return {
        "schedule": run("schedule", *words, "--json").json["hints"].get(job, ""),
        "next": _first(run("next", *words, "--json").json["waiting"], job, "sentence"),
        "explain --all": listed[0]["example"] if listed else "",
        "explain": why["sentence"],
        "simulate": _first(simulated["waiting"], job, "why"),
        "simulate, alone": alone[0] if alone else "",
    }


def _first(listed: list[Raw], job: str, field: str) -> str:
    return next((each[field] for each in listed if each["job"] == job), "")


@pytest.mark.parametrize(
    ("objects", "conf", "scheduler", "ours"),
    [
        pytest.param([*KAI, *kai_gang("a", 2)], "", "", "", id="kai-under-kai"),
        pytest.param(
            [*VOLCANO, *KAI, *kai_gang("a", 2)],
            "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n",
            "kai-scheduler",
            "volcano",
            id="kai-under-volcano",
        ),
        pytest.param(
            [*VOLCANO, *kai_gang("a", 2)], "dialect: pumice\n", "kai-scheduler", "volcano", id="kai-under-pumice"
        ),
        pytest.param(
            [*VOLCANO, *volcano_gang("a", 2)], "dialect: kai\n", "volcano", "kai-scheduler", id="gang-under-kai"
        ),
        pytest.param(
            [*VOLCANO, *volcano_job("a", 2)], "dialect: kai\n", "volcano", "kai-scheduler", id="job-under-kai"
        ),
    ],
)
def test_a_job_of_another_scheduler_says_so_in_each_command(
    tmp_path: Path, objects: list[Raw], conf: str, scheduler: str, ours: str
) -> None:
    words = written(tmp_path, conf, *objects)
    if not scheduler:
        assert len(run("schedule", *words, "--json").json["binds"]) == 2
        return
    expected = f"its pods name the scheduler {scheduler}; Pumice places those of {ours}"
    assert set(reasons(words, "ml/a").values()) == {expected}


def test_what_pods_of_another_scheduler_ask_for_is_counted(tmp_path: Path) -> None:
    words = written(tmp_path, "dialect: kai\n", *VOLCANO, *volcano_gang("a", 2, cores=3))
    (found,) = run("explain", "--all", *words, "--json").json["waiting"]
    assert (found["code"], found["cores"]) == ("Missing", 6.0)
