"""Jobs from decoded objects, and what a controller makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.manifest import Decoder, ManifestError
from pumice.model.manifest.defaults.priorities import Priorities
from pumice.model.manifest.job_fields import check_order
from pumice.model.manifest.jobs import is_bare, podgroup_for_bare_pod, podgroup_of, pods_of, pods_of_batch_job
from pumice.model.manifest.reading.fields import FieldError
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass
from pumice.model.resources import Resource
from pumice.model.workloads.job import JOB_PODS_MAX, BatchJob, LifecyclePolicy, VolcanoJob
from pumice.model.workloads.podgroup import NetworkTopology
from pumice.model.workloads.subgroups import sub_job_of

Obj = dict[str, Any]


def template(cpu: str = "1", priority_class: str = "", labels: Obj | None = None) -> Obj:
    spec: Obj = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"metadata": {"labels": labels or {}, "annotations": {"note": "kept"}}, "spec": spec}


def task(name: str, replicas: int, cpu: str = "1", priority_class: str = "", **other: Any) -> Obj:
    return {"name": name, "replicas": replicas, "template": template(cpu, priority_class), **other}


def job(*tasks: Obj, metadata: Obj | None = None, **spec: Any) -> Obj:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns", **(metadata or {})},
        "spec": {"tasks": list(tasks), **spec},
    }


def decoded(raw: Obj) -> VolcanoJob:
    found = Decoder().decode(raw)
    assert isinstance(found, VolcanoJob)
    return found


def test_defaults_are_the_webhooks() -> None:
    found = decoded(job({"replicas": 2, "template": template()}, {"replicas": 3, "minAvailable": 1, "template": None}))
    assert [each.name for each in found.tasks] == ["default0", "default1"]
    assert (found.min_available, found.replicas, found.queue, found.max_retry) == (3, 5, "default", 3)
    assert found.tasks[0].template.scheduler_name == "volcano"


def test_everything_that_a_job_says() -> None:
    found = decoded(
        job(
            task("w", 1, dependsOn={"name": ["m"], "iteration": "any"}, topologyPolicy="restricted"),
            task("m", 1),
            queue="q",
            priorityClassName="high",
            minSuccess=1,
            maxRetry=5,
            ttlSecondsAfterFinished=60,
            runningEstimate="1h30m",
            schedulerName="mine",
            networkTopology={"highestTierAllowed": 1},
            policies=[{"event": "PodEvicted", "events": ["PodFailed"], "action": "RestartJob", "timeout": "10s"}],
        )
    )
    assert (found.queue, found.min_success, found.max_retry, found.ttl_s, found.running_estimate_s) == (
        "q",
        1,
        5,
        60,
        5400.0,
    )
    assert found.topology == NetworkTopology("hard", 1)
    assert found.policies == (LifecyclePolicy("RestartJob", ("PodEvicted", "PodFailed"), None, 10.0),)
    assert (found.tasks[0].depends_on, found.tasks[0].depends_on_any) == (("m",), True)
    assert found.tasks[0].template.scheduler_name == "mine"
    assert found.tasks[0].template.spec.priority_class_name == "high"
    assert found.tasks[0].template.spec is found.tasks[1].template.spec


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (
            job(task("a", JOB_PODS_MAX + 1)),
            "spec.tasks[0].replicas: found 100001, wanted at most 100000 pods of one job",
        ),
        (job(task("a", JOB_PODS_MAX), task("b", 1)), "spec.tasks: found 100001 replicas"),
        (job(task("a", -1)), "spec.tasks[0].replicas: found -1"),
        (job(task("a", 1), task("a", 1)), "spec.tasks[1].name: found a a second time"),
        (job(task("a", 1, minAvailable=2)), "spec.tasks[0].minAvailable: found 2, wanted an integer from 0 to 1"),
        (job(task("a", 1), minAvailable=2), "spec.minAvailable: found 2, wanted at most the 1 replicas of all tasks"),
        (job(task("a", 1, dependsOn={"name": ["z"]})), "spec.tasks[0].dependsOn.name: found z, wanted one of a"),
        (job(task("a", 1, cpu="-1")), "spec.tasks[0].template.spec.containers[0].resources.requests.cpu"),
        (job(task("a", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 3})), "found 2 partitions of 3"),
        (job(policies=[{"action": "Explode"}]), 'spec.policies[0].action: found "Explode"'),
        (job(runningEstimate="long"), 'spec.runningEstimate: found "long", wanted a duration'),
    ],
)
def test_a_wrong_job_is_named(raw: Obj, text: str) -> None:
    with pytest.raises(ManifestError) as caught:
        decoded(raw)
    assert text in str(caught.value)
    assert str(caught.value).startswith("Job ns/j: ")


def test_the_pods_of_a_job() -> None:
    metadata = {"uid": "u", "annotations": {"volcano.sh/preemptable": "true", "other": "x"}, "labels": {"team": "t"}}
    found = decoded(job(task("w", 2, topologyPolicy="restricted"), task("m", 1), metadata=metadata, queue="q"))
    pods = list(pods_of(found))
    assert [pod.key for pod in pods] == ["ns/j-w-0", "ns/j-w-1", "ns/j-m-0"]
    assert len({pod.uid for pod in pods}) == 3
    assert pods[0].spec is pods[1].spec
    assert pods[1].group_key == "ns/j-u" == podgroup_of(found).key
    assert (pods[1].role, pods[1].owner) == ("w", ("Job", "j", "u"))
    assert pods[1].annotations == {
        "note": "kept",
        "volcano.sh/task-spec": "w",
        "volcano.sh/task-index": "1",
        "scheduling.k8s.io/group-name": "j-u",
        "volcano.sh/job-name": "j",
        "volcano.sh/queue-name": "q",
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": "j-w",
        "volcano.sh/numa-topology-policy": "restricted",
        "volcano.sh/preemptable": "true",
    }
    assert pods[1].labels == {
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "j",
        "volcano.sh/task-spec": "w",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/queue-name": "q",
    }


def test_the_podgroup_of_a_job() -> None:
    metadata = {"labels": {"team": "t"}, "annotations": {"a": "b"}, "creationTimestamp": "2024-01-01T00:00:00Z"}
    found = decoded(
        job(task("w", 4, minAvailable=2), task("m", 1), metadata=metadata, queue="q", priorityClassName="p")
    )
    group = podgroup_of(found)
    assert (group.key, group.queue, group.priority_class_name, group.min_member) == ("ns/j", "q", "p", 3)
    assert group.min_task_member == {"w": 2, "m": 1}
    assert (group.labels, group.annotations, group.creation) == ({"team": "t"}, {"a": "b"}, 1704067200.0)
    assert group.min_resources == Resource(3000.0, 0.0, {"pods": 3.0})


@pytest.mark.parametrize(
    ("min_available", "milli_cpu"),
    [
        (3, 2 * 100 + 10),  # fewer than all minima: whole tasks in order of priority
        (4, 2 * 100 + 2 * 10),  # the minima of all: two of each
        (6, 2 * 100 + 4 * 10),  # and then the rest of the replicas
    ],
)
def test_min_resources_count_the_tasks_of_higher_priority_first(min_available: int, milli_cpu: int) -> None:
    tasks = (task("low", 4, "10m", minAvailable=2), task("high", 2, "100m", "vip", minAvailable=2))
    group = podgroup_of(decoded(job(*tasks, minAvailable=min_available)), {"vip": 10})
    assert group.min_resources is not None
    assert group.min_resources.milli_cpu == milli_cpu


def test_the_partitions_of_a_task_are_sub_jobs() -> None:
    policy = {
        "totalPartitions": 2,
        "partitionSize": 2,
        "minPartitions": 1,
        "networkTopology": {"highestTierAllowed": 1},
    }
    found = decoded(job(task("w", 4, partitionPolicy=policy)))
    group = podgroup_of(found)
    assert group.min_task_member == {"w": 2}
    assert (group.sub_groups[0].sub_group_size, group.sub_groups[0].min_sub_groups) == (2, 1)
    keys = [sub_job_of(pod.labels, group) for pod in pods_of(found)]
    assert [key.id for key in keys] == ["ns/j/w-0", "ns/j/w-0", "ns/j/w-1", "ns/j/w-1"]
    assert [key.match_index for key in keys] == [0, 0, 1, 1]


def test_a_priority_class_becomes_a_priority_as_at_admission() -> None:
    found = decoded(job(task("w", 1, priority_class="vip"), task("m", 1)))
    assert [pod.spec.priority for pod in pods_of(found, Priorities([PriorityClass("vip", 7)]))] == [7, None]


# -- batch/v1, and bare pods


def _batch(**spec: Any) -> Obj:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "b", "uid": "u"},
        "spec": {"template": template(), **spec},
    }


def test_a_kubernetes_job_runs_as_many_as_it_may() -> None:
    found = Decoder().decode(_batch(parallelism=3, completions=2))
    assert isinstance(found, BatchJob)
    pods = list(pods_of_batch_job(found))
    assert [pod.name for pod in pods] == ["b-0", "b-1"]
    groups = {podgroup_for_bare_pod(pod)[0].key for pod in pods}
    assert groups == {"default/podgroup-u"}
    suspended = Decoder().decode(_batch(suspend=True))
    assert isinstance(suspended, BatchJob)
    assert list(pods_of_batch_job(suspended)) == []
    with pytest.raises(ManifestError, match=r"spec\.parallelism"):
        Decoder().decode(_batch(parallelism=JOB_PODS_MAX + 1))


def bare(annotations: Obj | None = None, **metadata: Any) -> Pod:
    spec = {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "priorityClassName": "p"}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "annotations": annotations, **metadata}}
    found = Decoder().decode({**raw, "spec": spec})
    assert isinstance(found, Pod)
    return found


def test_a_bare_pod_gets_a_group_of_one() -> None:
    pod = bare(uid="u")
    assert is_bare(pod)
    group, grouped = podgroup_for_bare_pod(pod)
    assert (group.key, group.min_member, group.queue, group.priority_class_name) == (
        "default/podgroup-u",
        1,
        "default",
        "p",
    )
    assert group.min_resources == pod.spec.request
    assert grouped.group_key == group.key
    assert not is_bare(grouped)
    assert podgroup_for_bare_pod(bare())[0].key == "default/podgroup-default-x"


def test_a_bare_pod_says_more_in_its_annotations() -> None:
    annotations = {
        "scheduling.volcano.sh/queue-name": "q",
        "volcano.sh/network-topology-mode": "SOFT",
        "volcano.sh/network-topology-highest-tier": "2",
        "volcano.sh/preemptable": "true",
        "volcano.sh/jdb-min-available": "1",
        "volcano.sh/jdb-max-unavailable": "2",
        "else": "dropped",
    }
    owners = {"scheduling.volcano.sh/group-min-member": "3", "volcano.sh/x": "y", "z": "dropped"}
    group, _ = podgroup_for_bare_pod(bare(annotations), owners)
    assert (group.queue, group.min_member, group.topology) == ("q", 3, NetworkTopology("soft", 2))
    assert group.min_resources is not None
    assert group.min_resources.milli_cpu == 3000.0
    assert group.annotations == {
        "volcano.sh/preemptable": "true",
        "volcano.sh/jdb-min-available": "1",
        "volcano.sh/x": "y",
    }
    bad = {"volcano.sh/network-topology-mode": "?", "volcano.sh/network-topology-highest-tier": "two"}
    assert (
        podgroup_for_bare_pod(bare(bad), {"scheduling.volcano.sh/group-min-member": "-1"})[0].topology
        == NetworkTopology()
    )


@pytest.mark.parametrize(
    ("named", "said"),
    [
        pytest.param([("a", ()), ("b", ("a", "a")), ("c", ("b", "a"))], "", id="an order, one wait written twice"),
        pytest.param([("a", ()), ("b", ("b",))], "found b, which depend on each other", id="one waits for itself"),
        pytest.param(
            [("a", ("b",)), ("b", ("a",)), ("c", ("b",))], "found a, b, c, which depend", id="those behind a circle too"
        ),
        pytest.param(
            [(f"t{i}", (f"t{i}",)) for i in range(30)], "t19 and 10 more, which depend", id="not all are named"
        ),
    ],
)
def test_what_waits_for_each_other_is_named(named: list[tuple[str, tuple[str, ...]]], said: str) -> None:
    if not said:
        check_order(named, "spec.tasks")
        return
    with pytest.raises(FieldError, match=said):
        check_order(named, "spec.tasks")


def test_a_long_chain_is_looked_at_once() -> None:
    steps = 50_000
    check_order([("t0", ()), *((f"t{i}", (f"t{i - 1}",)) for i in range(1, steps))], "spec.tasks")
