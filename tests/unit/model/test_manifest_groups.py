"""PodGroups, queues, classes, quotas, nodes and hypernodes from decoded objects."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.manifest import Decoder, ManifestError
from pumice.model.node import Node, NodeImage, Taint
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.queue import NodeGroupAffinity, PriorityClass, Queue, ResourceQuota
from pumice.model.resources import Resource
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, SubGroupPolicy

Obj = dict[str, Any]


def obj(api_version: str, kind: str, spec: Obj | None = None, **other: Any) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec or {}, **other}


def group(spec: Obj | None = None, **other: Any) -> Obj:
    return obj("scheduling.volcano.sh/v1beta1", "PodGroup", spec, **other)


def queue(spec: Obj | None = None, **other: Any) -> Obj:
    return obj("scheduling.volcano.sh/v1beta1", "Queue", spec, **other)


def hypernode(spec: Obj) -> Obj:
    return obj("topology.volcano.sh/v1alpha1", "HyperNode", spec)


def decode(raw: Obj, **options: Any) -> Any:
    return Decoder(**options).decode(raw)


# -- PodGroup


def test_a_podgroup_in_full() -> None:
    found = decode(
        group(
            {
                "minMember": 3,
                "minTaskMember": {"worker": 2, "": 1},
                "queue": "q",
                "priorityClassName": "high",
                "minResources": {"cpu": "3", "nvidia.com/gpu": 1},
                "networkTopology": {"mode": "soft", "highestTierAllowed": 2, "highestTierName": "rack"},
                "subGroupPolicy": [
                    {
                        "name": "w",
                        "subGroupSize": 2,
                        "minSubGroups": 0,
                        "labelSelector": {"matchLabels": {"a": "b"}},
                        "matchLabelKeys": ["k"],
                        "networkTopology": {},
                    }
                ],
            },
            status={"phase": "Inqueue", "running": 1, "conditions": [{"type": "Scheduled", "status": "True"}]},
        )
    )
    assert isinstance(found, PodGroup)
    assert (found.key, found.uid, found.queue, found.min_member) == ("default/x", "default/x", "q", 3)
    assert found.min_task_member == {"worker": 2, "": 1}
    assert found.min_resources == Resource(3000.0, 0.0, {"nvidia.com/gpu": 1000.0})
    assert found.topology == NetworkTopology("soft", 2, "rack")
    selector = LabelSelector((Requirement("a", "In", ("b",)),))
    assert found.sub_groups == (SubGroupPolicy("w", NetworkTopology(), 2, 0, selector, ("k",)),)
    assert (found.status.phase, found.status.running, found.status.conditions[0].type) == ("Inqueue", 1, "Scheduled")


def test_a_podgroup_without_anything() -> None:
    found = decode(group())
    assert (found.queue, found.min_member, found.min_resources, found.topology) == ("default", 0, None, None)
    assert found.status.phase == "Pending"
    assert decode(group({"queue": ""}), default_queue="main").queue == "main"
    assert decode(group({"minResources": {}})).min_resources == Resource()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (group({"minMember": -1}), "PodGroup x: spec.minMember: found -1, wanted an integer from 0 to 2147483647"),
        (group({"minMember": "3"}), 'spec.minMember: found "3"'),
        (group({"minTaskMember": {"a": -1}}), "spec.minTaskMember.a: found -1"),
        (group({"minTaskMember": [1]}), "spec.minTaskMember: found a list of 1, wanted an object"),
        (group({"minResources": {"cpu": "x"}}), "spec.minResources.cpu"),
        (group({"queue": "q" * 254}), "spec.queue"),
        (
            group({"networkTopology": {"mode": "firm"}}),
            'spec.networkTopology.mode: found "firm", wanted one of hard, soft',
        ),
        (group({"networkTopology": {"highestTierAllowed": -1}}), "spec.networkTopology.highestTierAllowed"),
        (group({"subGroupPolicy": [{"subGroupSize": 0}]}), "spec.subGroupPolicy[0].subGroupSize: found 0"),
        (
            group({"subGroupPolicy": [{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}]}),
            'labelSelector.matchExpressions[0].operator: found "Gt", wanted one of In, NotIn, Exists, DoesNotExist',
        ),
        (group(status={"phase": "Done"}), "status.phase"),
    ],
)
def test_a_wrong_podgroup_is_named(raw: Obj, text: str) -> None:
    with pytest.raises(ManifestError) as caught:
        decode(raw)
    assert text in str(caught.value)


# -- Queue


def test_a_queue_in_full() -> None:
    found = decode(
        queue(
            {
                "weight": 4,
                "capability": {"cpu": "8"},
                "deserved": {"cpu": "4"},
                "guarantee": {"resource": {"cpu": "2"}},
                "reclaimable": False,
                "priority": 5,
                "parent": "root",
                "affinity": {
                    "nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g1"]},
                    "nodeGroupAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["g2"]},
                },
            },
            status={"state": "Closing", "allocated": {"cpu": "1"}},
        )
    )
    assert isinstance(found, Queue)
    assert (found.weight, found.priority, found.parent, found.reclaimable) == (4, 5, "root", False)
    assert (found.capability, found.deserved, found.guarantee) == (Resource(8000.0), Resource(4000.0), Resource(2000.0))
    assert (found.state, found.allocated) == ("Closing", Resource(1000.0))
    assert found.affinity == NodeGroupAffinity(required=("g1",), anti_preferred=("g2",))


def test_a_queue_without_anything() -> None:
    found = decode(queue())
    assert (found.weight, found.reclaimable, found.state, found.affinity) == (1, True, "Open", None)
    assert (found.capability, found.deserved, found.guarantee) == (None, None, None)
    assert decode(queue({"weight": 0})).weight == 1


@pytest.mark.parametrize(
    "spec", [{"weight": -1}, {"weight": 65536}, {"priority": -1}, {"parent": 1}, {"guarantee": []}]
)
def test_a_wrong_queue_is_refused(spec: Obj) -> None:
    with pytest.raises(ManifestError, match="^Queue x: spec"):
        decode(queue(spec))


# -- the rest


def test_a_priority_class() -> None:
    raw: Obj = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    assert decode({**raw, "value": -5, "globalDefault": True}) == PriorityClass("high", -5, True)
    for value in ({}, {"value": "10"}, {"value": 2**31}):
        with pytest.raises(ManifestError, match="^PriorityClass high: value"):
            decode({**raw, **value})


def test_a_quota_reads_requests_as_the_plain_name() -> None:
    raw = obj("v1", "ResourceQuota", {"hard": {"cpu": "9"}})
    raw["status"] = {"hard": {"requests.cpu": "4", "memory": "1Gi", "count/pods": "0"}, "used": {"requests.cpu": "1"}}
    found = decode(raw)
    assert isinstance(found, ResourceQuota)
    assert (found.hard.milli_cpu, found.hard.memory, found.used.milli_cpu) == (4000.0, 2.0**30, 1000.0)
    assert found.limited == ("count/pods", "cpu", "memory")
    del raw["status"]
    assert decode(raw).hard.milli_cpu == 9000.0


def test_a_node() -> None:
    raw = obj("v1", "Node", {"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute"}]})
    raw["metadata"]["annotations"] = {
        "volcano.sh/oversubscription-cpu": "1500.5",
        "volcano.sh/oversubscription-memory": "?",
    }
    raw["status"] = {"allocatable": {"cpu": "4", "pods": "110"}, "images": [{"names": ["a", "b"], "sizeBytes": 7}]}
    found = decode(raw)
    assert isinstance(found, Node)
    assert (found.allocatable.milli_cpu, found.allocatable.max_task_num, found.unschedulable) == (4000.0, 110, True)
    assert found.taints == (Taint("k", "", "NoExecute"),)
    assert found.images == (NodeImage(("a", "b"), 7),)
    assert found.oversubscription == Resource(1500.5, 0.0)
    raw["spec"]["taints"] = [{"key": "k", "effect": "Never"}]
    with pytest.raises(ManifestError, match=r"Node x: spec\.taints\[0\]\.effect"):
        decode(raw)


def test_a_hypernode() -> None:
    members = [
        {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^n"}}},
        {"type": "Node", "selector": {"labelMatch": {}}},
        {"type": "HyperNode", "selector": {"exactMatch": {"name": "h"}}},
    ]
    found = decode(hypernode({"tier": 2, "tierName": "rack", "members": members}))
    assert found == HyperNode(
        "x",
        2,
        (
            HyperNodeMember("Node", exact="n1"),
            HyperNodeMember("Node", regex="^n"),
            HyperNodeMember("Node", labels=LabelSelector()),
            HyperNodeMember("HyperNode", exact="h"),
        ),
        "rack",
    )


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "spec.tier: found nothing"),
        ({"tier": -1}, "spec.tier: found -1"),
        ({"tier": 1, "members": [{"type": "Rack"}]}, "spec.members[0].type"),
        ({"tier": 1, "members": [{"type": "Node"}]}, "wanted one of exactMatch, regexMatch and labelMatch"),
        (
            {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {}, "labelMatch": {}}}]},
            "spec.members[0].selector: found exactMatch and labelMatch",
        ),
    ],
)
def test_a_wrong_hypernode_is_named(spec: Obj, text: str) -> None:
    with pytest.raises(ManifestError) as caught:
        decode(hypernode(spec))
    assert text in str(caught.value)


# -- quotas that cannot be read


@pytest.mark.parametrize(
    ("status", "limited", "cpu"),
    [
        pytest.param({"hard": {"cpu": "4", "memory": "x"}}, ("cpu", "memory"), 4000.0, id="an amount"),
        pytest.param({"hard": {"cpu": "4"}, "used": {"cpu": "?"}}, ("cpu", "memory"), 0.0, id="what is used"),
        pytest.param({"hard": ["cpu"]}, ("cpu", "memory"), 0.0, id="no mapping at all"),
    ],
)
def test_of_a_quota_that_cannot_be_read_nothing_is_left(status: Any, limited: tuple[str, ...], cpu: float) -> None:
    obj = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": "a", "name": "q"}, "status": status}
    reading = Decoder().read(obj)
    assert isinstance(reading.value, ResourceQuota)
    assert (reading.value.namespace, reading.value.limited) == ("a", limited)
    assert (reading.value.hard.milli_cpu, reading.value.hard.memory) == (cpu, 0.0)
    assert reading.value.unparsable
    assert "the unreadable limits count as used up" in reading.why
