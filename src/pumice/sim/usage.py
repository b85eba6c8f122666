"""How much of each node is taken, kept up to date pod by pod. Units: those of ``Resource``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pumice.model.node import Node
from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import MIN_RESOURCE, PODS, Resource
from pumice.sim.alike import Alike, one_of
from pumice.sim.cluster import SimCluster

Amounts = tuple[tuple[str, float], ...]
#: Specs of pods, and how many pods have each.
Kinds = tuple[tuple[PodSpec, int], ...]

#: (the pods, what each asks for, +1 when they take room and -1 when they give it back, how each changed the busy share
#: of its node)
Moved = Callable[[Alike, Amounts, int, Sequence[float]], None]


class NodeUse(NamedTuple):
    """``used`` by resource name; ``busy_share`` is the share of the resource that is nearest to its end."""

    used: dict[str, float]
    busy_share: float


def amounts_of(resource: Resource) -> Amounts:
    """All amounts but those of nothing."""
    pairs = (("cpu", resource.milli_cpu), ("memory", resource.memory), *(resource.scalars or {}).items())
    return tuple((name, amount) for name, amount in pairs if amount >= MIN_RESOURCE)


def counted(specs: Iterable[tuple[PodSpec, int]]) -> Kinds:
    """Each spec once, and how many pods have it: equal pods of a job share theirs."""
    found: dict[int, tuple[PodSpec, int]] = {}
    for spec, count in specs:
        known = found.get(id(spec))
        if count:
            found[id(spec)] = spec, count if known is None else known[1] + count
    return tuple(found.values())


def asked_by(kinds: Kinds) -> Amounts:
    """What pods of these kinds ask for together."""
    total: dict[str, float] = {}
    for spec, count in kinds:
        for resource, amount in amounts_of(spec.request):
            total[resource] = total.get(resource, 0.0) + count * amount
    return tuple(total.items())


def total_of(pods: Iterable[Pod]) -> Amounts:
    """What pods ask for together."""
    return asked_by(counted((pod.spec, 1) for pod in pods))


class Usage:
    """What pods take of each node. ``moved`` is called after each change."""

    def __init__(self, cluster: SimCluster) -> None:
        self.moved: list[Moved] = []
        self._cluster = cluster
        self._used: dict[str, dict[str, float]] = {}
        self._share: dict[str, float] = {}
        self._room: dict[str, tuple[Node, Amounts]] = {}
        self._asked: dict[int, tuple[PodSpec, Amounts]] = {}
        cluster.hooks.bound.append(self._bound)
        cluster.hooks.left.append(self._left)

    def of(self, node: str) -> NodeUse:
        """The node's use at the moment."""
        return NodeUse(dict(self._used.get(node, {})), self._share.get(node, 0.0))

    def asked(self, spec: PodSpec) -> Amounts:
        """What a pod of this spec takes. Specs are few and shared, so they are remembered by identity."""
        found = self._asked.get(id(spec))
        if found is None:
            found = self._asked[id(spec)] = (spec, amounts_of(spec.request))
        return found[1]

    def _bound(self, pods: Alike) -> None:
        self._move(pods, 1)

    def _left(self, pods: Alike) -> None:
        self._move(pods, -1)

    def _move(self, pods: Alike, sign: int) -> None:
        amounts, deltas = self.asked(one_of(pods).spec), []
        for pod in pods.values():
            name = pod.node_name
            used = self._used.get(name)
            if used is None:
                used = self._used[name] = {}
            for resource, amount in amounts:
                used[resource] = used.get(resource, 0.0) + sign * amount
            before = self._share.get(name, 0.0)
            share = self._share[name] = self._busy(name, used)
            deltas.append(share - before)
        for tell in self.moved:
            tell(pods, amounts, sign, deltas)

    def _busy(self, name: str, used: dict[str, float]) -> float:
        node = self._cluster.nodes.get(name)
        if node is None:
            return 0.0
        room = self._room.get(name)
        if room is None or room[0] is not node:
            limits = tuple((r, 1 / a) for r, a in amounts_of(node.allocatable) if r != PODS)
            room = self._room[name] = (node, limits)
        share = 0.0
        for resource, inverse in room[1]:
            amount = used.get(resource)
            if amount is not None and amount * inverse > share:
                share = amount * inverse
        return share
