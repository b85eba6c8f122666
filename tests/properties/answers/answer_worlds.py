"""Random clusters in each language in which some jobs run and others wait, for many kinds of reasons."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.world import Trials, World
from pumice.framework.plugin.policy_file import Policy
from pumice.kai.table import DEFAULT_PLUGINS
from pumice.model.events import Object
from pumice.model.manifest import Decoder
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.volcano.table import DEFAULT_CONF
from tests.properties.answers.claimed_worlds import after, claimed

Raw = dict[str, Any]
LANGUAGES = ("volcano", "kai")
NOW = 1_704_110_400.0
_GPU = "nvidia.com/gpu"
_CAPACITY = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}, {name: binpack},
    {name: network-topology-aware}]
"""


#: Queues in a tree, and ResourceQuotas.
_TREE = _CAPACITY.replace("{name: capacity}", "{name: capacity, enableHierarchy: true}, {name: resourcequota}")
#: Room is kept for the oldest jobs.
_RESERVE = "{name: ours/reserve, arguments: {after: 0s, %s}}, {name: priority}"


class Size(Struct, frozen=True):
    """How many nodes and jobs a world has. ``has_trees``: queues of Volcano may be a tree, and ResourceQuotas limit
    jobs."""

    nodes: tuple[int, int]
    jobs: tuple[int, int]
    has_trees: bool = False


MEDIUM, SMALL = Size((1, 5), (2, 6)), Size((1, 3), (2, 3))
#: Of walks over many seeds: a cluster that can be checked in a quarter of a second, and one of ten that takes longer.
WALK, WALK_LARGE = Size((2, 6), (2, 3), has_trees=True), Size((4, 8), (3, 6), has_trees=True)


@lru_cache(maxsize=8)
def policies(language: str) -> list[Policy]:
    if language == "kai":
        names = ", ".join(f"{{name: {name}}}" for name in DEFAULT_PLUGINS)
        return [policy_of(f"dialect: kai\ntiers:\n- plugins: [{names}]\n", builtin_registry())]
    return [policy_of(text, builtin_registry()) for text in (DEFAULT_CONF, _CAPACITY)]


@lru_cache(maxsize=1)
def _policy_of_trees() -> Policy:
    return policy_of(_TREE, builtin_registry())


@lru_cache(maxsize=1)
def reserving_policies() -> list[Policy]:
    """Return policies of Volcano's language with ``ours/reserve``, which no action of KAI's asks."""
    quiet = _CAPACITY.replace("preempt, reclaim, ", "").replace("{name: overcommit}, ", "")
    each = ("reservations: 1", "reservations: 3", "reservations: 1, backfill: false")
    return [
        policy_of(text.replace("{name: priority}", _RESERVE % more, 1), builtin_registry())
        for text in (_CAPACITY, quiet)
        for more in each
    ]


