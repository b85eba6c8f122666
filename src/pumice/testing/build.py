"""Build clusters in a few words, for tests and for authors of plugins.

    store = cluster(node("n", cpu=4), podgroup("g", minimum=2), pods("g", 2, cpu=1))
    assert run(store).binds == {"ns/g-0": "n", "ns/g-1": "n"}

cpu is in cores, memory in bytes, gpu in devices; each may be a Kubernetes quantity (``"500m"``, ``"16Gi"``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import yaml
from msgspec import Struct

from pumice.columns.snapshot import Snapshot
from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Planner
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.decisions import Bind, Decision, Evict
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Object, Seen
from pumice.model.node import Node, Taint
from pumice.model.pod import GROUP_NAME_ANNOTATION, TASK_SPEC_KEY, LabelSelector, Pod, PodSpec, Requirement
from pumice.model.pod_request import DEFAULT_MEMORY, DEFAULT_MILLI_CPU
from pumice.model.quantity import Quantity
from pumice.model.queue import Queue, ResourceQuota
from pumice.model.resources import Resource
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, PodGroupStatus, SubGroupPolicy
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

GPU = "nvidia.com/gpu"
NAMESPACE = "ns"


def resource(cpu: Quantity = 0, memory: Quantity = 0, gpu: Quantity = 0, pods: int = 0, **more: Quantity) -> Resource:
    """Return an amount of resources; ``more`` by name. Scalars of 0 are not named."""
    named = {GPU: gpu, "pods": pods, **more}
    return Resource.from_list({"cpu": cpu, "memory": memory, **{name: n for name, n in named.items() if n}})


def node(
    name: str,
    cpu: Quantity = 8,
    memory: Quantity = "32Gi",
    gpu: Quantity = 0,
    pods: int = 110,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    creation: float = 0.0,
    **more: Any,
) -> Node:
    """Return a node, labelled with its name as hostname. ``more``: fields of Node."""
    allocatable = resource(cpu, memory, gpu, pods)
    named = {"kubernetes.io/hostname": name, **(labels or {})}
    return Node(name, allocatable, allocatable, creation=creation, labels=named, taints=tuple(taints), **more)


@lru_cache(maxsize=4096)
def interned(spec: PodSpec) -> PodSpec:
    """Return the first spec that was equal to this one. Pods with equal specs share one object, as when manifests are
    read."""
    return spec


def spec(cpu: Quantity = 1, memory: Quantity = "1Gi", gpu: Quantity = 0, **more: Any) -> PodSpec:
    """Return the spec of a pod with one container. ``more``: fields of PodSpec."""
    request = resource(cpu, memory, gpu, pods=1)
    more.setdefault("nonzero_milli_cpu", request.milli_cpu or DEFAULT_MILLI_CPU)
    more.setdefault("nonzero_memory", request.memory or DEFAULT_MEMORY)
    return interned(PodSpec(request, **more))


def pod(
    name: str,
    group: str = "",
    cpu: Quantity = 1,
    memory: Quantity = "1Gi",
    gpu: Quantity = 0,
    *,
    on: str = "",
    phase: str = "",
    role: str = "",
    creation: float = 0.0,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str = NAMESPACE,
    **more: Any,
) -> Pod:
    """Return a pod of a group: pending, or running ``on`` a node. ``more``: fields of Pod, else of PodSpec."""
    own = {field: more.pop(field) for field in tuple(more) if field in Pod.__struct_fields__ and field != "spec"}
    notes = {**({GROUP_NAME_ANNOTATION: group} if group else {}), **({TASK_SPEC_KEY: role} if role else {})}
    phase = phase or ("Running" if on else "Pending")
    return Pod(
        namespace,
        name,
        f"{namespace}-{name}",
        spec(cpu, memory, gpu, **more),
        creation=creation,
        labels=labels or {},
        annotations=notes | dict(annotations or {}),
        node_name=on,
        phase=phase,
        **own,
    )


def pods(group: str, count: int, *, first: int = 0, **same: Any) -> list[Pod]:
    """Return equal pods ``<group>-0``, ``<group>-1``, …; ``same``: as for ``pod``."""
    return [pod(f"{group}-{i}", group, **same) for i in range(first, first + count)]


def podgroup(
    name: str,
    minimum: int = 1,
    queue: str = "default",
    *,
    roles: Mapping[str, int] | None = None,
    min_resources: Resource | None = None,
    priority_class: str = "",
    phase: str = "Pending",
    creation: float = 0.0,
    tier: int | None = None,
    soft: bool = False,
    sub_groups: Iterable[SubGroupPolicy] = (),
    namespace: str = NAMESPACE,
    **more: Any,
) -> PodGroup:
    """Return a gang. ``tier``: bound of its hard topology. ``soft``: it has a soft topology. ``more``: fields of
    PodGroup."""
    topology = NetworkTopology("soft" if soft else "hard", tier) if soft or tier is not None else None
    return PodGroup(
        namespace,
        name,
        f"{namespace}-{name}",
        queue,
        minimum,
        roles or {},
        min_resources,
        priority_class,
        more.pop("topology", topology),
        tuple(sub_groups),
        creation,
        status=more.pop("status", PodGroupStatus(phase)),
        **more,
    )


def queue(name: str = "default", weight: int = 1, **more: Any) -> Queue:
    """Return a queue. ``more``: fields of Queue; amounts as ``resource(…)``."""
    return Queue(name, weight, **more)


def hypernode(
    name: str, tier: int, nodes: Iterable[str] = (), *, hypernodes: Iterable[str] = (), **more: Any
) -> HyperNode:
    """Return a hypernode of nodes and lower hypernodes, by name."""
    members = [HyperNodeMember("Node", exact=n) for n in nodes] + [
        HyperNodeMember("HyperNode", exact=h) for h in hypernodes
    ]
    return HyperNode(name, tier, tuple(members), **more)


def budget(
    name: str, selects: Mapping[str, str] | None = None, allowed: int = 0, *, namespace: str = NAMESPACE, **more: Any
) -> PodDisruptionBudget:
    """Return a disruption budget of the pods with these labels. ``more``: fields of PodDisruptionBudget."""
    selector = LabelSelector(tuple(Requirement(key, "In", (value,)) for key, value in (selects or {}).items()))
    return PodDisruptionBudget(namespace, name, selector, allowed, **more)


def quota(name: str, hard: Resource, used: Resource | None = None, *, namespace: str = NAMESPACE) -> ResourceQuota:
    """Return a quota that limits what ``hard`` names. CPU and memory are not limited if ``hard`` has none of them."""
    named = [each for each in hard.to_list() if each not in ("cpu", "memory") or hard.get(each)]
    return ResourceQuota(namespace, name, hard, used or Resource(), tuple(sorted(named)))


def cluster(*objects: Object | Iterable[Object]) -> Store:
    """Return a store that has seen these objects (and lists of objects), with queue ``default`` if no queue is given.

    Raises: TypeError for anything else, including nested lists.
    """
    flat: list[Object] = []
    for item in objects:
        flat += item if isinstance(item, Iterable) and not isinstance(item, Object) else [item]
    for item in flat:
        if not isinstance(item, Object):
            raise TypeError(f"cluster() takes objects and lists of objects; among these is a {type(item).__name__}")
    if not any(isinstance(item, Queue) for item in flat):
        flat.insert(0, queue())
    store = Store()
    for item in flat:
        store.apply(Seen(item))
    return store


class Ran(Struct, frozen=True):
    """One cycle: decisions in order, and the outcome."""

    outcome: Outcome
    decisions: list[Decision]

    @property
    def binds(self) -> dict[str, str]:
        """Pod -> node."""
        return {d.pod: d.node for d in self.decisions if isinstance(d, Bind)}

    @property
    def evicted(self) -> list[str]:
        """Pods in order of eviction."""
        return [d.pod for d in self.decisions if isinstance(d, Evict)]

    @property
    def pipelined(self) -> dict[str, str]:
        """Pod -> node that is reserved for it."""
        return self.outcome.pipelined

    @property
    def phases(self) -> dict[str, str]:
        """PodGroup -> phase, for statuses that should be written."""
        return {update.job: update.status.phase for update in self.outcome.groups}


def policy(conf: str = DEFAULT_CONF, *, actions: str = "", plugins: Iterable[Callable[..., Any]] = ()) -> Policy:
    """Return the policy of a conf text in Volcano's language. ``actions`` replaces those of the text. ``plugins``:
    known in addition to the built-in ones."""
    document = _parsed(conf)
    if actions:
        document = {**document, "actions": actions}
    return read_policy(document, volcano_registry().with_plugins("volcano", plugins))


@lru_cache(maxsize=64)
def _parsed(conf: str) -> dict[str, Any]:
    return yaml.safe_load(conf) or {}


def _under(conf: str | Policy, **more: Any) -> Policy:
    return conf if isinstance(conf, Policy) else policy(conf, **more)


def _seen(state: Store | Snapshot, under: Policy, now: float) -> Snapshot:
    """Return the snapshot with which a cycle under a policy begins at a time."""
    if isinstance(state, Snapshot):
        return state
    state.keep_usage(under.usage_windows)
    return state.snapshot(now)


def session(
    state: Store | Snapshot,
    conf: str | Policy = DEFAULT_CONF,
    *,
    now: float = 0.0,
    planner: Planner | None = None,
    memo: Memo | None = None,
    **more: Any,
) -> Session:
    """Return a session that is opened on the cluster, for trying single steps. ``more``: as for ``policy``."""
    under = _under(conf, **{"actions": "allocate", **more})
    snapshot = _seen(state, under, now)
    ssn = Session(snapshot, under, now, planner or ListPlanner(), memo or Memo())
    ssn.open()
    return ssn


def run(
    state: Store | Snapshot,
    conf: str | Policy = DEFAULT_CONF,
    *,
    now: float = 0.0,
    memo: Memo | None = None,
    publishes: bool = False,
    **more: Any,
) -> Ran:
    """Run one cycle on the cluster. Every decision is accepted, and none is carried out. ``more``: as for ``policy``. A
    ``memo`` holds under one Policy, so cycles that share one need a Policy instead of a text. ``publishes``: with
    figures, even if no job waits."""
    under, planner = _under(conf, **more), ListPlanner()
    outcome = run_cycle(_seen(state, under, now), under, now, planner, memo=memo, publishes=publishes)
    return Ran(outcome, planner.taken)
