"""Workloads that a tenant may create to stop the scheduler, in the words of a language.

All that a tenant writes is a manifest, read as one. What a cycle costs must stay bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from pumice.model.events import Object
from pumice.model.manifest.decoder import Decoder
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod, PodSpec
from pumice.model.queue import PriorityClass, Queue, QueueSharing, Quota
from pumice.model.resources import PODS, Resource
from pumice.model.topology import HyperNode, HyperNodeMember, Topology
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.job import BatchJob, VolcanoJob
from pumice.model.workloads.job_makers import JobMaker
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.sim.fuzz.dice import Dice
from pumice.sim.workloads.hostile_devices import DEVICES, GROUP_API, device_slices
from pumice.sim.workloads.hostile_gangs import UNLIKE
from pumice.sim.workloads.hostile_lists import LISTS
from pumice.sim.workloads.hostile_storms import GPU, GPUS, Storm, claims_of

Raw = dict[str, Any]

NAMESPACE = "tenant"
VOLCANO, KAI = "volcano", "kai"
#: By the name of a language: what its pods call their scheduler.
SCHEDULERS = {VOLCANO: "volcano", KAI: "kai-scheduler"}
#: How many times the bound a list has that is longer than it may be.
OVER = 10
#: Of the dice with which gangs that differ are made.
SEED = 27

_HOSTNAME, _RACK, _BLOCK = "kubernetes.io/hostname", "rack", "block"
_CREATED, _EPOCH = "2024-01-01T00:00:00Z", 1_704_067_200.0
_GI = float(1 << 30)
#: Cores of a node, and of a pod that fits on none.
_CORES, _TOO_MANY = 64, 65
_RUNNING_CORES = 8
_QUEUES = 50
_LOW, _HIGH = "low", "high"
_PRIORITIES = {_LOW: 50, _HIGH: 1000}
_SUB_GROUPS = 300


class Scenario(Struct, frozen=True):
    """What one tenant creates. ``made``: yields the objects in a language, with about so many pods. ``languages``:
    those that have the scenario. ``full``: pods of others fill the cluster. ``devices``: nodes offer devices."""

    made: Callable[[str, int], Iterator[Raw]]
    languages: tuple[str, ...] = (VOLCANO, KAI)
    full: bool = False
    devices: bool = False


def build_hostile(scenario: str, language: str, nodes: int, pods: int) -> Iterator[Object]:
    """Yield the cluster and the objects of a scenario. Raises: ValueError for an unknown scenario and for sizes that
    make no workload."""
    if scenario not in HOSTILE or language not in HOSTILE[scenario].languages:
        raise ValueError(f"scenario: found {scenario!r}, wanted one of {', '.join(HOSTILE)}")
    for name, count in (("nodes", nodes), ("pods", pods)):
        if not 1 <= count <= 100_000:
            raise ValueError(f"{name}: found {count}, wanted 1 to 100,000")
    chosen = HOSTILE[scenario]
    yield from _cluster(nodes)
    if chosen.full:
        yield from _others(language, nodes)
    if chosen.devices:
        yield from device_slices(nodes)
    decoder = Decoder(default_scheduler=SCHEDULERS[language])
    for raw in chosen.made(language, pods):
        value = decoder.read(raw).value
        assert not isinstance(value, VolcanoJob | BatchJob | JobMaker)
        yield value


def build_storm(storm: Storm, language: str, nodes: int) -> Iterator[Object]:
    """Yield a cluster and a storm in a language."""
    has_claims = "claims" in storm.fields
    yield from _cluster(nodes, GPUS if "shares" in storm.fields else 0)
    if storm.full:
        yield from _others(language, nodes)
    if has_claims:
        yield from device_slices(nodes)
    decoder = Decoder(default_scheduler=SCHEDULERS[language])
    for raw in _of_storm(storm, language):
        value = decoder.read(raw).value
        assert not isinstance(value, VolcanoJob | BatchJob | JobMaker)
        yield value


def _of_storm(storm: Storm, language: str) -> Iterator[Raw]:
    """Yield the objects that the tenant writes."""
    yield from claims_of(storm, NAMESPACE)
    for i, each in enumerate(storm.gangs):
        if "claims" in storm.fields:
            yield DEVICES["cel" if i % 2 else "claims"](NAMESPACE, i)
        where = {} if each.level < 0 else _within(language, each.level, each.parts, len(each.cores) // each.parts)
        group, priority = {"queue": f"q{each.queue:02d}", **where, **each.group}, _HIGH if each.is_high else ""
        parts = _gang(language, f"g{i}", each.cores, group, {}, priority, parts=each.parts, specs=each.specs)
        for raw in parts:
            if raw["kind"] == "Pod" and each.share:
                _ask_for_gpus(raw, each.share, language)
            yield raw


def _ask_for_gpus(pod: Raw, share: float, language: str) -> None:
    """Add a request for a part of a GPU, in KAI's language, or for whole ones."""
    if language == KAI and share < 1:
        pod["metadata"]["annotations"] = {**pod["metadata"]["annotations"], "gpu-fraction": f"{share}"}
    else:
        pod["spec"]["containers"][0]["resources"]["requests"][GPU] = f"{max(1, int(share))}"


