"""Pods without a group get one: of their own, of their set's, or as large as their owner says."""

import copy
from typing import Any

import pytest

from pumice.model.manifest.groups import read_pod_group
from pumice.model.manifest.pod_spec import SpecCache
from pumice.runtime.controllers.podgroups import GroupSettings, group_name_for, reconcile_pod, reconcile_set
from pumice.runtime.controllers.writes import Create, Delete, Emit, Patch, merged

SETTINGS = GroupSettings()
GROUP = "scheduling.k8s.io/group-name"


def pod(name: str = "p", owner: tuple[str, str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    refs = (
        [{"apiVersion": owner[0], "kind": owner[1], "name": "o", "uid": owner[2], "controller": True}] if owner else []
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "ownerReferences": refs, **metadata},
        "spec": {
            "schedulerName": "volcano",
            "priorityClassName": "high",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Pending"},
    }


def made(writes: list[Any]) -> dict[str, Any]:
    (create,) = [write for write in writes if isinstance(write, Create)]
    return create.obj


def test_bare_pod() -> None:
    create, patch = reconcile_pod(pod(), None, None, SETTINGS, SpecCache())
    assert isinstance(create, Create) and isinstance(patch, Patch)
    assert create.obj["metadata"]["name"] == "podgroup-uid-p"
    (owner,) = create.obj["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "p", True)
    assert create.obj["spec"] == {
        "minMember": 1,
        "queue": "default",
        "priorityClassName": "high",
        "minResources": {"cpu": "2", "memory": "1Gi", "pods": "1"},
    }
    assert create.obj["status"] == {"phase": "Pending"}
    assert patch.merge == {"metadata": {"annotations": {GROUP: "podgroup-uid-p"}}}
    named = merged(pod(), patch.merge)
    assert reconcile_pod(named, None, create.obj, SETTINGS, SpecCache()) == []


def test_a_pod_whose_group_has_no_name_gets_one() -> None:
    unnamed = pod(annotations={GROUP: ""})
    create, patch = reconcile_pod(unnamed, None, None, SETTINGS, SpecCache())
    assert isinstance(create, Create) and isinstance(patch, Patch)
    assert merged(unnamed, patch.merge)["metadata"]["annotations"] == {GROUP: "podgroup-uid-p"}


def test_a_group_is_made_in_the_queue_of_its_namespace() -> None:
    named = {"scheduling.volcano.sh/queue-name": "own"}
    assert made(reconcile_pod(pod(), None, None, SETTINGS, SpecCache(), "team"))["spec"]["queue"] == "team"
    own = reconcile_pod(pod(annotations=named), None, None, SETTINGS, SpecCache(), "team")
    assert made(own)["spec"]["queue"] == "own"


@pytest.mark.parametrize(("there", "queue"), [("default", "default"), ("team", "team"), ("another", "default")])
def test_a_group_that_is_there_is_not_moved_to_the_queue_of_its_namespace(there: str, queue: str) -> None:
    """It is kept as its pods would make it, and these name none."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "o", "namespace": "ns", "uid": "o"}}
    mine = [pod(owner=("apps/v1", "ReplicaSet", "o"))]
    group = made(reconcile_set(owner, mine, None, SETTINGS, SpecCache(), "team"))
    assert group["spec"]["queue"] == "team"
    group["spec"]["queue"] = there
    patches = reconcile_set(owner, mine, group, SETTINGS, SpecCache(), "team")
    for patch in patches:
        assert isinstance(patch, Patch)
        group = merged(group, patch.merge)
    assert group["spec"]["queue"] == queue


def test_what_is_made_can_be_read_again() -> None:
    annotations = {"volcano.sh/network-topology-mode": "soft", "volcano.sh/network-topology-highest-tier": "2"}
    obj = made(reconcile_pod(pod(annotations=annotations), None, None, SETTINGS, SpecCache()))
    group = read_pod_group(obj, "default")
    assert group.topology is not None and (group.topology.mode, group.topology.highest_tier) == ("soft", 2)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"schedulerName": "default-scheduler"}},
        {"metadata": {"annotations": {GROUP: "mine"}}},
        {"metadata": {"annotations": {"scheduling.volcano.sh/group-name": "mine"}}},
        {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}},
        {"status": {"phase": "Succeeded"}},
    ],
)
def test_pods_that_need_none(change: dict[str, Any]) -> None:
    assert reconcile_pod(merged(pod(), change), None, None, SETTINGS, SpecCache()) == []


def test_pods_of_one_owner_share_a_group() -> None:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "o",
            "uid": "j",
            "annotations": {
                "scheduling.volcano.sh/group-min-member": "4",
                "volcano.sh/preemptable": "true",
                "other": "no",
            },
        },
    }
    first, second = (pod(name, ("batch/v1", "Job", "j")) for name in ("a", "b"))
    group = made(reconcile_pod(first, owner, None, SETTINGS, SpecCache()))
    assert group["metadata"]["name"] == group_name_for(second) == "podgroup-j"
    assert group["spec"]["minMember"] == 4 and group["spec"]["minResources"]["cpu"] == "8"
    assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert [type(write) for write in reconcile_pod(second, owner, group, SETTINGS, SpecCache())] == [Patch]


def test_a_group_that_is_going_is_waited_for() -> None:
    going = {"metadata": {"name": "podgroup-uid-p", "deletionTimestamp": "2024-01-01T00:00:00Z"}}
    assert reconcile_pod(pod(), None, going, SETTINGS, SpecCache()) == []


def test_a_pod_that_cannot_be_read_is_reported() -> None:
    bad = pod()
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    (tell,) = reconcile_pod(bad, None, None, SETTINGS, SpecCache())
    assert isinstance(tell, Emit) and tell.type == "Warning" and "many" in tell.message


# -- owners that say how large their gang is


def template(cpu: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}


PYTORCH = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "o", "uid": "k"},
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"template": template("1")},
            "Worker": {"replicas": 3, "template": template("4")},
        },
        "runPolicy": {"schedulingPolicy": {"queue": "research"}},
    },
}
RAY = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {"name": "o", "uid": "k", "labels": {"volcano.sh/queue-name": "rays"}},
    "spec": {
        "headGroupSpec": {"template": template("2")},
        "workerGroupSpecs": [{"replicas": 2, "minReplicas": 1, "numOfHosts": 2, "template": template("8")}],
    },
}


@pytest.mark.parametrize(
    ("owner", "change", "minimum", "cpu", "queue"),
    [
        (PYTORCH, {}, 4, "13", "research"),
        (PYTORCH, {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}}, 2, "4", "research"),
        (RAY, {}, 5, "34", "rays"),
        (RAY, {"spec": {"enableInTreeAutoscaling": True}}, 3, "18", "rays"),
        (RAY, {"spec": {"workerGroupSpecs": "nonsense"}}, 1, "2", "rays"),
        (RAY, {"spec": {"workerGroupSpecs": 3}}, 1, "2", "rays"),
        (PYTORCH, {"spec": {"pytorchReplicaSpecs": None}}, 1, "2", "default"),
    ],
)
def test_gangs(owner: dict[str, Any], change: dict[str, Any], minimum: int, cpu: str, queue: str) -> None:
    own = merged(copy.deepcopy(owner), change)
    member = pod("w", (own["apiVersion"], own["kind"], "k"))
    group = made(reconcile_pod(member, own, None, SETTINGS, SpecCache()))
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (minimum, queue)
    assert group["spec"]["minResources"]["cpu"] == cpu
    alone = made(reconcile_pod(member, own, None, GroupSettings(gangs=False), SpecCache()))
    assert (alone["spec"]["minMember"], alone["spec"]["queue"]) == (1, "default")


def test_a_pod_of_kubernetes_own_group_is_given_no_other() -> None:
    member = merged(pod("p", ("batch/v1", "Job", "j")), {"spec": {"schedulingGroup": {"podGroupName": "team"}}})
    assert reconcile_pod(member, None, None, SETTINGS, SpecCache()) == []


def test_a_set_does_not_group_what_is_in_a_group_of_kubernetes_own() -> None:
    member = pod("a", ("apps/v1", "ReplicaSet", "r"))
    inside = merged(member, {"spec": {"schedulingGroup": {"podGroupName": "team"}}})
    assert reconcile_set(replica_set(), [inside], None, SETTINGS, SpecCache()) == []
    assert made(reconcile_set(replica_set(), [inside, member], None, SETTINGS, SpecCache()))


# -- ReplicaSets and StatefulSets


def replica_set(replicas: int = 2, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "spec": {"replicas": replicas},
        "metadata": {
            "name": "o",
            "namespace": "ns",
            "uid": "r",
            "annotations": {f"volcano.sh/{key.replace('_', '-')}": value for key, value in annotations.items()},
        },
    }


def test_a_set_of_no_pods_has_no_group() -> None:
    group = made(reconcile_set(replica_set(), [pod("a", ("apps/v1", "ReplicaSet", "r"))], None, SETTINGS, SpecCache()))
    (write,) = reconcile_set(replica_set(0), [], group, SETTINGS, SpecCache())
    assert isinstance(write, Delete) and write.ref.name == "podgroup-r"
    assert reconcile_set(replica_set(0), [], None, SETTINGS, SpecCache()) == []


def test_a_set_keeps_its_group_as_its_pods_would_make_it() -> None:
    pods = [pod("a", ("apps/v1", "ReplicaSet", "r"))]
    group = made(reconcile_set(replica_set(), pods, None, SETTINGS, SpecCache()))
    group["metadata"]["annotations"] = {"users": "own"}
    changed = replica_set(preemptable="true")
    (patch,) = reconcile_set(changed, pods, group, SETTINGS, SpecCache())
    assert isinstance(patch, Patch)
    assert patch.merge == {"metadata": {"annotations": {"volcano.sh/preemptable": "true"}}}
    assert reconcile_set(changed, pods, merged(group, patch.merge), SETTINGS, SpecCache()) == []


def test_a_stateful_set_goes_by_its_update_revision() -> None:
    old, new = (
        pod(n, ("apps/v1", "StatefulSet", "s"), labels={"controller-revision-hash": n}, creationTimestamp=created)
        for n, created in (("1", "2024-01-01T00:00:00Z"), ("2", "2024-01-02T00:00:00Z"))
    )
    new["spec"]["priorityClassName"] = "low"
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "o", "uid": "s"},
        "spec": {"replicas": 2},
        "status": {"updateRevision": "2"},
    }
    group = made(reconcile_set(owner, [old, new], None, SETTINGS, SpecCache()))
    assert group["spec"]["priorityClassName"] == "low"
