"""What must hold of an answer, worked out from the input as it was written, by arithmetic of its own.

Only what is beyond doubt is judged: where an object is given twice, or an amount is none, any decision is accepted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from tests.fuzz.cards import OF_NODES

Raw = dict[str, Any]
GROUP = "scheduling.k8s.io/group-name"
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {f"{letter}i": 1024**i for i, letter in enumerate("KMGTPE", 1)}
_AMOUNT = re.compile(r"\+?([0-9]{1,30})(?:\.([0-9]{1,12}))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([0-9]{1,2}))?")
_VERSIONS = {"Pod": "v1", "Node": "v1", "PodGroup": "scheduling.volcano.sh/v1beta1"}
_NAME = re.compile(r"[^\s/]{1,253}")  # as wide as the reader's rule
#: Cores beyond which no pod is counted: their thousandths are more than 64 bits hold.
_CORES_MAX = Fraction(2**63, 1000)
_ENDED = ("Succeeded", "Failed")
_SLACK = Fraction(1, 1000)


def amount(value: Any) -> Fraction | None:
    """A quantity, exactly; None for what is none, or is written in a way that is not judged here."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    match = _AMOUNT.fullmatch(str(value)) if len(str(value)) < 60 else None
    if match is None:
        return None
    whole, fraction, suffix, exponent = match[1], match[2] or "", match[3] or "", match[4]
    number = Fraction(int(whole + fraction), 10 ** len(fraction))
    if exponent:
        return number * 10 ** int(exponent)
    if suffix in _BINARY:
        return number * _BINARY[suffix]
    return number * Fraction(10) ** _POWERS[suffix]


class Input:
    """The objects of an input, by kind and key; those that are given more than once are left out, and known."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self.by_kind: dict[str, dict[str, Raw]] = {}
        self.unsure: set[str] = set()  # gangs with a pod that is given more than once
        counts: Counter[tuple[str, str]] = Counter()
        groups: dict[str, set[str]] = {}
        for obj in filter(_is_named, objects):
            kind, key = str(_at(obj, "kind")), _key(obj)
            if kind == "Pod":
                groups.setdefault(key, set()).add(_group_of(obj))
            counts[kind, key] += 1
            self.by_kind.setdefault(kind, {})[key] = obj
        for (kind, key), count in counts.items():
            if count > 1:
                del self.by_kind[kind][key]
                self.unsure |= groups.get(key, set()) if kind == "Pod" else set()
        self.doubled = {key for (_, key), count in counts.items() if count > 1}

    def of(self, kind: str) -> dict[str, Raw]:
        return self.by_kind.get(kind, {})


def _at(obj: Any, *path: str) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _group_of(pod: Any) -> str:
    group = _at(pod, "metadata", "annotations", GROUP)
    return f"{_at(pod, 'metadata', 'namespace') or 'default'}/{group}" if isinstance(group, str) and group else ""


def _is_named(obj: Any) -> bool:
    """An object without a name, or of a version that does not exist, is none: no API server has such a thing."""
    if _VERSIONS.get(str(_at(obj, "kind"))) not in (None, _at(obj, "apiVersion")):
        return False
    metadata = _at(obj, "metadata")
    parts = (_at(metadata, "name"), _at(metadata, "namespace") or "default")
    return all(isinstance(part, str) and part.isprintable() and _NAME.fullmatch(part) is not None for part in parts)


def _key(obj: Any) -> str:
    name, namespace = _at(obj, "metadata", "name"), _at(obj, "metadata", "namespace")
    wide = _at(obj, "kind") in ("Node", "Queue", "HyperNode", "PriorityClass")
    return str(name) if wide else f"{namespace or 'default'}/{name}"


#: What a cordon is to a pod: a taint that it may tolerate.
_CORDON: Raw = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def broken(given: Input, binds: Mapping[str, str], evicts: Iterable[str]) -> Iterator[str]:
    """Every law that an answer breaks."""
    pods, nodes, evicted = given.of("Pod"), given.of("Node"), set(evicts)
    for key, node in binds.items():
        if node not in nodes and node not in given.doubled:
            yield f"{key} is bound to {node}, which is not there"
        if key in pods:
            yield from _of_pod(key, pods[key], nodes.get(node))
    yield from _room(given, binds, evicted)
    yield from _gangs(given, binds)


def _of_pod(key: str, pod: Raw, node: Raw | None) -> Iterator[str]:
    """One binding a pod, and only of one that waits; where its selector and the node's taints let it."""
    if _at(pod, "spec", "nodeName"):
        yield f"{key} is bound and was bound before"
    if _at(pod, "status", "phase") in _ENDED or _at(pod, "metadata", "deletionTimestamp"):
        yield f"{key} is bound and has ended, or is going"
    if _at(pod, "spec", "schedulingGates"):
        yield f"{key} is bound and is gated"
    if (_at(pod, "spec", "schedulerName") or "volcano") != "volcano":
        yield f"{key} is bound and is another scheduler's"
    if node is None:
        return
    tolerations = _items(_at(pod, "spec", "tolerations"))
    if _at(node, "spec", "unschedulable") and not _tolerated(_CORDON, tolerations):
        yield f"{key} is bound to a node that is cordoned"
    labels = _at(node, "metadata", "labels")
    selector = _at(pod, "spec", "nodeSelector")
    for name, value in selector.items() if isinstance(selector, dict) else ():
        if not isinstance(labels, dict) or (labels.get(name) or "") != (value or "") or name not in labels:
            yield f"{key} is bound against its selector {name}"
    for taint in _items(_at(node, "spec", "taints")):
        if _at(taint, "effect") != "PreferNoSchedule" and not _tolerated(taint, tolerations):
            yield f"{key} is bound to a node with a taint that it does not tolerate"


