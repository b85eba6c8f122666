"""Use of each node, updated pod by pod. Units are those of ``Resource``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.node import Node
from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import MIN_RESOURCE, PODS, Resource
from pumice.sim.cluster import SimCluster
from pumice.sim.equal_pods import EqualPods, one_of

Amounts = tuple[tuple[str, float], ...]
#: Specs of pods, with the number of pods of each.
Kinds = tuple[tuple[PodSpec, int], ...]

#: Called with pods, the request of each, +1 if they take resources or -1 if they release them, and the change of the
#: busy share of each one's node.
MoveListener = Callable[[EqualPods, Amounts, int, Sequence[float]], None]


class NodeUse(NamedTuple):
    """Use of a node. ``used``: by resource. ``busy_share``: share of the resource that is nearest to being used up."""

    used: dict[str, float]
    busy_share: float


def amounts_of(resource: Resource) -> Amounts:
    """Return all amounts above 0."""
    pairs = (("cpu", resource.milli_cpu), ("memory", resource.memory), *(resource.scalars or {}).items())
    return tuple((name, amount) for name, amount in pairs if amount >= MIN_RESOURCE)


def counted(specs: Iterable[tuple[PodSpec, int]]) -> Kinds:
    """Return each spec once, with its number of pods. Equal pods of a job share their spec."""
    found: dict[int, tuple[PodSpec, int]] = {}
    for spec, count in specs:
        known = found.get(id(spec))
        if count:
            found[id(spec)] = spec, count if known is None else known[1] + count
    return tuple(found.values())


def asked_by(kinds: Kinds) -> Amounts:
    """Return the total request of pods of these kinds."""
    total: dict[str, float] = {}
    for spec, count in kinds:
        for resource, amount in amounts_of(spec.request):
            total[resource] = total.get(resource, 0.0) + count * amount
    return tuple(total.items())


def total_of(pods: Iterable[Pod]) -> Amounts:
    """Return the total request of pods."""
    return asked_by(counted((pod.spec, 1) for pod in pods))


class _State(Struct, frozen=True, eq=False):
    """A node's use and its busy share. Nodes of one size share it while they are used in the same way.

    ``inverse``: 1 / amount for each resource that the node has.
    """

    used: Mapping[str, float]
    inverse: Amounts
    share: float

    def after(self, amounts: Amounts, sign: int) -> _State:
        """Return the state with one pod more (+1) or fewer (-1) that requests these amounts."""
        used = dict(self.used)
        for resource, amount in amounts:
            used[resource] = used.get(resource, 0.0) + sign * amount
        shares = [used[resource] * inverse for resource, inverse in self.inverse if resource in used]
        return _State(used, self.inverse, max([0.0, *shares]))


_NO_NODE = _State({}, (), 0.0)


class Usage:
    """What pods use of each node. ``moved`` is called after each change."""

    def __init__(self, cluster: SimCluster) -> None:
        self.moved: list[MoveListener] = []
        self._states: dict[str, _State] = {}  # by node
        self._unused: dict[Amounts, _State] = {}
        self._asked: dict[int, tuple[PodSpec, Amounts]] = {}
        for node in cluster.nodes.values():
            self._node_changed(None, node)
        cluster.hooks.node_changed.append(self._node_changed)
        cluster.hooks.bound.append(self._bound)
        cluster.hooks.left.append(self._left)

    def of(self, node: str) -> NodeUse:
        """Return the present use of a node."""
        state = self._states.get(node)
        return NodeUse({}, 0.0) if state is None else NodeUse(dict(state.used), state.share)

    def asked(self, spec: PodSpec) -> Amounts:
        """Return what a pod of this spec uses. Specs are few and shared, so answers are kept by identity."""
        found = self._asked.get(id(spec))
        if found is None:
            found = self._asked[id(spec)] = (spec, amounts_of(spec.request))
        return found[1]

    def _bound(self, pods: EqualPods) -> None:
        self._move(pods, 1)

    def _left(self, pods: EqualPods) -> None:
        self._move(pods, -1)

    def _move(self, pods: EqualPods, sign: int) -> None:
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
        for listener in self.moved:
            listener(pods, amounts, sign, deltas)

    def _node_changed(self, before: Node | None, after: Node | None) -> None:
        """Note a node of another size. Its share is updated with the next pod that moves."""
        node = after or before
        assert node is not None
        room = amounts_of(after.allocatable) if after is not None else ()
        inverse = tuple((resource, 1 / amount) for resource, amount in room if resource != PODS)
        known = self._states.get(node.name)
        if known is not None:
            self._states[node.name] = replace(known, inverse=inverse)
        else:
            self._states[node.name] = self._unused.setdefault(inverse, _State({}, inverse, 0.0))
