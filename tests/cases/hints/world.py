"""The words of the cases as manifests: so that what a case says is what a user would write.

``node: {name: a, cpu: 4, gpu: 8}``, ``queue: {name: team, capability: {gpu: 8}}``, ``hypernode: {name: r1, tier: 1,
nodes: [a, b]}``, ``gang: {name: ask, pods: 4, gpu: 1}`` (running with ``at: a`` or a list of nodes), ``pod: {…}`` for
one by itself. Amounts are cores, GiB and GPUs; ``more`` has others by their full names.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

Raw = dict[str, Any]

NAMESPACE = "ns"
_NAMES = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"}


def manifests(entries: Iterable[Mapping[str, Any]], changes: Iterable[Mapping[str, Any]] = ()) -> list[Raw]:
    """Every object of a case, with ``changes``: an entry of the same word and name is replaced, others are added;
    ``gone: name`` takes away what has that name."""
    kept = [dict(entry) for entry in entries]
    for change in changes:
        (word, said), *_ = change.items()
        name = said if word == "gone" else said.get("name", "")
        place = next(
            (i for i, each in enumerate(kept) if _named(each) == name and (word == "gone" or word in each)), None
        )
        if word == "gone":
            assert place is not None, f"nothing is called {name}"
            del kept[place]
        elif place is None:
            kept.append({word: said})
        else:
            kept[place] = {word: {**kept[place][word], **said}}
    found: list[Raw] = []
    for entry in kept:
        (word, said), *_ = entry.items()
        found += _WORDS[word](copy.deepcopy(said))
    return found


def _named(entry: Mapping[str, Any]) -> str:
    (said,) = entry.values()
    return str(said.get("name", said.get("metadata", {}).get("name", "")))


def _amounts(said: Mapping[str, Any]) -> dict[str, str]:
    given = {**{key: said[key] for key in _NAMES if key in said}, **said.get("more", {})}
    return {_NAMES.get(key, key): f"{value}Gi" if key == "memory" else str(value) for key, value in given.items()}


def _node(said: Raw) -> list[Raw]:
    room = {"cpu": "32", "memory": "256Gi", "pods": str(said.get("pods", 110)), **_amounts(said)}
    labels = {"kubernetes.io/hostname": said["name"], **said.get("labels", {})}
    spec = {"taints": said.get("taints", []), "unschedulable": said.get("cordoned", False)}
    status = {"allocatable": room, "capacity": room}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": said["name"], "labels": labels},
            "spec": spec,
            "status": status,
        }
    ]


def _queue(said: Raw) -> list[Raw]:
    spec: Raw = {"weight": said.get("weight", 1)}
    if "capability" in said:
        spec["capability"] = _amounts(said["capability"])
    if "guarantee" in said:
        spec["guarantee"] = {"resource": _amounts(said["guarantee"])}
    group = "scheduling.volcano.sh/v1beta1"
    return [
        {
            "apiVersion": group,
            "kind": "Queue",
            "metadata": {"name": said["name"]},
            "spec": spec,
            "status": {"state": said.get("state", "Open")},
        }
    ]


def _gang(said: Raw) -> list[Raw]:
    name, count, on = said["name"], said.get("pods", 1), said.get("at")
    places = [None] * count if on is None else [on] * count if isinstance(on, str) else on
    least = said.get("min", count)
    spec: Raw = {"minMember": least, "queue": said.get("queue", "team")}
    asked = _amounts(said)
    if said.get("min_resources", True):
        spec["minResources"] = {key: _times(value, least) for key, value in asked.items()}
    for key in ("networkTopology", "minTaskMember", "priorityClassName"):
        if key in said:
            spec[key] = said[key]
    phase = said.get("phase", "Pending" if on is None else "Running")
    meta = {"name": name, "namespace": NAMESPACE, "creationTimestamp": _stamp(said.get("age", 0))}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": phase},
    }
    made = [_one_pod({**said, "name": f"{name}-{i}", "group": name, "at": place}) for i, place in enumerate(places)]
    return [group, *made] if said.get("grouped", True) else made


def _times(value: str, count: int) -> str:
    return f"{int(value[:-2]) * count}Gi" if value.endswith("Gi") else str(int(value) * count)


def _one_pod(said: Raw) -> Raw:
    annotations = {"scheduling.k8s.io/group-name": said["group"]} if "group" in said else {}
    annotations |= {"volcano.sh/task-spec": said.get("role", "worker")}
    spec: Raw = {"schedulerName": said.get("scheduler", "volcano"), **said.get("spec", {})}
    container = {
        "name": "main",
        "resources": {"requests": _amounts(said), "limits": _amounts(said)},
        **said.get("container", {}),
    }
    spec["containers"] = [container]
    meta = {"name": said["name"], "namespace": NAMESPACE, "labels": said.get("labels", {}), "annotations": annotations}
    if said.get("leaving"):
        meta["deletionTimestamp"] = _stamp(0)
    if said.get("at"):
        spec["nodeName"] = said["at"]
    phase = "Running" if said.get("at") else "Pending"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}


def _hypernode(said: Raw) -> list[Raw]:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in said.get("nodes", ())]
    members += [
        {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}} for name in said.get("hypernodes", ())
    ]
    spec = {"tier": said["tier"], "members": members}
    return [
        {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": said["name"]},
            "spec": spec,
        }
    ]


def _stamp(age: int) -> str:
    """The larger, the older."""
    return f"2024-01-01T{12 - age:02d}:00:00Z"


_WORDS = {
    "node": _node,
    "queue": _queue,
    "gang": _gang,
    "pod": lambda said: [_one_pod(said)],
    "hypernode": _hypernode,
}
