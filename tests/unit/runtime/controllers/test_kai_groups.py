"""Which PodGroup of KAI's a pod is given: by what owns it, and what that says of its gang."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pumice.model.manifest import Decoder
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.controllers.kai.groups import (
    GroupAssignment,
    GroupingSettings,
    group_for,
    missing_queues,
    reconcile_grouping,
)
from pumice.runtime.controllers.kai.plan import NoGang
from pumice.runtime.controllers.kai.rules import PodContext
from pumice.runtime.controllers.writes import Create, Emit, Patch, Ref

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


def grouped(of: Obj, *owners: Obj, **seen: Any) -> GroupAssignment:
    found = group_for(of, PodContext(owners, **seen), SETTINGS)
    assert found is not None
    return found


def spec_of(of: Obj, *owners: Obj, **seen: Any) -> Obj:
    spec: Obj = grouped(of, *owners, **seen).group["spec"]
    return spec


def wanted(of: Obj, *owners: Obj, **seen: Any) -> tuple[str, int, dict[str, int], str]:
    """Name, minimum, sub-groups and class of its group, which the reader of manifests takes as it is."""
    group = grouped(of, *owners, **seen).group
    read = Decoder().decode(group)
    assert isinstance(read, PodGroup) and read.gang is not None and not read.unparsable
    subs = {each["name"]: each.get("minMember", each.get("minSubGroup")) for each in group["spec"].get("subGroups", ())}
    minimum = read.min_member if read.gang.min_sub_group is None else read.gang.min_sub_group
    return read.name, minimum, subs, read.priority_class_name


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
NO_TOPOLOGY = {"metadata": {"annotations": {"kai.scheduler/topology-required-placement": "rack"}}}
LWS = owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec={"leaderWorkerTemplate": {"size": 4}})
JOB_SET_SPEC = {
    "replicatedJobs": [{"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 3}}}, {"name": "b"}]
}
JOB_SET = owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec=JOB_SET_SPEC)
IN_ORDER = owner(
    "jobset.x-k8s.io/v1alpha2", "JobSet", spec={**JOB_SET_SPEC, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
)
REPLICA_SET, JOB = owner("apps/v1", "ReplicaSet", "rs"), owner("batch/v1", "Job", "j")


REPLICATED = {"jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "1"}
JOB_SET_GROUPS = {"a": 2, "a-replica-0": 3, "a-replica-1": 3, "b": 1, "b-replica-0": 1}
TRAIN_JOB = owner("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", labels={"kai.scheduler/queue": "q"})
REVISION = owner("serving.knative.dev/v1", "Revision", "r", annotations={"autoscaling.knative.dev/min-scale": "3"})
AML = owner("amlarc.azureml.com/v1alpha1", "AmlJob", spec={"job": {"options": {"envs": {"AZUREML_NODE_COUNT": 4}}}})
SERVICE = owner("serving.knative.dev/v1", "Service", "s")


def lws_pod(index: int, **spec: Any) -> Obj:
    prefix = "leaderworkerset.sigs.k8s.io"
    return pod(labels={f"{prefix}/group-index": "2", f"{prefix}/worker-index": str(index)}, **spec)


def with_spec(obj: Obj, spec: Obj) -> Obj:
    return {**obj, "spec": spec}


def with_annotations(obj: Obj, **annotations: str) -> Obj:
    named = {f"kai.scheduler/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {**obj, "metadata": {**obj["metadata"], "annotations": named}}


@pytest.mark.parametrize(
    ("of", "owners", "found"),
    [
        pytest.param(pod(), (), ("pg-p-uid-p", 1, {}, "train"), id="a pod alone"),
        pytest.param(pod(), (JOB,), ("pg-j-uid-j", 1, {}, "train"), id="one for a Job"),
        pytest.param(
            pod(),
            (with_annotations(JOB, batch_min_member="4"),),
            ("pg-j-uid-j", 4, {}, "train"),
            id="a Job with a minimum",
        ),
        pytest.param(
            pod(),
            (REPLICA_SET, owner("apps/v1", "Deployment", "d")),
            ("pg-p-uid-p", 1, {}, "inference"),
            id="each pod of a Deployment",
        ),
        pytest.param(pod(), (REPLICA_SET,), ("pg-rs-uid-rs", 1, {}, "train"), id="one for a ReplicaSet"),
        pytest.param(
            pod(), (JOB, owner("batch/v1", "CronJob", "c")), ("pg-j-uid-j", 1, {}, "train"), id="a run of a CronJob"
        ),
        pytest.param(pod(), (owner("x.io/v1", "Any"),), ("pg-o-uid-o", 1, {}, "train"), id="any other owner"),
        pytest.param(
            pod(), (PYTORCH, owner("x.io/v1", "Any", "x")), ("pg-x-uid-x", 1, {}, "train"), id="below another owner"
        ),
        pytest.param(pod(), (owner("kubeflow.org/v1", "Notebook"),), ("pg-o-uid-o", 1, {}, "build"), id="a Notebook"),
        pytest.param(pod(), (PYTORCH,), ("pg-o-uid-o", 8, {"master": 1, "worker": 7}, "train"), id="PyTorch"),
        pytest.param(pod(), (ELASTIC,), ("pg-o-uid-o", 3, {"master": 1, "worker": 2}, "train"), id="elastic PyTorch"),
        pytest.param(pod(), (JOB, MPI), ("pg-o-uid-o", 5, {}, "train"), id="MPI"),
        pytest.param(
            pod(), (RAY,), ("pg-o-uid-o", 8, {"headgroup": 1, "big": 4, "worker-group-1": 3}, "train"), id="Ray"
        ),
        pytest.param(
            pod(),
            (JOB, owner("ray.io/v1", "RayJob", spec={"rayClusterSpec": RAY["spec"]})),
            ("pg-o-uid-o", 8, {"headgroup": 1, "big": 4, "worker-group-1": 3}, "train"),
            id="the submitter of a RayJob",
        ),
        pytest.param(
            lws_pod(1),
            (owner("apps/v1", "StatefulSet", "s"), LWS),
            ("pg-o-uid-o-group-2", 4, {"leader": 1, "workers": 3}, "train"),
            id="a replica of a LeaderWorkerSet",
        ),
        pytest.param(pod(labels=REPLICATED), (JOB, JOB_SET), ("pg-o-uid-o", 2, JOB_SET_GROUPS, "train"), id="a JobSet"),
        pytest.param(
            pod(labels=REPLICATED),
            (JOB, IN_ORDER),
            ("pg-o-uid-o", 1, JOB_SET_GROUPS, "train"),
            id="a JobSet in order",
        ),
        pytest.param(
            pod(labels=REPLICATED),
            (JOB, with_annotations(IN_ORDER, batch_min_member="9")),
            ("pg-o-uid-o", 2, JOB_SET_GROUPS, "train"),
            id="a JobSet with a minimum above its jobs",
        ),
        pytest.param(
            pod(labels=REPLICATED),
            (JOB, JOB_SET, TRAIN_JOB),
            ("pg-o-uid-o", 2, JOB_SET_GROUPS, "train"),
            id="a TrainJob",
        ),
        pytest.param(
            pod(), (owner("argoproj.io/v1alpha1", "Workflow"),), ("pg-p-uid-p", 1, {}, "train"), id="a step of Argo"
        ),
        pytest.param(
            pod(),
            (owner("tekton.dev/v1", "TaskRun", "r"), owner("tekton.dev/v1", "PipelineRun")),
            ("pg-o-uid-o", 1, {}, "train"),
            id="one for a run of Tekton",
        ),
        pytest.param(pod(), (AML,), ("pg-o-uid-o", 4, {}, "train"), id="an AmlJob"),
        pytest.param(
            pod("run-0-1"), (owner("run.ai/v1", "RunaiJob"),), ("pg-run-0-uid-o", 1, {}, "train"), id="RunaiJob"
        ),
        pytest.param(
            pod(), (owner("egx.nvidia.io/v1", "SPOTRequest"),), ("pg-o-uid-o", 1, {}, "inference"), id="a SPOTRequest"
        ),
        pytest.param(
            pod(), (REPLICA_SET, REVISION, SERVICE), ("pg-r-uid-r", 3, {}, "inference"), id="a revision of Knative"
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
    assert grouped(worker, PYTORCH).member == "worker"
    assert grouped(pod(labels={"ray.io/group": "Big"}), RAY).member == "big"
    assert grouped(pod(labels={"ray.io/group": "other"}), RAY).member == ""
    assert grouped(pod(labels=REPLICATED), JOB, JOB_SET).member == "a-replica-1"
    assert grouped(lws_pod(0), LWS).member == "leader"


def test_a_wrapper_passes_its_labels_to_the_workload_in_it() -> None:
    assert spec_of(pod(labels=REPLICATED), JOB, JOB_SET, TRAIN_JOB)["queue"] == "q"
    own = {**JOB_SET, "metadata": {**JOB_SET["metadata"], "labels": {"kai.scheduler/queue": "own"}}}
    assert spec_of(pod(labels=REPLICATED), JOB, own, TRAIN_JOB)["queue"] == "own"


@pytest.mark.parametrize(
    ("of", "owners"),
    [
        pytest.param(with_annotations(pod(), skip_podgrouper="true"), (JOB,), id="the pod"),
        pytest.param(pod(), (JOB, with_annotations(JOB_SET, skip_podgrouper="true")), id="an owner"),
    ],
)
def test_no_group_is_made_for_pods_that_ask_for_none(of: Obj, owners: Sequence[Obj]) -> None:
    found = group_for(of, PodContext(owners), SETTINGS)
    assert found is None and reconcile_grouping(of, None, found, SETTINGS) == []


def test_groups_of_an_earlier_version_go_on_being_used() -> None:
    old = {"pg-p-uid-j": {"spec": {"minMember": 1}}, "pg-o-uid-o-a": {"spec": {"minMember": 6}}}
    many = with_annotations(JOB, batch_min_member="4")
    assert wanted(pod(), many, find_group=old.get)[:2] == ("pg-p-uid-j", 1)
    assert wanted(pod(labels=REPLICATED), JOB, IN_ORDER, find_group=old.get)[:3] == ("pg-o-uid-o-a", 1, {})
    new = {"pg-o-uid-o": {"spec": {"subGroups": [{"name": "a"}]}}}
    assert wanted(pod(labels=REPLICATED), JOB, JOB_SET, find_group=new.get)[2] == JOB_SET_GROUPS
    flat = {"pg-o-uid-o": {"spec": {"minMember": 8}}}
    assert wanted(pod(), RAY, find_group=flat.get)[1:3] == (8, {})
    assert wanted(pod(), RAY, find_group=new.get)[2] == {"headgroup": 1, "big": 4, "worker-group-1": 3}


def test_a_leader_that_workers_wait_for_starts_alone() -> None:
    spec = {**LWS["spec"], "startupPolicy": "LeaderReady"}
    ready = {**LWS, "spec": spec}
    assert wanted(lws_pod(0), ready)[1:3] == (1, {"leader": 1})
    assert wanted(lws_pod(0, nodeName="n"), ready)[1:3] == (4, {"leader": 1, "workers": 3})
    assert wanted(lws_pod(2), ready)[1:3] == (4, {"leader": 1, "workers": 3})


@pytest.mark.parametrize(
    ("size", "policy", "groups", "members"),
    [
        # A leader beside full segments is an extra pod of the first one.
        pytest.param(
            5,
            {"subGroupSize": 2},
            {"segment-0": 2, "segment-1": 2, "leader": 1, "workers": 2},
            ["leader", "workers", "workers", "segment-1", "segment-1"],
            id="with the leader as an extra",
        ),
        pytest.param(
            5,
            {"subGroupSize": 3},
            {"segment-0": 2, "segment-1": 2, "leader": 1, "workers": 2},
            ["leader", "workers", "workers", "segment-1", "segment-1"],
            id="with the leader in the first",
        ),
        pytest.param(
            5,
            {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"},
            {"leader": 1, "segment-0": 2, "segment-1": 2},
            ["leader", "segment-0", "segment-0", "segment-1", "segment-1"],
            id="without the leader",
        ),
    ],
)
def test_segments_of_a_leader_worker_set(size: int, policy: Obj, groups: dict[str, int], members: list[str]) -> None:
    template = {"size": size, "subGroupPolicy": policy}
    owner_ = {**LWS, "spec": {"leaderWorkerTemplate": template}}
    assert wanted(lws_pod(0), owner_)[2] == groups
    assert [grouped(lws_pod(i), owner_).member for i in range(size)] == members


@pytest.mark.parametrize("policy", [{}, {"subGroupPolicyType": "LeaderExcluded"}], ids=["with the leader", "without"])
def test_a_pod_beyond_the_size_of_its_leader_worker_set_is_in_no_segment(policy: Obj) -> None:
    segmented = {**LWS, "spec": {"leaderWorkerTemplate": {"size": 5, "subGroupPolicy": {"subGroupSize": 2, **policy}}}}
    with pytest.raises(NoGang, match="worker-index: found 5, wanted an integer below 5"):
        grouped(lws_pod(5), segmented)


def test_segments_of_pytorch_workers_beyond_the_minimum_are_optional() -> None:
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "5"}
    it = with_annotations(pod(labels=labels), segment_size="3", topology="t")
    it["metadata"]["annotations"]["kai.scheduler/segment-topology-required-placement"] = "rack"
    found = grouped(it, ELASTIC)
    subs = {each["name"]: each for each in found.group["spec"]["subGroups"]}
    assert found.member == "worker-1" and subs["worker"] == {"name": "worker", "minSubGroup": 3}
    assert [subs[f"worker-{i}"]["minMember"] for i in range(3)] == [3, 0, 0]
    assert subs["worker-2"]["topologyConstraint"] == {"topology": "t", "requiredTopologyLevel": "rack"}


def test_replicated_jobs_say_where_each_replica_goes_and_what_is_enough() -> None:
    said = {f"kai.scheduler/{key}": text for key, text in (("topology", "t"), ("topology-preferred-placement", "rack"))}
    said["kai.scheduler/batch-min-member"] = "2"
    job = {"name": "a", "template": {"metadata": {"annotations": said}, "spec": {"parallelism": 3}}}
    job_set = owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": [job]})
    labels = {**REPLICATED, "jobset.sigs.k8s.io/job-index": "0"}
    leaf = spec_of(pod(labels=labels), JOB, job_set)["subGroups"][1]
    assert leaf == {
        "name": "a-replica-0",
        "minMember": 2,
        "parent": "a",
        "topologyConstraint": {"topology": "t", "preferredTopologyLevel": "rack"},
    }


def test_delay_and_grace_come_from_the_top_owner_down() -> None:
    top = with_annotations(JOB_SET, preemption_delay="-5m", staleness_grace_period="-1s")
    it = with_annotations(pod(labels=REPLICATED), preemption_delay="2m", staleness_grace_period="1m")
    spec = spec_of(it, JOB, top)
    assert (spec["preemptionDelay"], spec["stalenessGracePeriod"]) == ("2m", "-1s")


POD_GANG = {
    **owner("scheduler.grove.io/v1alpha1", "PodGang", "gang", annotations={"grove.io/topology-name": "t"}),
    "spec": {
        "priorityClassName": "high",
        "podgroups": [
            {"name": "prefill", "minReplicas": 2, "podReferences": [{"namespace": "ns", "name": "p"}]},
            {"name": "decode", "minReplicas": 1, "podReferences": []},
            {"name": "router", "minReplicas": 1, "podReferences": []},
        ],
        "topologyConstraintGroupConfigs": [
            {
                "name": "engine",
                "podGroupNames": ["prefill", "decode"],
                "topologyConstraint": {"packConstraint": {"required": "rack"}},
            }
        ],
    },
}


def test_a_gang_of_grove_is_what_its_pod_gang_says() -> None:
    clique_set = owner("grove.io/v1alpha1", "PodCliqueSet")
    dynamo = owner("nvidia.com/v1beta1", "DynamoGraphDeployment", "d", labels={"kai.scheduler/queue": "q"})
    chain = (owner("grove.io/v1alpha1", "PodClique", "c"), clique_set, dynamo)
    groups = {"engine": 2, "prefill": 2, "decode": 1, "router": 1}
    assert wanted(pod(), *chain, pod_gang=POD_GANG) == ("pg-gang-uid-gang", 4, groups, "high")
    found = grouped(pod(), *chain, pod_gang=POD_GANG)
    assert found.member == "prefill" and found.group["spec"]["queue"] == "q"
    engine, prefill, _, router = found.group["spec"]["subGroups"]
    assert engine["topologyConstraint"] == {"topology": "t", "requiredTopologyLevel": "rack"}
    assert prefill["parent"] == "engine" and "parent" not in router
    with pytest.raises(NoGang, match="found no PodGang"):
        grouped(pod(), *chain)


def test_queue_class_and_place_come_from_labels_and_annotations() -> None:
    annotations = {"kai.scheduler/topology": "t", "kai.scheduler/topology-required-placement": "rack"}
    top = owner("x.io/v1", "Any", labels={"kai.scheduler/preemptibility": "non-preemptible"}, annotations=annotations)
    spec = spec_of(pod(labels={"kai.scheduler/queue": "q", "priorityClassName": "high"}), top)
    assert (spec["queue"], spec["priorityClassName"], spec["preemptibility"]) == ("q", "high", "non-preemptible")
    assert spec["topologyConstraint"] == {"topology": "t", "requiredTopologyLevel": "rack"}
    labels = {"kai.scheduler/node-pool": "a100"}
    group = grouped(pod(labels=labels), PYTORCH).group
    assert group["spec"]["queue"] == "x-a100" and group["metadata"]["labels"]["kai.scheduler/node-pool"] == "a100"
    assert spec_of(pod(priorityClassName="own"))["priorityClassName"] == "own"
    about = json.loads(group["metadata"]["annotations"]["kai.scheduler/top-owner-metadata"])
    assert about == {"name": "o", "uid": "uid-o", "group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"}


def test_a_group_is_made_once_and_kept_up_but_its_queue_stays() -> None:
    it = pod(labels={"training.kubeflow.org/replica-type": "worker"})
    found = grouped(it, PYTORCH)
    group = found.group
    ref = Ref("v1", "Pod", "ns", "p", "uid-p")
    named = {"annotations": {"pod-group-name": "pg-o-uid-o"}, "labels": {"kai.scheduler/subgroup-name": "worker"}}
    on_pod = Patch(ref, {"metadata": named})
    assert reconcile_grouping(it, None, found, SETTINGS) == [Create(group), on_pod]
    there = {**group, "metadata": {**group["metadata"], "uid": "g"}, "spec": {**group["spec"], "queue": "moved"}}
    assert reconcile_grouping(it, there, found, SETTINGS) == [on_pod]
    smaller = grouped(it, ELASTIC)
    change, _ = reconcile_grouping(it, there, smaller, SETTINGS)
    assert isinstance(change, Patch) and change.ref.uid == "g"
    assert change.merge == {"spec": {"minMember": 3, "subGroups": smaller.group["spec"]["subGroups"]}}


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
    assert reconcile_grouping(it, None, grouped(pod()), SETTINGS) == []


@pytest.mark.parametrize(
    ("invalid", "said"),
    [
        (with_spec(PYTORCH, {}), "found no replica specs"),
        (
            with_spec(PYTORCH, {"pytorchReplicaSpecs": replicas(Worker=10**9)}),
            "found 1000000000 pods that must start together",
        ),
        (
            with_spec(PYTORCH, {"pytorchReplicaSpecs": replicas(Worker=0)}),
            "found 0 pods that must start together",
        ),
        (with_annotations(JOB, batch_min_member="-1"), "batch-min-member: found '-1', wanted an integer from 1"),
        (with_spec(JOB_SET, {}), "found no replicatedJobs"),
        (with_spec(JOB_SET, {"replicatedJobs": [{"name": "a", "replicas": 10**9}]}), "found 1000000001 groups of pods"),
        (JOB_SET, "found no label jobset.sigs.k8s.io/replicatedjob-name"),
        (with_spec(LWS, {}), "leaderWorkerTemplate.size: found none"),
        (
            with_spec(LWS, {**LWS["spec"], "startupPolicy": "Never"}),
            "startupPolicy: found 'Never', wanted LeaderCreated or LeaderReady",
        ),
        (with_annotations(LWS, segment_size="5"), "size of a segment: found 5, wanted 2 to 4"),
        (owner("serving.knative.dev/v1", "Service"), "found no Revision among its owners"),
        (
            with_spec(RAY, {"workerGroupSpecs": [{"replicas": 1}, {"replicas": 2, "minReplicas": 3}]}),
            "minReplicas: found 3, wanted at most 2, the replicas of the group",
        ),
        (
            with_spec(RAY, {"headGroupSpec": {"template": NO_TOPOLOGY}}),
            "headGroupSpec: found the annotation kai.scheduler/topology-required-placement, wanted kai",
        ),
        (
            with_spec(RAY, {"workerGroupSpecs": [{"replicas": 1, "template": NO_TOPOLOGY}]}),
            r"workerGroupSpecs\[0\]: found the annotation",
        ),
    ],
)
def test_an_unusable_owner_is_reported_on_its_pod(invalid: Obj, said: str) -> None:
    with pytest.raises(NoGang, match=said) as raised:
        grouped(pod(), invalid)
    (reports,) = reconcile_grouping(pod(), None, raised.value, SETTINGS)
    assert isinstance(reports, Emit) and reports.reason == "PodGrouperWarning" and re.search(said, reports.message)


def test_whoever_names_no_queue_has_one() -> None:
    made = [write.obj["metadata"]["name"] for write in missing_queues((), "default-queue") if isinstance(write, Create)]
    assert made == ["default-parent-queue", "default-queue"]
    assert missing_queues(("default-queue",), "default-queue") == []