def _tolerated(taint: Raw, tolerations: Iterable[Any]) -> bool:
    for each in tolerations:
        if _at(each, "effect") not in (None, "", taint.get("effect")):
            continue
        if _at(each, "operator") == "Exists" and _at(each, "key") in (None, "", taint.get("key")):
            return True
        if _at(each, "key") == taint.get("key") and (_at(each, "value") or "") == (taint.get("value") or ""):
            return True
    return False


# -- room


def _room(given: Input, binds: Mapping[str, str], evicted: set[str]) -> Iterator[str]:
    """No node that gets a pod is over its allocatable then, by what is certain about the pods on it."""
    pods, nodes = given.of("Pod"), given.of("Node")
    made = dict(_made_pods(given))
    held: dict[str, dict[str, Fraction]] = {}
    asked: dict[str, dict[str, Fraction]] = {}  # by those that come: a node may be over in what they do not ask for
    for key, pod in pods.items():
        where = binds.get(key) or _at(pod, "spec", "nodeName")
        if isinstance(where, str) and where and key not in evicted and _at(pod, "status", "phase") not in _ENDED:
            for sums in (held, asked) if key in binds else (held,):
                _hold(sums, where, _at(pod, "spec"), _at(pod, "status"))
    for key, where in binds.items():
        if key in made and key not in pods:
            for sums in (held, asked):
                _hold(sums, where, made[key], None)
    for name in sorted(set(binds.values()) & nodes.keys()):
        node = nodes[name]
        said = _at(node, "metadata", "annotations")
        if said and not (isinstance(said, dict) and said.keys() <= OF_NODES):
            continue  # they may say that a node has more room
        room = _at(node, "status", "allocatable")
        for resource, sum_ in held.get(name, {}).items():
            there = amount(room.get(resource, 0)) if isinstance(room, dict) else Fraction(0)
            if there is not None and resource == "pods":
                there = Fraction(math.ceil(there))  # a whole number, rounded up as Kubernetes' Value() does
            if there is not None and sum_ > there + _SLACK and asked.get(name, {}).get(resource):
                yield f"node {name} has {float(there)} of {resource} and holds {float(sum_)}"


def _hold(held: dict[str, dict[str, Fraction]], node: str, spec: Any, status: Any) -> None:
    """Add what a pod surely takes: the requests of its containers, and itself."""
    sums = held.setdefault(node, {})
    sums["pods"] = sums.get("pods", Fraction(0)) + 1
    if _at(spec, "resources") or _at(status, "containerStatuses") or _at(status, "initContainerStatuses"):
        return  # pod-level amounts and resizes replace what containers say
    for container in _items(_at(spec, "containers")):
        requests = _at(container, "resources", "requests")
        for resource in ("cpu", "memory", "nvidia.com/gpu"):
            found = amount(requests.get(resource)) if isinstance(requests, dict) else None
            if found is not None and found < _CORES_MAX:
                sums[resource] = sums.get(resource, Fraction(0)) + found


# -- gangs


def _made_pods(given: Input) -> Iterator[tuple[str, Any]]:
    """The pods that a Volcano Job makes: key and spec."""
    for key, job in given.of("Job").items():
        tasks = _at(job, "spec", "tasks") if _at(job, "apiVersion") == "batch.volcano.sh/v1alpha1" else None
        for i, task in enumerate(_items(tasks)):
            replicas = _at(task, "replicas")
            count = 1 if replicas is None else replicas if isinstance(replicas, int) else 0
            for n in range(min(count, 1_000)):
                yield f"{key}-{_at(task, 'name') or f'default{i}'}-{n}", _at(task, "template", "spec")


def _asks_for_nothing(spec: Any) -> bool:
    """Whether a pod has no amount of anything, as far as it can be read."""
    asking = [spec, *_items(_at(spec, "containers")), *_items(_at(spec, "initContainers"))]
    given = [_at(one, "resources", part) for one in asking for part in ("requests", "limits")]
    amounts = [
        amount(value) for one in [*given, _at(spec, "overhead")] if isinstance(one, dict) for value in one.values()
    ]
    return not any(amounts)


def _gangs(given: Input, binds: Mapping[str, str]) -> Iterator[str]:
    """A gang is bound whole or not at all: with what runs of it already, at least its minimum.

    Pods that ask for nothing count while they wait, as Volcano has it (a job is ready with its pending best-effort
    tasks): backfill takes them later, or cannot.
    """
    pods = given.of("Pod")
    bound: Counter[str] = Counter()
    free: Counter[str] = Counter()
    new: Counter[str] = Counter()
    for key, pod in pods.items():
        there = _at(pod, "spec", "nodeName") and _at(pod, "status", "phase") != "Failed"
        bound[_group_of(pod)] += bool(there or key in binds)
        free[_group_of(pod)] += not there and key not in binds and _asks_for_nothing(_at(pod, "spec"))
        new[_group_of(pod)] += key in binds
    for key, group in given.of("PodGroup").items():
        least = _at(group, "spec", "minMember")
        if new[key] and isinstance(least, int) and bound[key] + free[key] < least and key not in given.unsure:
            yield f"{new[key]} pods of gang {key} are bound, {bound[key]} with those that run: it needs {least}"