# -- the cluster


def _cluster(nodes: int, gpus: int = 0) -> Iterator[Object]:
    """Yield nodes in racks of 10 and blocks of 10 racks, in the terms of both languages, queues and priorities."""
    unlimited = Quota(None, None, 1.0)
    for i in range(nodes):
        name = f"node-{i:05d}"
        labels = {_HOSTNAME: name, _RACK: f"r{i // 10}", _BLOCK: f"b{i // 100}", "zone": f"zone-{i % 4}"}
        scalars = {PODS: 110.0, **({GPU: 1000.0 * gpus} if gpus else {})}
        room = Resource(1000.0 * _CORES, 256.0 * _GI, scalars, 110)
        yield Node(name, room, room, uid=name, labels=labels)
    for name in ("default", "others", *(f"q{i:02d}" for i in range(_QUEUES))):
        yield Queue(name, sharing=QueueSharing(unlimited, unlimited, unlimited))
    yield from (PriorityClass(name, value) for name, value in _PRIORITIES.items())
    yield Topology("topology", (_BLOCK, _RACK, _HOSTNAME))
    for tier, size, child, kind in ((1, 10, "node-{:05d}", "Node"), (2, 100, "rack-{:03d}", "HyperNode")):
        for i in range(-(-nodes // size)):
            members = tuple(HyperNodeMember(kind, exact=child.format(10 * i + k)) for k in range(10))
            yield HyperNode(f"{'rack' if tier == 1 else 'block'}-{i:03d}", tier, members)


def _others(language: str, nodes: int) -> Iterator[Object]:
    """Yield pods of low priority that fill the cluster, each in a group of its own, half of them in the tenant's
    queue."""
    gang = Gang() if language == KAI else None
    request = Resource(1000.0 * _RUNNING_CORES, _GI, {PODS: 1.0})
    spec = PodSpec(request, priority=_PRIORITIES[_LOW], priority_class_name=_LOW)
    for i in range(nodes * _CORES // _RUNNING_CORES):
        name, creation = f"run-{i:05d}", _EPOCH - 1000.0
        status = PodGroupStatus("Running", running=1)
        queue = "default" if i % 2 else "others"
        yield PodGroup(
            "others", name, name, queue, 1, priority_class_name=_LOW, creation=creation, status=status, gang=gang
        )
        yield Pod(
            "others",
            name,
            name,
            spec,
            creation,
            annotations={GROUP_NAME_ANNOTATION: name},
            scheduler_name=SCHEDULERS[language],
            node_name=f"node-{i % nodes:05d}",
            phase="Running",
        )


# -- what a tenant writes


def _lists(language: str, pods: int) -> Iterator[Raw]:
    """Yield pods with each kind of list in turn: once at its bound, once above it."""
    kinds = list(LISTS.values())
    for i in range(pods):
        most, of = kinds[i % len(kinds)]
        entries = most * OVER if i // len(kinds) % 2 else most
        yield from _gang(language, f"p{i}", [0.01], {}, of(i, entries))


def _topology(language: str, pods: int) -> Iterator[Raw]:
    """Yield unlike gangs within one rack or block, in turn: with a pod that fits on no node; larger than each domain;
    with sub-groups, of which one is larger than each rack."""
    for i in range(max(pods // 8, 1)):
        level, unlike = i % 2 if i % 3 < 2 else 0, 0.001 * i
        match i % 3:
            case 0:
                cores = [1 + unlike] * 7 + [_TOO_MANY]
            case 1:
                cores = [_CORES - 1 - unlike] * (11 if level == 0 else 101)
            case _:
                cores = [_CORES - 1 - unlike] * 22
        yield from _gang(language, f"g{i}", cores, _within(language, level, 2 if i % 3 == 2 else 1), {}, _HIGH, parts=2)


def _within(language: str, level: int, parts: int = 1, size: int = 11) -> Raw:
    """Return the fields of a group that must be within one rack (level 0) or block, or of which each part must be."""
    if language == VOLCANO:
        topology: Raw = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1 + level}}
        policy = {"name": "part", "subGroupSize": size, "matchLabelKeys": ["part"], **topology}
        return {"subGroupPolicy": [policy]} if parts > 1 else topology
    topology = {"topologyConstraint": {"topology": "topology", "requiredTopologyLevel": (_RACK, _BLOCK)[level]}}
    groups = [{"name": f"part{k}", "minMember": size, **topology} for k in range(parts)]
    return {"subGroups": groups} if parts > 1 else topology


def _victims(language: str, pods: int) -> Iterator[Raw]:
    """Yield gangs of three, of which one pod fits nowhere, in the queue of the running pods and in another."""
    for i in range(max(pods // 3, 1)):
        cores = [1 + 0.001 * i, 1.0, _TOO_MANY]
        queue = "default" if i % 2 else f"q{i % _QUEUES:02d}"
        yield from _gang(language, f"g{i}", cores, {"queue": queue}, {}, _HIGH if i % 4 < 2 else "")


def _tries(language: str, pods: int) -> Iterator[Raw]:
    """Yield gangs of two pods that must share a node and do not fit on one together, over many queues."""
    for i in range(max(pods // 2, 1)):
        where = {"topologyConstraint": {"topology": "topology", "requiredTopologyLevel": _HOSTNAME}}
        yield from _gang(language, f"g{i}", [33.0, 33.0], {"queue": f"q{i % _QUEUES:02d}", **where}, {})


def _groups(language: str, pods: int) -> Iterator[Raw]:
    """Yield gangs of hundreds of sub-groups, each within one node, of which the last does not fit."""
    for i in range(max(pods // (2 * _SUB_GROUPS), 1)):
        where = {"topologyConstraint": {"topology": "topology", "requiredTopologyLevel": _HOSTNAME}}
        parts = [{"name": f"part{k:03d}", "minMember": 2, **where} for k in range(_SUB_GROUPS)]
        cores = [31.0, 31.0] * (_SUB_GROUPS - 1) + [33.0, 33.0]
        yield from _gang(language, f"g{i}", cores, {"subGroups": parts}, {}, parts=_SUB_GROUPS)


def _devices(kind: str) -> Callable[[str, int], Iterator[Raw]]:
    """Return a function that yields pods with claims of devices of one kind."""

    def made(language: str, pods: int) -> Iterator[Raw]:
        for i in range(pods):
            yield DEVICES[kind](NAMESPACE, i)
            claims = [{"name": "claim", "resourceClaimName": f"claim-{i}"}]
            yield from _gang(language, f"p{i}", [0.01], {}, {"resourceClaims": claims})

    return made


def _unlike(kind: str) -> Callable[[str, int], Iterator[Raw]]:
    """Return a function that yields gangs of a kind of ``UNLIKE``, two pods each on average: half of them in the queue
    of the running pods, before which they come, and half in other queues, which have less than they deserve."""

    def made(language: str, pods: int) -> Iterator[Raw]:
        dice = Dice(SEED)
        for i in range(max(pods // 2, 1)):
            gang = UNLIKE[kind](dice, i)
            queue, priority = ("default", _HIGH) if dice.chance(0.5) else (f"q{dice.number(0, _QUEUES - 1):02d}", "")
            where = {} if gang.level < 0 else _within(language, gang.level)
            group = {"queue": queue, **where, **gang.group}
            yield from _gang(language, f"g{i}", gang.cores, group, {}, priority, specs=gang.specs)

    return made


#: By name what a tenant may create.
HOSTILE: dict[str, Scenario] = {
    "hostile-topology": Scenario(_topology, full=True),
    "hostile-tries": Scenario(_tries, (KAI,)),
    "hostile-groups": Scenario(_groups, (KAI,)),
    "hostile-victims": Scenario(_victims, full=True),
    "hostile-claims": Scenario(_devices("claims"), devices=True),
    "hostile-lists": Scenario(_lists),
    "hostile-cel": Scenario(_devices("cel"), devices=True),
    "hostile-patterns": Scenario(_devices("patterns"), devices=True),
    **{f"hostile-{kind}": Scenario(_unlike(kind)) for kind in UNLIKE},
    **{f"hostile-{kind}-full": Scenario(_unlike(kind), full=True) for kind in UNLIKE},
}


def _gang(
    language: str,
    name: str,
    cores: list[float],
    group: Raw,
    spec: Raw,
    priority: str = "",
    *,
    parts: int = 1,
    specs: list[Raw] | None = None,
) -> Iterator[Raw]:
    """Yield a group of pods, all of which must run. ``group``, ``spec``, ``specs``: more fields of it, of its pods, and
    of each pod. ``parts``: sub-groups of equal size that the pods belong to, in turn."""
    status: Raw = {}
    if language == KAI:
        api, annotation = GROUP_API[KAI], "pod-group-name"
    else:
        api, annotation = GROUP_API[VOLCANO], GROUP_NAME_ANNOTATION
        # A group without pods is to be admitted first.
        status = {"phase": "Inqueue"} if cores else status
    metadata = {"namespace": NAMESPACE, "name": name, "uid": name, "creationTimestamp": _CREATED}
    fields = {"minMember": len(cores), "queue": "default", "priorityClassName": priority, **group}
    yield {"apiVersion": api, "kind": "PodGroup", "metadata": metadata, "spec": fields, "status": status}
    for k, each in enumerate(cores):
        part = f"part{k * parts // len(cores):0{len(str(parts - 1)) if parts > 10 else 1}d}"
        labels = {
            "app": f"{name}-{k}",
            "tenant": name,
            "part": part,
            "kai.scheduler/subgroup-name": part if parts > 1 else "",
        }
        request = {"requests": {"cpu": f"{round(1000 * each)}m", "memory": "1Mi"}}
        fields = {**spec, **(specs[k] if specs else {})}
        containers = [{**c, "resources": request} for c in fields.get("containers", [{"name": "c", "image": "x"}])]
        own = {"name": f"{name}-{k}", "uid": f"{name}-{k}", "labels": labels, "annotations": {annotation: name}}
        priorities = {"priority": _PRIORITIES[priority], "priorityClassName": priority} if priority else {}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, **own},
            "spec": {**fields, **priorities, "containers": containers},
        }
