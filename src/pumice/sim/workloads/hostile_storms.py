"""Storms of gangs that mix fields at random, by seed: what ``hostile_gangs`` varies one at a time, and more.

A storm draws how many gangs it has, over how many queues, which fields they use, and whether they differ. Each gang of
it draws values for these fields. So a seed may be a kind of storm that no scenario has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from pumice.sim.fuzz.dice import Dice

Raw = dict[str, Any]

_HOSTNAME, _RACK, _ZONE = "kubernetes.io/hostname", "rack", "zone"
_KEYS = (_HOSTNAME, _RACK, _ZONE, "nowhere")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
#: What a tenant may create, and the most queues of a cluster.
PODS_MAX, QUEUES_MAX = 2000, 50
_GANGS, _SIZES, _QUEUES = (1, 5, 30, 100, 300), (1, 2, 8, 40, 300), (1, 3, QUEUES_MAX)
_CORES = 64
GPUS, GPU = 8, "nvidia.com/gpu"


class StormGang(Struct, frozen=True):
    """``cores``: of each pod. ``specs``: more fields of each pod's spec. ``group``: more fields of the PodGroup.
    ``level``: of the topology that it, or each of its ``parts``, must be within one domain of, or -1. ``share``: of a
    GPU, or a number of GPUs, that each pod asks for."""

    cores: list[float]
    specs: list[Raw]
    group: Raw
    queue: int
    is_high: bool
    level: int
    parts: int
    share: float


class Storm(Struct, frozen=True):
    """``fields``: those that its gangs use, by name. ``full``: pods of others fill the cluster."""

    full: bool
    fields: list[str]
    gangs: list[StormGang]


def draw_storm(dice: Dice) -> Storm:
    """Return a storm that is drawn at random."""
    count, most, queues = dice.one(_GANGS), dice.one(_SIZES), dice.one(_QUEUES)
    most = max(1, min(most, PODS_MAX // count))
    fields, unlike, equal_pods = dice.some([*FIELDS, "topology", "shares"], 0.3), dice.chance(0.8), dice.chance(0.5)
    misfit, parts = dice.one((0.0, 0.5, 1.0)), dice.one((1, 1, 2, 10))
    gangs = []
    for i in range(count):
        k, size = (i if unlike else 0), dice.number(max(1, most // 2), most)
        cores = [dice.number(1, 40) + 0.001 * k for _ in range(1 if equal_pods else size)]
        cores *= size // len(cores)
        if dice.chance(misfit):
            cores[-1] = _CORES + 1 + 0.001 * k
        specs = [_merged([FIELDS[name](dice, k) for name in fields if name in FIELDS])] * size
        group: Raw = {"minMember": dice.number(1, size)} if dice.chance(0.2) else {}
        within = dice.number(0, 1) if "topology" in fields and dice.chance(0.8) else -1
        share = dice.one((0.3, 0.5, 1.0, 4.0)) if "shares" in fields else 0.0
        split = min(parts, size) if within >= 0 and not group else 1
        gangs.append(StormGang(cores, specs, group, dice.number(0, queues - 1), dice.chance(0.5), within, split, share))
    return Storm(dice.chance(0.5), fields, gangs)


def claims_of(storm: Storm, namespace: str) -> Iterator[Raw]:
    """Yield the PersistentVolumeClaims that the pods name, and their class."""
    if "volumes" not in storm.fields:
        return
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "example.com/disk",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    for i in range(len(storm.gangs)):
        asked = {"requests": {"storage": "1Gi"}}
        spec = {"storageClassName": "late", "accessModes": ["ReadWriteMany"], "resources": asked}
        metadata = {"namespace": namespace, "name": f"disk-{i}", "uid": f"disk-{i}"}
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _merged(parts: list[Raw]) -> Raw:
    """Return fields of a spec, of which affinities and lists are joined."""
    found: Raw = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, list):
                found[key] = [*found.get(key, []), *value]
            elif isinstance(value, dict):
                found[key] = _merged([found.get(key, {}), value])
            else:
                found[key] = value
    return found


# -- fields of a pod's spec: gang number ``i``, the same for all if they are equal


def _selector(i: int) -> Raw:
    return {"matchLabels": {"tenant": f"g{i}"}}


def _terms_about_pods(dice: Dice, i: int, kind: str) -> Raw:
    """Return required or preferred terms about pods of the gang itself, or of all that run."""
    selector = dice.one((_selector(i), {"matchExpressions": [{"key": "tenant", "operator": "Exists"}]}))
    terms = [{"labelSelector": selector, "topologyKey": dice.one(_KEYS)} for _ in range(dice.number(1, 3))]
    if dice.chance(0.7):
        return {"affinity": {kind: {_REQUIRED: terms}}}
    return {"affinity": {kind: {_PREFERRED: [{"weight": 10 + i % 90, "podAffinityTerm": each} for each in terms]}}}


def _affinity(dice: Dice, i: int) -> Raw:
    return _terms_about_pods(dice, i, "podAffinity")


def _anti_affinity(dice: Dice, i: int) -> Raw:
    return _terms_about_pods(dice, i, "podAntiAffinity")


def _spread(dice: Dice, i: int) -> Raw:
    when = dice.one(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
    keys = dice.shuffled(_KEYS)[: dice.number(1, 3)]
    rule = {"maxSkew": dice.number(1, 3), "whenUnsatisfiable": when, "labelSelector": _selector(i)}
    return {"topologySpreadConstraints": [{**rule, "topologyKey": key} for key in keys]}


def _node_affinity(dice: Dice, i: int) -> Raw:
    rule = {"key": _RACK, "operator": dice.one(("In", "NotIn")), "values": [f"r{k}" for k in range(i % 7, 60 + i % 11)]}
    preferred = {"weight": 1 + i % 99, "preference": {"matchExpressions": [rule]}}
    terms: Raw = {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    return {"affinity": {"nodeAffinity": terms if dice.chance(0.6) else {_PREFERRED: [preferred]}}}


def _node_selector(dice: Dice, i: int) -> Raw:
    return {"nodeSelector": dice.one(({_ZONE: f"zone-{i % 4}"}, {_RACK: f"r{i % 100}"}, {f"tenant-{i}": "yes"}))}


def _tolerations(_: Dice, i: int) -> Raw:
    return {"tolerations": [{"key": f"tenant-{i}", "operator": "Exists"}]}


def _ports(_: Dice, i: int) -> Raw:
    return {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 1 + i % 65_535}]}]}


def _volumes(_: Dice, i: int) -> Raw:
    return {"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": f"disk-{i}"}}]}


def _device_claims(_: Dice, i: int) -> Raw:
    return {"resourceClaims": [{"name": "claim", "resourceClaimName": f"claim-{i}"}]}


def _never(_: Dice, __: int) -> Raw:
    return {"preemptionPolicy": "Never"}


#: By name what a gang may use.
FIELDS: dict[str, Callable[[Dice, int], Raw]] = {
    "affinity": _affinity,
    "anti-affinity": _anti_affinity,
    "spread": _spread,
    "node-affinity": _node_affinity,
    "node-selector": _node_selector,
    "tolerations": _tolerations,
    "ports": _ports,
    "volumes": _volumes,
    "claims": _device_claims,
    "never": _never,
}
