"""Pods of KAI in files get the PodGroups that KAI's pod-grouper would make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod
from pumice.model.queue import Queue
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.files.manifests import Manifests, load_manifests
from pumice.runtime.problems.problem import Severity

Obj = dict[str, Any]


def obj(api: str, kind: str, name: str, spec: Obj | None = None, owner: Obj | None = None, **metadata: Any) -> Obj:
    found: Obj = {"namespace": "ns", "name": name, **metadata}
    if owner is not None:
        ref = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        found["ownerReferences"] = [{**ref, "uid": owner["metadata"].get("uid", ""), "controller": True}]
    return {"apiVersion": api, "kind": kind, "metadata": found, "spec": spec or {}}


def pod(name: str, owner: Obj | None = None, **metadata: Any) -> Obj:
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "i"}]}
    return obj("v1", "Pod", name, spec, owner, **metadata)


def load(tmp_path: Path, *objects: Any) -> Manifests:
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return load_manifests([tmp_path])


def groups(found: Manifests) -> dict[str, PodGroup]:
    return {each.name: each for each in found.objects if isinstance(each, PodGroup)}


def members(found: Manifests) -> dict[str, str]:
    pods = (each for each in found.objects if isinstance(each, Pod))
    return {each.name: each.annotations.get(GROUP_NAME_ANNOTATION, "") for each in pods}


TRAIN = obj("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", labels={"kai.scheduler/queue": "q"})
SETS = obj(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    "t",
    {"replicatedJobs": [{"name": "node", "template": {"spec": {"parallelism": 2}}}]},
    TRAIN,
)
JOB = obj("batch/v1", "Job", "t-node-0", {}, SETS)
LABELS = {"jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": "0"}


def test_pods_are_grouped_by_owners_in_any_order(tmp_path: Path) -> None:
    pods = [pod(f"p{i}", JOB, labels=LABELS) for i in range(2)]
    found = load(tmp_path, *pods, JOB, SETS, TRAIN)
    (group,) = groups(found).values()
    assert group.queue == "q" and group.gang is not None and group.gang.min_sub_group == 1
    assert [(each.name, each.min_member) for each in group.gang.sub_groups] == [("node", 0), ("node-replica-0", 2)]
    assert set(members(found).values()) == {group.name}
    # Kinds that were read as owners are not reported as unsupported.
    assert [each.severity for each in found.problems if "not supported" in each.what] == []


@pytest.mark.parametrize(
    ("namespace", "more", "pods"),
    [
        pytest.param("ns", {}, 3, id="its own"),
        pytest.param("ns", {"annotations": {"pod-group-name": "g"}}, 3, id="one that has a group already"),
        pytest.param("other", {}, 2, id="that of an equal job in another namespace"),
    ],
)
def test_a_launcher_that_comes_late_counts_once_it_is_there(
    tmp_path: Path, namespace: str, more: Obj, pods: int
) -> None:
    specs = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}
    spec = {"mpiReplicaSpecs": specs, "launcherCreationPolicy": "WaitForWorkersReady"}
    job = obj("kubeflow.org/v2beta1", "MPIJob", "late", spec, uid="late")
    labels = {"training.kubeflow.org/job-name": "late", "training.kubeflow.org/job-role": "launcher"}
    launcher = pod("late-launcher", labels=labels, **more)
    launcher["metadata"]["namespace"] = namespace
    found = load(tmp_path, job, pod("late-worker-0", job), launcher)
    assert groups(found)["pg-late-late"].min_member == pods


def test_pods_keep_what_they_have_and_others_are_not_touched(tmp_path: Path) -> None:
    named = pod("named", annotations={"pod-group-name": "g"})
    other = obj("v1", "Pod", "other", {"schedulerName": "default-scheduler", "containers": []})
    found = load(tmp_path, pod("a", uid="1"), pod("b"), named, other)
    assert members(found) == {"a": "pg-a-1", "b": "pg-b-pod", "named": "g", "other": ""}
    assert {each.name: each.uid for each in found.objects if isinstance(each, Pod)}["b"] == "ns/b"


def test_a_group_that_is_there_is_kept(tmp_path: Path) -> None:
    mine = {"minMember": 2, "queue": "mine"}
    found = load(tmp_path, pod("a", uid="1"), obj("scheduling.run.ai/v2alpha2", "PodGroup", "pg-a-1", mine))
    assert groups(found)["pg-a-1"].queue == "mine" and members(found) == {"a": "pg-a-1"}


def test_the_default_queue_is_made_if_a_pod_runs_in_it(tmp_path: Path) -> None:
    queues = [each.name for each in load(tmp_path, pod("a")).objects if isinstance(each, Queue)]
    assert sorted(queues) == ["default-parent-queue", "default-queue"]


@pytest.mark.parametrize(
    "wrong", [{"spec": []}, {"metadata": {"name": "x", "labels": []}}, {"spec": {"replicatedJobs": 3}}]
)
def test_an_owner_that_makes_no_sense_leaves_its_pod_alone_and_is_reported(tmp_path: Path, wrong: Obj) -> None:
    found = load(tmp_path, pod("a", SETS, labels=LABELS), {**SETS, **wrong}, pod("b"))
    assert members(found)["b"].startswith("pg-b") and "a" in members(found)
    assert any(each.severity is Severity.ERROR for each in found.problems) or members(found)["a"]


@pytest.mark.parametrize("wrong", [{"namespace": {"a": None}}, {"namespace": ["ns"]}, {"uid": {}}])
def test_an_owner_whose_names_are_no_text_owns_nothing(tmp_path: Path, wrong: Obj) -> None:
    owner = obj("batch/v1", "Job", "t", {}, **wrong)
    found = load(tmp_path, owner, pod("p"))
    assert [each.name for each in found.objects if isinstance(each, Pod)] == ["p"]


def defaults_of(*kinds: Obj, name: str = "defaults") -> Obj:
    return obj("v1", "ConfigMap", name) | {"data": {"types": json.dumps(kinds)}}


def test_a_config_map_gives_the_class_of_a_kind_of_owner(tmp_path: Path) -> None:
    defaults = defaults_of({"typeName": "TrainJob", "group": "trainer.kubeflow.org", "priorityName": "of-train-jobs"})
    known = obj("scheduling.k8s.io/v1", "PriorityClass", "of-train-jobs") | {"value": 7}
    found = load(tmp_path, defaults, TRAIN, SETS, JOB, pod("p", JOB, labels=LABELS), known)
    (group,) = groups(found).values()
    assert group.priority_class_name == "of-train-jobs"
    assert not [each for each in found.problems if each.severity is not Severity.NOTE]


def test_classes_that_are_in_no_file_are_passed_over_where_there_are_others(tmp_path: Path) -> None:
    named = pod("p", JOB, labels={**LABELS, "priorityClassName": "gone"})
    (group,) = groups(load(tmp_path, TRAIN, SETS, JOB, named)).values()
    assert group.priority_class_name == "gone"
    other = obj("scheduling.k8s.io/v1", "PriorityClass", "other") | {"value": 7}
    (group,) = groups(load(tmp_path, TRAIN, SETS, JOB, named, other)).values()
    assert group.priority_class_name == "train"


def test_a_second_config_map_and_one_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    wrong, right = defaults_of({"typeName": 1}, name="a"), defaults_of({"typeName": "Job", "priorityName": "x"})
    found = load(tmp_path, wrong, right, TRAIN, SETS, JOB, pod("p", JOB, labels=LABELS))
    (group,) = groups(found).values()
    assert group.priority_class_name == "train"
    texts = [each.what for each in found.problems]
    assert "ConfigMap ns/defaults has defaults of kinds too; using those of ns/a" in texts
    assert any(text.startswith("ConfigMap ns/a: data.types[0].typeName: found 1") for text in texts)