def random_world(
    dice: random.Random, language: str, *, claims: bool = True, reserves: bool = False, size: Size = MEDIUM
) -> World:
    """Return a world in which the first jobs have been placed by a cycle and run, and the others have come since.
    ``claims``: some claim volumes, devices or parts of GPUs. ``reserves``: room is kept for the oldest jobs, and most
    jobs say how long they run."""
    policy = dice.choice(reserving_policies() if reserves else policies(language))
    nodes = _nodes(dice, *size.nodes)
    is_tree = size.has_trees and language == "volcano" and dice.random() < 0.3
    policy = _policy_of_trees() if is_tree and not reserves else policy
    queues = list(_tree(dice) if is_tree else _queues(dice, language))
    parents = {each["spec"].get("parentQueue", each["spec"].get("parent")) for each in queues}
    leaves = [each["metadata"]["name"] for each in queues if each["metadata"]["name"] not in parents]
    jobs = [_job(dice, f"j{i}", leaves, language) for i in range(dice.randint(*size.jobs))]
    beside = [_raw("scheduling.k8s.io/v1", "PriorityClass", name, value=value) for name, value in _CLASSES.items()]
    beside += _topology(nodes, language)
    if is_tree and dice.random() < 0.5:
        beside.append(_resource_quota(dice))
    # Last, so that all else of a seed is as it was before there were claims.
    if claims:
        beside += claimed(dice, nodes, jobs, is_kai=language == "kai")
    if reserves:
        _estimate(dice, jobs)
    first = max(1, len(jobs) // 2)
    old = [each for job in jobs[:first] for each in job]
    new = [each for job in jobs[first:] for each in job]
    names = (policy.dialect.scheduler,)
    decoder = Decoder()
    base: list[Object] = [decoder.decode(each) for each in (*nodes, *queues, *beside, *old)]  # type: ignore[misc]
    world = World([each for each in base if each is not None], policy, NOW, names)
    base_cycle = Trials(world, 0).base
    binds = base_cycle.binds
    running = {key.rpartition("-")[0] for key in binds}
    given = after(base_cycle.decisions, list(world.objects.values()))
    placed = [_running(each, binds, running) for each in given]
    later = [decoder.decode(each) for each in new]
    return World([*placed, *(each for each in later if each is not None)], policy, NOW, names)  # type: ignore[list-item]


def _running(obj: Object, binds: dict[str, str], jobs: set[str]) -> Object:
    if isinstance(obj, Pod) and obj.key in binds:
        return replace(obj, node_name=binds[obj.key], phase="Running", start_time=NOW - 3600.0)
    if isinstance(obj, PodGroup) and obj.key in jobs:
        return replace(obj, status=replace(obj.status, phase="Running"))
    return obj


_CLASSES = {"low": 50, "high": 75}


def _raw(version: str, kind: str, name: str, **more: Any) -> Raw:
    metadata = {"name": name, "uid": f"{kind}-{name}", **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def _nodes(dice: random.Random, least: int, most: int) -> list[Raw]:
    found = []
    for i in range(dice.randint(least, most)):
        labels = {"kubernetes.io/hostname": f"n{i}", "zone": f"z{i % 2}", "rack": f"r{i // 2}"}
        room = {"cpu": str(dice.choice((4, 8, 16))), "memory": "32Gi", "pods": str(dice.choice((2, 110, 110)))}
        if dice.random() < 0.6:
            room[_GPU] = str(dice.choice((1, 2, 4)))
            labels["nvidia.com/gpu.memory"] = "40000"
        spec: Raw = {}
        if dice.random() < 0.2:
            spec["taints"] = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
        if dice.random() < 0.1:
            spec["unschedulable"] = True
        status = {"allocatable": room, "capacity": room}
        found.append(_raw("v1", "Node", f"n{i}", metadata={"labels": labels}, spec=spec, status=status))
    return found


def _queues(dice: random.Random, language: str) -> Any:
    for i in range(dice.randint(1, 2)):
        if language == "kai":
            yield _kai_queue(dice, f"q{i}", "")
            yield _kai_queue(dice, f"q{i}-a", f"q{i}")
            continue
        yield _queue(dice, f"q{i}")


def _queue(dice: random.Random, name: str) -> Raw:
    spec: Raw = {"weight": dice.randint(1, 3)}
    if dice.random() < 0.4:
        spec["capability"] = {"cpu": str(dice.randint(2, 10)), "memory": "16Gi", _GPU: str(dice.randint(0, 4))}
    if dice.random() < 0.2:
        spec["guarantee"] = {"resource": {"cpu": str(dice.randint(1, 4))}}
    state = "Closed" if dice.random() < 0.05 else "Open"
    return _raw("scheduling.volcano.sh/v1beta1", "Queue", name, spec=spec, status={"state": state})


def _tree(dice: random.Random) -> Iterator[Raw]:
    """Yield queues of Volcano under a root: one above two, and one beside it. What a queue guarantees, those above it
    must, so that only the first ones do."""
    yield _raw("scheduling.volcano.sh/v1beta1", "Queue", "root", spec={"weight": 1}, status={"state": "Open"})
    for name, parent in (("q0", "root"), ("q1", "root"), ("q0-a", "q0"), ("q0-b", "q0")):
        queue = _queue(dice, name)
        spec = {**queue["spec"], "parent": parent}
        if dice.random() < 0.5:
            spec["deserved"] = {"cpu": str(dice.randint(1, 8)), "memory": "32Gi", _GPU: str(dice.randint(0, 2))}
        if parent != "root":
            spec.pop("guarantee", None)
        yield {**queue, "spec": spec}


def _resource_quota(dice: random.Random) -> Raw:
    hard = {"requests.cpu": str(dice.randint(4, 24))}
    used = {"requests.cpu": str(dice.randint(0, 8))}
    spec, status = {"hard": hard}, {"hard": hard, "used": used}
    return _raw("v1", "ResourceQuota", "quota", metadata={"namespace": "ns"}, spec=spec, status=status)


def _kai_queue(dice: random.Random, name: str, parent: str) -> Raw:
    def amounts(high: int, unit: int) -> Raw:
        quota = -1 if dice.random() < 0.4 else unit * dice.randint(0, high)
        limit = -1 if dice.random() < 0.7 or quota < 0 else quota + unit * dice.randint(0, high)
        return {"quota": quota, "limit": limit, "overQuotaWeight": 1}

    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": amounts(4, 1), "cpu": amounts(8, 1000) if dice.random() < 0.3 else free, "memory": free}
    spec = {"resources": resources, "priority": 100, "parentQueue": parent}
    return _raw("scheduling.run.ai/v2", "Queue", name, spec=spec)


def _topology(nodes: list[Raw], language: str) -> list[Raw]:
    if language == "kai":
        levels = {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]}
        return [_raw("kai.scheduler/v1alpha1", "Topology", "racks", spec=levels)]
    racks: dict[str, list[str]] = {}
    for node in nodes:
        racks.setdefault(node["metadata"]["labels"]["rack"], []).append(node["metadata"]["name"])
    found = []
    for rack, names in racks.items():
        members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]
        found.append(_raw("topology.volcano.sh/v1alpha1", "HyperNode", rack, spec={"tier": 1, "members": members}))
    return found


