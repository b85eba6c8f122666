"""``pumice schedule`` on Kubernetes' own PodGroups, under both policy languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.kit import Result, run

Raw = dict[str, Any]
QUOTA = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
QUEUES = {
    "volcano": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}},
    "kai": {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"resources": {"cpu": QUOTA, "memory": QUOTA, "gpu": QUOTA}},
    },
}
SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler"}


def node(name: str, cpu: int, **labels: str) -> Raw:
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }


def group(minimum: int, version: str = "v1beta1", **spec: Any) -> Raw:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, **spec}
    metadata = {"name": "g", "namespace": "ml"}
    return {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def pods(dialect: str, count: int) -> list[Raw]:
    spec = {
        "schedulerName": SCHEDULERS[dialect],
        "schedulingGroup": {"podGroupName": "g"},
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    }
    head: Raw = {"apiVersion": "v1", "kind": "Pod"}
    return [{**head, "metadata": {"name": f"p{i}", "namespace": "ml"}, "spec": spec} for i in range(count)]


def schedule(tmp_path: Path, dialect: str, *objects: Raw) -> Result:
    listed = {"apiVersion": "v1", "kind": "List", "items": [QUEUES[dialect], *objects]}
    (tmp_path / "all.json").write_text(json.dumps(listed))
    (tmp_path / "policy.conf").write_text("dialect: kai\n")
    policy = ("--conf", tmp_path / "policy.conf") if dialect == "kai" else ()
    return run("schedule", tmp_path / "all.json", *policy, "--json")


@pytest.mark.parametrize("dialect", SCHEDULERS)
@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1", "v1"])
def test_a_gang_is_bound_whole(tmp_path: Path, dialect: str, version: str) -> None:
    found = schedule(tmp_path, dialect, node("n", 8), group(3, version), *pods(dialect, 3)).json
    assert len(found["binds"]) == 3


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_no_pod_of_a_gang_is_bound_while_one_is_missing(tmp_path: Path, dialect: str) -> None:
    found = schedule(tmp_path, dialect, node("n", 8), group(4), *pods(dialect, 3)).json
    assert not found["binds"] and len(found["unscheduled"]) == 3


def workload(**groups: int) -> Raw:
    """Return a Workload of v1alpha1 with pod groups by name; a minimum of 0 is the policy basic."""
    listed = [
        {"name": name, "policy": {"gang": {"minCount": least}} if least else {"basic": {}}}
        for name, least in groups.items()
    ]
    metadata = {"name": "w", "namespace": "ml"}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"podGroups": listed},
    }


def members(dialect: str, count: int, of: str, replica: str = "") -> list[Raw]:
    """Return pods that name a pod group of the Workload."""
    found = pods(dialect, count)
    for each in found:
        ref = {"name": "w", "podGroup": of, **({"podGroupReplicaKey": replica} if replica else {})}
        each["metadata"]["name"] += f"-{of}{replica}"
        each["spec"] = {**each["spec"], "workloadRef": ref}
        del each["spec"]["schedulingGroup"]
    return found


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_each_replica_of_a_pod_group_of_a_workload_is_a_gang(tmp_path: Path, dialect: str) -> None:
    three = [each for replica in "ab" for each in members(dialect, 3, "workers", replica)]
    found = schedule(tmp_path, dialect, node("n", 5), *three, workload(workers=3)).json
    assert sorted(found["binds"]) == [f"ml/p{i}-workersa" for i in range(3)]
    assert len(found["unscheduled"]) == 3


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_no_pod_is_bound_while_one_of_its_pod_group_of_a_workload_is_missing(tmp_path: Path, dialect: str) -> None:
    some = [*members(dialect, 2, "workers", "a"), *members(dialect, 2, "workers", "b"), *members(dialect, 1, "driver")]
    found = schedule(tmp_path, dialect, node("n", 8), workload(workers=3, driver=0), *some).json
    assert sorted(found["binds"]) == ["ml/p0-driver"]


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_pods_whose_workload_cannot_be_read_are_not_placed(tmp_path: Path, dialect: str) -> None:
    wrong = workload(workers=1, driver=0)
    wrong["spec"]["podGroups"][0]["policy"]["gang"]["minCount"] = "one"
    some = [*members(dialect, 1, "workers"), *members(dialect, 1, "driver")]
    done = schedule(tmp_path, dialect, node("n", 8), wrong, *some)
    assert not done.json["binds"] and len(done.json["unscheduled"]) == 2
    assert 'spec.podGroups[0].policy.gang.minCount: found "one"' in done.err


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_pods_of_a_basic_group_are_bound_as_far_as_they_fit(tmp_path: Path, dialect: str) -> None:
    basic = group(0, schedulingPolicy={"basic": {}})
    found = schedule(tmp_path, dialect, node("n", 2), basic, *pods(dialect, 3)).json
    assert len(found["binds"]) == 2


RACKED: Raw = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_a_gang_stays_in_one_domain_of_the_label(tmp_path: Path, dialect: str) -> None:
    racks = [node("a1", 2, rack="a"), node("a2", 1, rack="a"), node("b1", 2, rack="b"), node("none", 4)]
    found = schedule(tmp_path, dialect, *racks, group(3, **RACKED), *pods(dialect, 3)).json
    assert set(found["binds"].values()) == {"a1", "a2"}


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_a_gang_waits_that_fits_in_no_domain_of_the_label(tmp_path: Path, dialect: str) -> None:
    racks = [node("a", 2, rack="a"), node("b", 2, rack="b"), node("none", 8)]
    found = schedule(tmp_path, dialect, *racks, group(3, **RACKED), *pods(dialect, 3)).json
    assert not found["binds"] and len(found["unscheduled"]) == 3


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_what_comes_later_goes_where_the_gang_is(tmp_path: Path, dialect: str) -> None:
    first, *others = pods(dialect, 3)
    first = {**first, "spec": {**first["spec"], "nodeName": "b"}, "status": {"phase": "Running"}}
    racks = [node("a", 8, rack="a"), node("b", 2, rack="b"), node("c", 1, rack="b")]
    found = schedule(tmp_path, dialect, *racks, group(1, **RACKED), first, *others).json
    assert sorted(found["binds"].values()) == ["b", "c"]


def sized(dialect: str, *cpus: int) -> list[Raw]:
    found = pods(dialect, len(cpus))
    for i, cpu in enumerate(cpus):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
        found[i] = {**found[i], "spec": {**found[i]["spec"], "containers": [container]}}
    return found


def test_a_gang_of_different_pods_is_placed_whatever_their_order(tmp_path: Path) -> None:
    """Pod by pod, the small ones take the room of the large one on either node."""
    found = schedule(tmp_path, "volcano", node("a", 4), node("b", 4), group(4), *sized("volcano", 1, 1, 2, 4)).json
    large = found["binds"]["ml/p3"]
    assert len(found["binds"]) == 4 and list(found["binds"].values()).count(large) == 1


def test_a_minimum_below_the_pods_is_met_by_those_that_fit(tmp_path: Path) -> None:
    found = schedule(tmp_path, "volcano", node("a", 4), node("b", 4), group(3), *sized("volcano", 2, 3, 3, 4, 5)).json
    assert not found["binds"]
    whole = schedule(tmp_path, "volcano", node("a", 4), node("b", 4), group(3), *sized("volcano", 3, 2, 2, 4)).json
    assert len(whole["binds"]) == 3


def test_volcanos_own_groups_are_placed_pod_by_pod_as_there(tmp_path: Path) -> None:
    named = {"scheduling.k8s.io/group-name": "g"}
    plain = [{**each, "metadata": {**each["metadata"], "annotations": named}} for each in sized("volcano", 1, 1, 2, 4)]
    for each in plain:
        each["spec"] = {key: value for key, value in each["spec"].items() if key != "schedulingGroup"}
    own = {**group(4), "apiVersion": "scheduling.volcano.sh/v1beta1", "spec": {"minMember": 4, "queue": "default"}}
    found = schedule(tmp_path, "volcano", node("a", 4), node("b", 4), own, *plain).json
    assert not found["binds"]


@pytest.mark.parametrize("in_tree", [False, True])
def test_victims_for_a_gang_with_a_topology_are_in_one_domain(tmp_path: Path, in_tree: bool) -> None:
    """KAI's language. Rack a is too small, even empty."""
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 10), ("high", 60))
    ]
    nodes = [node("a", 1, rack="a"), node("b1", 1, rack="b"), node("b2", 1, rack="b")]
    old = {**group(1, priorityClassName="low", schedulingPolicy={"basic": {}})}
    old["metadata"] = {"name": "old", "namespace": "ml"}
    running = pods("kai", 3)
    for each, on in zip(running, ("a", "b1", "b2"), strict=True):
        each["metadata"]["name"] = f"old-{on}"
        each["spec"] = {**each["spec"], "nodeName": on, "schedulingGroup": {"podGroupName": "old"}}
        each["status"] = {"phase": "Running"}
    waiting = [group(2, priorityClassName="high", **RACKED)]
    if in_tree:
        waiting[0]["spec"]["parentCompositePodGroupName"] = "all"
        policy = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "priorityClassName": "high"}
        metadata = {"name": "all", "namespace": "ml"}
        waiting.append({**waiting[0], "kind": "CompositePodGroup", "metadata": metadata, "spec": policy})
    found = schedule(tmp_path, "kai", *classes, *nodes, old, *running, *waiting, *pods("kai", 2)).json
    assert sorted(found["evicts"]) == ["ml/old-b1", "ml/old-b2"]
    assert set(found["pipelined"].values()) == {"b1", "b2"} and not found["binds"]
