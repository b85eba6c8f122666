"""Objects that cannot be read: what counts of them all the same, and that it never allows more than all of it would."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.model.manifest import Decoder, ManifestError
from pumice.model.manifest.reading.fields import INT32_MAX, INT32_MIN
from pumice.model.manifest.reading.salvage import REPAIRS_MAX
from pumice.model.node import Node
from pumice.model.pod import UNREAD_GATE, HostPort, LabelSelector, Pod, PodAffinityTerm
from pumice.model.queue import PriorityClass, Queue
from pumice.model.topology import HyperNode
from pumice.model.workloads.podgroup import PodGroup

Raw = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AWAY = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}

POD: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "n",
        "uid": "u",
        "labels": {"app": "x"},
        "annotations": {"scheduling.k8s.io/group-name": "g"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "ju", "controller": True}],
        "resourceVersion": "7",
    },
    "spec": {
        "nodeName": "n1",
        "schedulerName": "volcano",
        "containers": [
            {
                "name": "c",
                "image": "i",
                "ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 81}],
                "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "4"}},
            },
            {"name": "d", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}},
        ],
        "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}],
        "overhead": {"cpu": "250m"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "nodeSelector": {"a": "b"},
        "priority": 5,
        "preemptionPolicy": "PreemptLowerPriority",
        "affinity": {
            "nodeAffinity": {
                PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}]
            },
            "podAntiAffinity": {
                REQUIRED: [AWAY, {"topologyKey": "host", "labelSelector": {}}],
                PREFERRED: [{"weight": 1, "podAffinityTerm": AWAY}],
            },
        },
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
    },
    "status": {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:01Z",
        "conditions": [{"type": "A", "status": "True"}],
    },
}
SOUND = Decoder().decode(POD)
assert isinstance(SOUND, Pod)


def changed(raw: Raw, path: str, value: Any) -> Raw:
    """A copy with something else at a path such as ``spec.containers[0].name``."""
    found: Any = copy.deepcopy(raw)
    at = found
    steps: list[Any] = [int(i) if i else name for i, name in re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)]
    for step in steps[:-1]:
        at = at[step]
    at[steps[-1]] = value
    return dict(found)


def read(raw: Raw) -> Any:
    reading = Decoder().read(raw)
    assert reading.error is not None
    assert reading.value.unparsable  # type: ignore[union-attr]  # of the kinds that are here
    return reading.value


# -- pods


def test_what_can_be_read_is_read_as_ever() -> None:
    reading = Decoder().read(POD)
    assert (reading.value, reading.error, reading.why) == (SOUND, None, "")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions", [{"key": "k", "operator": "Gt"}]),
        (f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight", "heavy"),
        ("spec.affinity.nodeAffinity", 5),
        ("spec.tolerations[0].operator", "Perhaps"),
        ("spec.topologySpreadConstraints[0].maxSkew", 0),
        ("spec.nodeSelector.a", 5),
        ("spec.containers[0].image", 5),
        ("spec.volumes", [{"persistentVolumeClaim": 5}]),
        ("spec.schedulingGates", [5]),
        ("spec.priority", 2**40),
        ("spec.preemptionPolicy", "Perhaps"),
        ("status.conditions", [5]),
        ("status.startTime", "soon"),
        ("metadata.creationTimestamp", "once"),
        ("metadata.deletionTimestamp", {}),
        ("metadata.ownerReferences", [5]),
        ("metadata.labels.other", 5),
    ],
)
def test_a_pod_on_a_node_counts_whatever_else_is_wrong_with_it(path: str, value: Any) -> None:
    pod = read(changed(POD, path, value))
    assert (pod.node_name, pod.phase, pod.group_key, pod.gates) == ("n1", "Running", "n/g", ())
    assert (pod.spec.request, pod.spec.host_ports) == (SOUND.spec.request, SOUND.spec.host_ports)
    assert pod.spec.affinity.anti_required == SOUND.spec.affinity.anti_required
    assert not pod.closes_node
    assert pod.unparsable[0].startswith(path.partition("[")[0].rpartition(".")[0])


@pytest.mark.parametrize(
    ("path", "value", "milli_cpu", "ports"),
    [
        ("spec.containers[0].resources.requests.cpu", str(2**63 - 1), 5750.0, (80, 81)),
        ("spec.containers[0].resources.requests.cpu", "-1", 5750.0, (80, 81)),
        ("spec.containers[0].resources.requests", 5, 5750.0, (80, 81)),
        ("spec.containers[0].resources.limits.cpu", str(2**63 - 1), 3750.0, (80, 81)),  # may be what it asks for
        ("spec.containers[0].resources.limits", [1], 3750.0, (80, 81)),
        ("spec.containers[0].resources", 5, 1750.0, (80, 81)),
        ("spec.containers[1]", 5, 2750.0, (80, 81)),
        ("spec.containers", 5, 750.0, ()),
        ("spec.containers[0].ports[0].hostPort", 70_000, 3750.0, (81,)),
        ("spec.containers[0].ports[1].protocol", "QUIC", 3750.0, (80,)),
        ("spec.containers[0].ports", 5, 3750.0, ()),
        ("spec.initContainers[0].restartPolicy", 5, 3250.0, (80, 81)),
        ("spec.overhead.cpu", "much", 3500.0, (80, 81)),
        ("spec.hostNetwork", "perhaps", 3750.0, (80, 81)),
        ("spec.resources", {"requests": {"cpu": {}}}, 3750.0, (80, 81)),
        ("status.containerStatuses", [{"name": "c", "resources": {"requests": {"cpu": "x"}}}], 3750.0, (80, 81)),
        ("status.initContainerStatuses", [{"name": "s", "resources": {"requests": {"cpu": "x"}}}], 3750.0, (80, 81)),
    ],
)
def test_a_pod_that_may_hold_more_than_can_be_read_closes_its_node(
    path: str, value: Any, milli_cpu: float, ports: tuple[int, ...]
) -> None:
    """What can be read of its requests and ports counts all the same."""
    pod = read(changed(POD, path, value))
    assert (pod.node_name, pod.group_key, pod.closes_node) == ("n1", "n/g", True)
    assert pod.spec.request.milli_cpu == milli_cpu
    assert pod.spec.host_ports == tuple(HostPort(port) for port in ports)


def test_a_pod_that_may_keep_others_away_keeps_all_away() -> None:
    """A required anti-affinity of which nothing but the topology can be read is one against every pod."""
    path = f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector"
    pod = read(changed(POD, path, {"matchExpressions": [{"key": "a", "operator": "Perhaps"}]}))
    everybody = PodAffinityTerm("zone", LabelSelector(), (), LabelSelector())
    assert pod.spec.affinity.anti_required == (everybody, SOUND.spec.affinity.anti_required[1])
    assert pod.closes_node
    for path, value in ((f"spec.affinity.podAntiAffinity.{REQUIRED}", 5), ("spec.affinity", 5)):
        pod = read(changed(POD, path, value))
        (term,) = pod.spec.affinity.anti_required
        assert (term.topology_key, term.selector) == ("kubernetes.io/hostname", LabelSelector())
        assert pod.closes_node


def test_a_priority_that_cannot_be_read_is_nobodys_prey() -> None:
    assert read(changed(POD, "spec.priority", 2**40)).spec.priority == INT32_MAX


@pytest.mark.parametrize("phase", ["Pending", None])
def test_a_pod_that_waits_and_cannot_be_read_is_held_back(phase: str | None) -> None:
    raw = changed(changed(POD, "spec.nodeName", None), "status", {"phase": phase})
    for path, value in (("spec.tolerations[0].operator", "Perhaps"), ("spec.containers[0].resources", 5)):
        pod = read(changed(raw, path, value))
        assert (pod.node_name, pod.gates, pod.closes_node) == ("", (UNREAD_GATE,), False)
        assert Decoder().read(changed(raw, path, value)).why.endswith("; it is held back")


def test_a_pod_that_is_held_back_is_no_member_that_runs_or_asks_for_nothing() -> None:
    """Else its gang would count it as placed, and begin without it."""
    raw = changed(changed(changed(POD, "spec.nodeName", None), "status", {"phase": "Running"}), "spec.containers", 5)
    pod = read(changed(raw, "spec.overhead", None))
    assert (pod.phase, pod.gates) == ("Pending", (UNREAD_GATE,))
    assert not pod.spec.request.is_empty()


def test_a_pod_that_has_ended_closes_nothing() -> None:
    raw = changed(changed(POD, "status.phase", "Succeeded"), "spec.containers", 5)
    assert not read(raw).closes_node


def test_a_pod_with_more_wrong_than_is_looked_into_keeps_its_place() -> None:
    many = [{"name": f"c{i}", "resources": {"requests": {"cpu": "x"}}} for i in range(REPAIRS_MAX + 1)]
    pod = read(changed(POD, "spec.containers", many))
    assert (pod.key, pod.uid, pod.node_name, pod.group_key, pod.closes_node) == ("n/a", "u", "n1", "n/g", True)
    assert len(pod.unparsable) == 4


def test_more_resources_than_there_are_anywhere_close_the_node() -> None:
    for count in (1, 100):
        each = [
            {"name": f"c{i}", "resources": {"requests": {f"x.io/r{i}-{j}": "1" for j in range(200 // count)}}}
            for i in range(count)
        ]
        pod = read(changed(POD, "spec.containers", each))
        assert pod.closes_node
        assert pod.node_name == "n1"
        assert len(pod.spec.request.scalars or ()) <= 128


@pytest.mark.parametrize("path", ["metadata.name", "metadata.namespace"])
def test_a_pod_without_a_name_is_refused(path: str) -> None:
    with pytest.raises(ManifestError, match=path):
        Decoder().read(changed(POD, path, 5))


def test_the_object_that_was_read_is_left_as_it_is() -> None:
    raw = changed(POD, "spec.tolerations[0].operator", "Perhaps")
    before = copy.deepcopy(raw)
    read(raw)
    assert raw == before


JUNK = st.sampled_from([None, True, -1, 2**70, 1.5, "", "x", "1", [], [5], {}, {"x": 5}, [{}], [[{"a": []}]]])


def places(value: Any, path: str = "") -> list[str]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, part in value.items():
            found += places(part, f"{path}.{key}" if path else key) if re.fullmatch(r"\w+", key) else []
    elif isinstance(value, list):
        for i, part in enumerate(value):
            found += places(part, f"{path}[{i}]")
    return found


@settings(max_examples=400)
@given(paths=st.lists(st.sampled_from([p for p in places(POD) if "." in p]), min_size=1, max_size=3), data=st.data())
def test_whatever_is_wrong_with_a_running_pod_it_counts_or_closes_its_node(
    paths: list[str], data: st.DataObject
) -> None:
    raw = POD
    for path in paths:
        try:
            raw = changed(raw, path, data.draw(JUNK))
        except (KeyError, IndexError, TypeError):
            continue  # what was around it was replaced before
    try:
        reading = Decoder().read(raw)
    except ManifestError:
        assert not isinstance(raw["metadata"]["name"], str) or not raw["metadata"]["name"] or "namespace" in str(raw)
        return
    pod = reading.value
    assert isinstance(pod, Pod)
    if reading.error is None or not pod.node_name:
        assert reading.error is None or UNREAD_GATE in pod.gates
        return
    assert pod.unparsable
    if pod.closes_node or pod.phase in ("Succeeded", "Failed"):
        return
    strict = copy.deepcopy(raw)  # the same requests and ports, and nothing else that could be wrong
    kept = ("nodeName", "containers", "initContainers", "overhead", "resources", "hostNetwork")
    strict = {key: strict[key] for key in ("apiVersion", "kind")} | {
        "metadata": {"name": "a"},
        "spec": {key: value for key, value in strict["spec"].items() if key in kept},
    }
    for container in (*(strict["spec"].get("containers") or ()), *(strict["spec"].get("initContainers") or ())):
        container.pop("image", None)
        container.pop("name", None)
    wanted = Decoder().decode(strict)
    assert isinstance(wanted, Pod)
    assert (pod.spec.request, pod.spec.host_ports) == (wanted.spec.request, wanted.spec.host_ports)


# -- the other kinds

NODE: Raw = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"a": "b"}},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
        "images": [{"names": ["i"], "sizeBytes": 5}],
    },
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.taints[0].effect", "Perhaps"),
        ("spec.taints", 5),
        ("spec.unschedulable", "yes"),
        ("status.allocatable.cpu", "much"),
        ("status.allocatable", [5]),
        ("metadata.labels.a", 5),
        ("spec", 5),
        ("status", 5),
    ],
)
def test_a_node_that_cannot_be_read_takes_nothing_new(path: str, value: Any) -> None:
    node = read(changed(NODE, path, value))
    assert isinstance(node, Node)
    assert (node.name, node.unschedulable) == ("n", True)
    assert node.allocatable.milli_cpu <= 4000.0


@pytest.mark.parametrize(("path", "value"), [("status.images[0].sizeBytes", "x"), ("status.capacity", {"cpu": "x"})])
def test_what_a_node_is_not_asked_for_closes_nothing(path: str, value: Any) -> None:
    assert not read(changed(NODE, path, value)).unschedulable


GROUP: Raw = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "n", "uid": "u"},
    "spec": {"queue": "q", "minMember": 2, "minResources": {"cpu": "2"}},
    "status": {"phase": "Running", "running": 2, "conditions": [{"type": "Scheduled", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.minMember", -1),
        ("spec.minTaskMember", {"a": "x"}),
        ("spec.minResources", {f"x.io/{i}": "1" for i in range(129)}),
        ("spec.networkTopology", {"mode": "Perhaps"}),
        ("spec.subGroupPolicy", [{"subGroupSize": 0}]),
        ("spec.priorityClassName", 5),
    ],
)
def test_of_a_group_that_cannot_be_read_nothing_is_placed(path: str, value: Any) -> None:
    group = read(changed(GROUP, path, value))
    assert isinstance(group, PodGroup)
    assert (group.key, group.queue, group.min_member, group.status.phase) == ("n/g", "q", INT32_MAX, "Running")


def test_a_status_of_a_group_that_cannot_be_read_changes_nothing() -> None:
    group = read(changed(GROUP, "status.conditions[0].lastTransitionTime", "soon"))
    assert (group.min_member, group.status.running) == (2, 2)


QUEUE: Raw = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "q"},
    "spec": {"weight": 3, "parent": "p", "capability": {"cpu": "4"}, "deserved": {"cpu": "2"}},
    "status": {"state": "Open", "allocated": {"cpu": "1"}},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.capability", {"cpu": "much"}),
        ("spec.weight", -1),
        ("spec.reclaimable", "perhaps"),
        ("spec.guarantee", {"resource": {"cpu": "x"}}),
        ("status.state", "Perhaps"),
        ("metadata.annotations", {"a": 5}),
        ("spec", []),
    ],
)
def test_into_a_queue_that_cannot_be_read_nothing_is_taken(path: str, value: Any) -> None:
    queue = read(changed(QUEUE, path, value))
    assert isinstance(queue, Queue)
    assert (queue.name, queue.state, queue.reclaimable) == ("q", "Closed", False)
    assert queue.parent == ("p" if path != "spec" else "")


def test_what_a_queue_is_said_to_hold_may_be_wrong() -> None:
    queue = read(changed(QUEUE, "status.allocated", {"cpu": "much"}))
    assert (queue.state, queue.reclaimable, queue.allocated) == ("Open", True, None)


def test_a_class_that_cannot_be_read_is_the_lowest() -> None:
    found = read(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "c"}, "value": 2**40}
    )
    assert isinstance(found, PriorityClass)
    assert (found.name, found.value, found.global_default, found.preemption_policy) == ("c", INT32_MIN, False, "Never")


@pytest.mark.parametrize(
    ("spec", "tier"),
    [
        ({"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}, {"type": "X"}]}, 1),
        ({"tier": "one", "members": []}, INT32_MAX - 1),
        ({}, INT32_MAX - 1),
        (5, INT32_MAX - 1),
    ],
)
def test_a_hypernode_that_cannot_be_read_holds_no_node(spec: Any, tier: int) -> None:
    raw = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "h"}, "spec": spec}
    found = read(raw)
    assert isinstance(found, HyperNode)
    assert (found.name, found.tier, found.members) == ("h", tier, ())


@pytest.mark.parametrize("kind", [NODE, GROUP, QUEUE])
@given(data=st.data())
def test_whatever_is_wrong_with_an_object_it_stays_what_it_is(kind: Raw, data: st.DataObject) -> None:
    raw = changed(kind, data.draw(st.sampled_from([p for p in places(kind) if "." in p])), data.draw(JUNK))
    try:
        reading = Decoder().read(raw)
    except ManifestError:
        assert raw["metadata"].get("name") != kind["metadata"]["name"] or "namespace" in raw["metadata"]
        return
    assert reading.value.name == raw["metadata"]["name"]
    assert bool(reading.value.unparsable) == (reading.error is not None)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "state", [5, {"terminated": 5}, {"terminated": {"finishedAt": 5}}, {"terminated": {"finishedAt": "late"}}]
)
def test_a_pod_that_does_not_say_when_it_ended_has_ended_all_the_same(state: Any) -> None:
    ended = changed(POD, "status.phase", "Succeeded")
    found = read(changed(ended, "status.containerStatuses", [{"name": "c", "state": state}]))
    assert (found.phase, found.finish_time, found.closes_node) == ("Succeeded", None, False)
    assert found.unparsable[0].startswith("status.containerStatuses[0].state")


@pytest.mark.parametrize("amount", ["1E", "9223372036854775808", 10**30])
@pytest.mark.parametrize("resource", ["example.com/x", "hugepages-1Gi"])
def test_more_than_an_int64_holds_is_the_largest_amount_that_a_node_offers(resource: str, amount: Any) -> None:
    raw = changed(NODE, "status.allocatable", {"memory": "8Gi", "pods": "10", resource: amount})
    node = Decoder().read(raw).value
    assert isinstance(node, Node)
    assert (node.unparsable, node.unschedulable) == ((), False)
    assert node.allocatable.get(resource) > 1e18