def _job(dice: random.Random, name: str, leaves: list[str], language: str) -> list[Raw]:
    size = dice.randint(1, 4)
    least = size if dice.random() < 0.7 else dice.randint(1, size)
    requests = {"cpu": str(dice.choice((1, 2, 4, 8))), "memory": f"{dice.choice((1, 4, 16))}Gi"}
    if dice.random() < 0.4:
        requests[_GPU] = str(dice.choice((1, 1, 2)))
    spec: Raw = {"queue": dice.choice(leaves), "minMember": least, "priorityClassName": dice.choice(list(_CLASSES))}
    if language == "kai":
        version = "scheduling.run.ai/v2alpha2"
        if dice.random() < 0.15:
            spec["topologyConstraint"] = {"topology": "racks", "requiredTopologyLevel": dice.choice(("zone", "rack"))}
    else:
        version = "scheduling.volcano.sh/v1beta1"
        if dice.random() < 0.6:
            spec["minResources"] = {"cpu": str(int(requests["cpu"]) * least)}
        if dice.random() < 0.15:
            spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    pod = _pod_spec(dice, name, requests)
    pod["schedulerName"] = "kai-scheduler" if language == "kai" else "volcano"
    pod["priorityClassName"] = spec["priorityClassName"]
    exist = size - (1 if dice.random() < 0.05 else 0)
    metadata: Raw = {"namespace": "ns", "creationTimestamp": "2024-01-01T10:00:00Z"}
    found = [_raw(version, "PodGroup", name, metadata=metadata, spec=spec, status={"phase": "Pending"})]
    for i in range(exist):
        notes = {GROUP_NAME_ANNOTATION: name}
        own = {"namespace": "ns", "annotations": notes, "labels": {"app": name, "tier": "web"}}
        own["creationTimestamp"] = "2024-01-01T10:00:00Z"
        found.append(_raw("v1", "Pod", f"{name}-{i}", metadata=own, spec=pod, status={"phase": "Pending"}))
    return found


def _estimate(dice: random.Random, jobs: list[list[Raw]]) -> None:
    """Let most jobs say how long they run, of which one hour has passed for those that run, and be admitted before:
    room is kept for admitted jobs only."""
    for group, *_ in jobs:
        if dice.random() < 0.8:
            group["metadata"]["annotations"] = {ESTIMATE_ANNOTATION: dice.choice(("30m", "90m", "3h", "2d"))}
        if dice.random() < 0.8:
            group["status"] = {"phase": "Inqueue"}


def _pod_spec(dice: random.Random, name: str, requests: Raw) -> Raw:
    container: Raw = {"name": "main", "image": "busybox", "resources": {"requests": requests}}
    spec: Raw = {"containers": [container]}
    one = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
    web = {"labelSelector": {"matchLabels": {"tier": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    match dice.randint(0, 19):
        case 0 | 1:
            spec["nodeSelector"] = {"zone": dice.choice(("z0", "z1", "z2"))}
        case 2 | 3:
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}
        case 4:
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [web]}}
        case 5:
            near = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "zone"}
            spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
        case 6 | 7:
            container["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
        case 8:
            spec["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"app": name}}}]
        case 9:
            spec["schedulingGates"] = [{"name": "example.com/hold"}]
        case 10 | 11:
            spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        case 12:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]
    return spec
