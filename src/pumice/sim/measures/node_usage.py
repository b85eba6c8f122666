"""How much of each node is taken, kept up to date pod by pod. Units: those of ``Resource``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

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


class _State(Struct, frozen=True, eq=False):
    """A node's use and the busy share that follows. Nodes of one size share it as long as they are used alike.

    ``inverse``: 1 / amount of each resource that the node has so much of.
    """

    used: Mapping[str, float]
    inverse: Amounts
    share: float

    def after(self, amounts: Amounts, sign: int) -> _State:
        """With one pod more (+1) or fewer (-1) that asks for these amounts."""
        used = dict(self.used)
        for resource, amount in amounts:
            used[resource] = used.get(resource, 0.0) + sign * amount
        shares = [used[resource] * inverse for resource, inverse in self.inverse if resource in used]
        return _State(used, self.inverse, max([0.0, *shares]))


_NO_NODE = _State({}, (), 0.0)


class Usage:
    """What pods take of each node. ``moved`` is called after each change."""

    def __init__(self, cluster: SimCluster) -> None:
        self.moved: list[Moved] = []
        self._states: dict[str, _State] = {}  # by node
        self._unused: dict[Amounts, _State] = {}
        self._asked: dict[int, tuple[PodSpec, Amounts]] = {}
        for node in cluster.nodes.values():
            self._node_changed(None, node)
        cluster.hooks.node_changed.append(self._node_changed)
        cluster.hooks.bound.append(self._bound)
        cluster.hooks.left.append(self._left)

    def of(self, node: str) -> NodeUse:
        """The node's use at the moment."""
        state = self._states.get(node)
        return NodeUse({}, 0.0) if state is None else NodeUse(dict(state.used), state.share)

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
        amounts, states, deltas = self.asked(one_of(pods).spec), self._states, []
        steps: dict[_State, tuple[_State, float]] = {}
        before = None
        for pod in pods.values():
            state = states.get(pod.node_name, _NO_NODE)
            if state is not before:  # it is like that of the pod before, mostly
                before = state
                if before not in steps:
                    after = before.after(amounts, sign)
                    steps[before] = after, after.share - before.share
                after, delta = steps[before]
            states[pod.node_name] = after
            deltas.append(delta)
        for tell in self.moved:
            tell(pods, amounts, sign, deltas)

    def _node_changed(self, before: Node | None, after: Node | None) -> None:
        """The share of a node that has another size now follows with the next pod that moves."""
        node = after or before
        assert node is not None
        room = amounts_of(after.allocatable) if after is not None else ()
        inverse = tuple((resource, 1 / amount) for resource, amount in room if resource != PODS)
        known = self._states.get(node.name)
        if known is not None:
            self._states[node.name] = replace(known, inverse=inverse)
        else:
            self._states[node.name] = self._unused.setdefault(inverse, _State({}, inverse, 0.0))
