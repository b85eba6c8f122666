"""Which PodGroup of KAI's a pod is given: by what owns it, and what that says of its gang."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pumice.model.manifest import Decoder
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.controllers.kai_gangs import NoGang
from pumice.runtime.controllers.kai_groups import (
    GroupingSettings,
    group_for,
    member_of,
    missing_queues,
    reconcile_grouping,
)
from pumice.runtime.controllers.writes import Create, Patch, Ref, Tell

Obj = dict[str, Any]
SETTINGS = GroupingSettings()


def owner(api: str, kind: str, name: str = "o", spec: Obj | None = None, **metadata: Any) -> Obj:
    made = {"namespace": "ns", "name": name, "uid": f"uid-{name}", **metadata}
    return {"apiVersion": api, "kind": kind, "metadata": made, "spec": spec or {}}


def pod(name: str = "p", labels: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    metadata = {"namespace": "ns", "name": name, "uid": f"uid-{name}", "labels": dict(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "kai-scheduler", **spec},
    }


def wanted(of: Obj, *owners: Obj, **options: Any) -> tuple[str, int, dict[str, int], str]:
    """Name, minimum, sub-groups and class of its group, which the reader of manifests takes as it is."""
    group = group_for(of, owners, SETTINGS, **options)
    read = Decoder().decode(group)
    assert isinstance(read, PodGroup) and read.gang is not None and not read.unparsable
    subs = {each["name"]: each["minMember"] for each in group["spec"].get("subGroups", ())}
    return read.name, read.min_member, subs, read.priority_class_name


def replicas(**counts: int) -> Obj:
    return {name: {"replicas": count} for name, count in counts.items()}


PYTORCH = owner(
    "kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": replicas(Master=1, Worker=7)}, labels={"project": "x"}
)
ELASTIC = {**PYTORCH, "spec": {**PYTORCH["spec"], "elasticPolicy": {"minReplicas": 3}}}
MPI = owner(
    "kubeflow.org/v1",
    "MPIJob",
    spec={"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": replicas(Launcher=1, Worker=4)},
)
RAY = owner(
    "ray.io/v1",
    "RayCluster",
    spec={
        "workerGroupSpecs": [{"groupName": "Big", "replicas": 4, "minReplicas": 2, "numOfHosts": 2}, {"replicas": 3}]
    },
)
LWS = owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec={"leaderWorkerTemplate": {"size": 4}})
JOB_SET_SPEC = {
    "replicatedJobs": [{"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 3}}}, {"name": "b"}]
}
JOB_SET = owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec=JOB_SET_SPEC)
IN_ORDER = owner(
    "jobset.x-k8s.io/v1alpha2", "JobSet", spec={**JOB_SET_SPEC, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
)
REPLICA_SET, JOB = owner("apps/v1", "ReplicaSet", "rs"), owner("batch/v1", "Job", "j")


@pytest.mark.parametrize(
    ("of", "owners", "found"),
    [
        pytest.param(pod(), (), ("pg-p-uid-p", 1, {}, "train"), id="a pod alone"),
        pytest.param(pod(), (JOB,), ("pg-p-uid-j", 1, {}, "train"), id="each pod of a Job"),
        pytest.param(
            pod(),
            (REPLICA_SET, owner("apps/v1", "Deployment", "d")),
            ("pg-p-uid-p", 1, {}, "inference"),
            id="each pod of a Deployment",
        ),
        pytest.param(pod(), (REPLICA_SET,), ("pg-rs-uid-rs", 1, {}, "train"), id="one for a ReplicaSet"),
        pytest.param(pod(), (JOB, owner("batch/v1", "CronJob", "c")), ("pg-p-uid-j", 1, {}, "train"), id="a CronJob"),
        pytest.param(pod(), (owner("x.io/v1", "Any"),), ("pg-o-uid-o", 1, {}, "train"), id="any other owner"),
        pytest.param(pod(), (owner("kubeflow.org/v1", "Notebook"),), ("pg-o-uid-o", 1, {}, "build"), id="a Notebook"),
        pytest.param(pod(), (PYTORCH,), ("pg-o-uid-o", 8, {"master": 1, "worker": 7}, "train"), id="PyTorch"),
        pytest.param(pod(), (ELASTIC,), ("pg-o-uid-o", 3, {"master": 1, "worker": 2}, "train"), id="elastic PyTorch"),
        pytest.param(pod(), (JOB, MPI), ("pg-o-uid-o", 5, {}, "train"), id="MPI"),
        pytest.param(
            pod(), (RAY,), ("pg-o-uid-o", 8, {"headgroup": 1, "big": 4, "worker-group-1": 3}, "train"), id="Ray"
        ),
        pytest.param(
            pod(labels={"leaderworkerset.sigs.k8s.io/group-index": "2"}),
            (owner("apps/v1", "StatefulSet", "s"), LWS),
            ("pg-o-uid-o-group-2", 4, {}, "train"),
            id="a replica of a LeaderWorkerSet",
        ),
        pytest.param(pod(), (JOB, JOB_SET), ("pg-o-uid-o", 7, {}, "train"), id="a JobSet"),
        pytest.param(
            pod(labels={"jobset.sigs.k8s.io/replicatedjob-name": "a"}),
            (JOB, IN_ORDER),
            ("pg-o-uid-o-a", 6, {}, "train"),
            id="a JobSet in order",
        ),
        pytest.param(pod(labels={"spark-app-selector": "app-1"}), (), ("pg-p-uid-p-app-1", 1, {}, "train"), id="Spark"),
    ],
)
def test_the_gang_is_what_its_owner_says(of: Obj, owners: Sequence[Obj], found: tuple[Any, ...]) -> None:
    assert wanted(of, *owners) == found


def test_a_launcher_that_waits_for_the_workers_is_none_of_their_gang() -> None:
    assert wanted(pod(), MPI, launcher_there=False)[1] == 4


def test_pods_are_in_the_sub_group_of_their_role() -> None:
    worker = pod(labels={"training.kubeflow.org/replica-type": "Worker"})
    assert member_of(worker, (PYTORCH,)) == "worker"
    assert member_of(pod(labels={"ray.io/group": "Big"}), (RAY,)) == "big"
    assert member_of(pod(labels={"ray.io/group": "other"}), (RAY,)) == ""


def test_queue_class_and_place_come_from_labels_and_annotations() -> None:
    annotations = {"kai.scheduler/topology": "t", "kai.scheduler/topology-required-placement": "rack"}
    top = owner("x.io/v1", "Any", labels={"kai.scheduler/preemptibility": "non-preemptible"}, annotations=annotations)
    spec = group_for(pod(labels={"kai.scheduler/queue": "q", "priorityClassName": "high"}), (top,), SETTINGS)["spec"]
    assert (spec["queue"], spec["priorityClassName"], spec["preemptibility"]) == ("q", "high", "non-preemptible")
    assert spec["topologyConstraint"] == {"topology": "t", "requiredTopologyLevel": "rack"}
    labels = {"kai.scheduler/node-pool": "a100"}
    group = group_for(pod(labels=labels), (PYTORCH,), SETTINGS)
    assert group["spec"]["queue"] == "x-a100" and group["metadata"]["labels"]["kai.scheduler/node-pool"] == "a100"
    assert group_for(pod(priorityClassName="own"), (), SETTINGS)["spec"]["priorityClassName"] == "own"
    about = json.loads(group["metadata"]["annotations"]["kai.scheduler/top-owner-metadata"])
    assert about == {"name": "o", "uid": "uid-o", "group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"}


def test_a_group_is_made_once_and_kept_up_but_its_queue_stays() -> None:
    it = pod(labels={"training.kubeflow.org/replica-type": "worker"})
    group = group_for(it, (PYTORCH,), SETTINGS)
    ref = Ref("v1", "Pod", "ns", "p", "uid-p")
    named = {"annotations": {"pod-group-name": "pg-o-uid-o"}, "labels": {"kai.scheduler/subgroup-name": "worker"}}
    on_pod = Patch(ref, {"metadata": named})
    assert reconcile_grouping(it, None, group, SETTINGS, "worker") == [Create(group), on_pod]
    there = {**group, "metadata": {**group["metadata"], "uid": "g"}, "spec": {**group["spec"], "queue": "moved"}}
    assert reconcile_grouping(it, there, group, SETTINGS, "worker") == [on_pod]
    smaller = group_for(it, (ELASTIC,), SETTINGS)
    change, _ = reconcile_grouping(it, there, smaller, SETTINGS, "worker")
    assert isinstance(change, Patch) and change.ref.uid == "g"
    assert change.merge == {"spec": {"minMember": 3, "subGroups": smaller["spec"]["subGroups"]}}


@pytest.mark.parametrize(
    "it",
    [
        pytest.param({**pod(), "spec": {"schedulerName": "other"}}, id="of another scheduler"),
        pytest.param({**pod(), "status": {"phase": "Succeeded"}}, id="over"),
        pytest.param({**pod(), "metadata": {**pod()["metadata"], "deletionTimestamp": "now"}}, id="leaving"),
        pytest.param({**pod(), "metadata": {**pod()["metadata"], "annotations": {"pod-group-name": "g"}}}, id="named"),
    ],
)
def test_pods_that_are_not_ours_to_group_are_left_alone(it: Obj) -> None:
    assert reconcile_grouping(it, None, group_for(pod(), (), SETTINGS), SETTINGS) == []


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "found no replica specs"),
        ({"pytorchReplicaSpecs": replicas(Worker=10**9)}, "found 1000000000 pods that must start together"),
        ({"pytorchReplicaSpecs": replicas(Worker=0)}, "found 0 pods that must start together"),
    ],
)
def test_an_owner_that_makes_no_sense_is_told_on_its_pod(spec: Obj, said: str) -> None:
    with pytest.raises(NoGang, match=said) as raised:
        group_for(pod(), (owner("kubeflow.org/v1", "PyTorchJob", spec=spec),), SETTINGS)
    (told,) = reconcile_grouping(pod(), None, raised.value, SETTINGS)
    assert isinstance(told, Tell) and told.reason == "PodGrouperWarning" and said in told.message


def test_whoever_names_no_queue_has_one() -> None:
    made = [write.obj["metadata"]["name"] for write in missing_queues((), "default-queue") if isinstance(write, Create)]
    assert made == ["default-parent-queue", "default-queue"]
    assert missing_queues(("default-queue",), "default-queue") == []
