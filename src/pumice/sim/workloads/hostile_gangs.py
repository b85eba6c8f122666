"""Gangs of one tenant that differ from each other in one field, by formula.

Equal gangs are refuted once. A tenant that writes another number, label or name into each has each of them looked at,
so what a scheduler does per gang and per node is multiplied. Each kind here varies a single field; about half of its
gangs fit an empty cluster, where the field allows that, so that work which follows a placement is caused too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from pumice.sim.fuzz.dice import Dice

Raw = dict[str, Any]

_HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
#: Cores that fit on each node, and the least that fit on none.
_FITS, _TOO_MANY = 40, 65
_RACKS = 100


class UnlikeGang(Struct, frozen=True):
    """The fields of one gang. ``cores``: of each pod. ``specs``: more fields of each pod's spec, in the same order;
    none if it is empty. ``group``: more fields of the PodGroup. ``level``: of the topology whose domains the gang must
    be within, or -1."""

    cores: list[float]
    specs: list[Raw] = []
    group: Raw = {}
    level: int = -1


def _requests(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang whose pods ask for amounts that no other asks for, and which fit an empty node."""
    return UnlikeGang([_unlike(dice, i), _unlike(dice, i)])


def _one_too_large(dice: Dice, i: int) -> UnlikeGang:
    return UnlikeGang([_unlike(dice, i), _TOO_MANY + 0.001 * i])


def _all_too_large(_: Dice, i: int) -> UnlikeGang:
    return UnlikeGang([_TOO_MANY + 0.001 * i, _TOO_MANY + 0.001 * i + 1])


def _selectors(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang that selects two nodes by name, or one node and a label that no node has."""
    node, other = (f"node-{dice.number(0, 10 * _RACKS - 1):05d}" for _ in range(2))
    second = {_HOSTNAME: other} if dice.chance(0.5) else {f"tenant-{i}": "yes"}
    return UnlikeGang([1.0, 1.0], [{"nodeSelector": {_HOSTNAME: node}}, {"nodeSelector": second}])


def _node_affinity(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang that is kept from nodes that no other names, of which one pod needs a label that no node has in
    half of all cases."""
    names = [f"node-{dice.number(0, 10 * _RACKS - 1):05d}" for _ in range(5)] + [f"none-{i}"]
    without = {"key": _HOSTNAME, "operator": "NotIn", "values": names}
    label = {"key": f"tenant-{i}", "operator": "Exists" if dice.chance(0.5) else "DoesNotExist"}
    return UnlikeGang([1.0, 1.0], [_node_terms(without), _node_terms(without, label)])


def _anti_affinity(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang whose pods must not share a node, rack or zone with each other."""
    selector = {"matchLabels": {"tenant": f"g{i}"}}
    term = {"labelSelector": selector, "topologyKey": dice.one((_HOSTNAME, "zone", "rack"))}
    return UnlikeGang([1.0, 1.0], 2 * [{"affinity": {"podAntiAffinity": {_REQUIRED: [term]}}}])


def _spread(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang that is spread evenly by a selector of its own, over domains that exist, or by a key that no node
    has in half of all cases."""
    key = dice.one((_HOSTNAME, "zone", "rack", f"tenant-{i}"))
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return UnlikeGang(
        [1.0, 1.0],
        2 * [{"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"tenant": f"g{i}"}}}]}],
    )


def _tolerations(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang that tolerates a taint that no other tolerates, and in half of all cases is larger than a node."""
    own = {"tolerations": [{"key": f"tenant-{i}", "operator": "Exists"}]}
    return UnlikeGang([1.0, 1.0 if dice.chance(0.5) else float(_TOO_MANY)], 2 * [own])


def _ports(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang with a host port that no other has, and in half of all cases a pod larger than a node."""
    ports = {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 1 + i % 65_535}]}]}
    return UnlikeGang([1.0, 1.0 if dice.chance(0.5) else float(_TOO_MANY)], 2 * [ports])


def _queues(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang in one of many queues, of which one pod fits nowhere."""
    return UnlikeGang([1.0 + dice.number(0, 2), float(_TOO_MANY)], group={"queue": f"q{i % 50:02d}"})


def _elastic(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang of which one pod is enough, of 1 to 3 pods that ask for amounts that no other asks for."""
    count = 1 + dice.number(0, 2)
    return UnlikeGang([_unlike(dice, i) for _ in range(count)], group={"minMember": 1})


def _no_pods(dice: Dice, i: int) -> UnlikeGang:
    """Return a group that has no pods, and asks to be admitted for an amount that no other asks for."""
    amounts = {"cpu": f"{1000 * dice.number(1, 199) + i}m", "memory": "1Mi"}
    return UnlikeGang([], group={"minMember": 2, "minResources": amounts})


def _topology(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang within one rack or block, of which in half of all cases one pod is larger than a node."""
    second = _unlike(dice, i) if dice.chance(0.5) else _TOO_MANY + 0.001 * i
    return UnlikeGang([_unlike(dice, i), second], level=i % 2)


def _mixed(dice: Dice, i: int) -> UnlikeGang:
    """Return a gang of any kind."""
    return UNLIKE[dice.one([name for name in UNLIKE if name != "mixed"])](dice, i)


#: By the name of the field in which the gangs differ: gang number ``i``.
UNLIKE: dict[str, Callable[[Dice, int], UnlikeGang]] = {
    "requests": _requests,
    "one-too-large": _one_too_large,
    "all-too-large": _all_too_large,
    "selectors": _selectors,
    "node-affinity": _node_affinity,
    "anti-affinity": _anti_affinity,
    "spread": _spread,
    "tolerations": _tolerations,
    "ports": _ports,
    "queues": _queues,
    "elastic": _elastic,
    "no-pods": _no_pods,
    "within": _topology,
    "mixed": _mixed,
}


def _unlike(dice: Dice, i: int) -> float:
    """Return cores that fit on a node, in thousandths, and differ from those of most other gangs."""
    return 1 + dice.number(0, _FITS - 1) + 0.001 * (i % 1000)


def _node_terms(*each: Raw) -> Raw:
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(each)}]}}}}
