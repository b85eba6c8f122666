"""Worlds with a storm: a tenant's gangs that fit nowhere, before a gang of another tenant that fits.

S16: the storm delays the other tenant's gang by at most one cycle, counted from the first that it is there. The
searches of the policy have so few steps that the storm uses up its own. A gang that is not served at once without the
storm says nothing about it. The storm is in one queue or in many, the gang comes with it or a cycle later, and the
policy has one action that searches or all of its language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.kai.table import DEFAULT_PLUGINS
from pumice.model.decisions import Bind, Decision, Evict
from pumice.model.events import Object, Seen
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.loop import ListPlanner
from pumice.sim.fuzz.clusters import VOLCANO, Raw, raw
from pumice.sim.fuzz.confs import Conf
from pumice.sim.fuzz.dice import Dice
from pumice.sim.fuzz.play_result import PlayResult
from pumice.state.store import Store

STORM, OTHER = "storm", "other"
#: Cycles in which the other tenant's gang must be served.
CYCLES = 2
_KAI, _GPU = "scheduling.run.ai/v2", "nvidia.com/gpu"
_ACTIONS = ("allocate", "preempt", "reclaim", "gangpreempt", "gangreclaim")
_KAI_ACTIONS = ("allocate", "reclaim", "preempt", "consolidation")
#: Policies with all actions of a language.
_EVERY = "allocate, preempt, reclaim, gangpreempt, gangreclaim, backfill"
_KAI_EVERY = "allocate, consolidation, reclaim, preempt, stalegangeviction"
#: Numbers of queues that the storm is in besides that of the other tenant.
_QUEUES = (0, 1, 12)
_PREEMPTS = frozenset({"preempt", "gangpreempt"})
_CORES = 4


class _Size(NamedTuple):
    """Lowest and highest numbers of nodes, of gangs of the storm, and of steps of each action."""

    nodes: tuple[int, int]
    gangs: tuple[int, int]
    steps: tuple[int, int]


#: Small and large, in Volcano's language and in KAI's. The storm uses up the steps, and the part that each namespace
#: has is enough for the other gang: with fewer, reclaim would not serve it without the storm, and the world would
#: prove nothing.
_SIZES = (_Size((3, 4), (3, 6), (80, 200)), _Size((6, 12), (8, 30), (600, 1500)))
_KAI_SIZES = (_Size((2, 3), (4, 8), (120, 300)), _Size((6, 12), (8, 30), (250, 600)))
#: Nodes on which consolidation makes room for two pods: two that are moved, and two that take what is moved.
_CONSOLIDATED = 4
#: Share of large worlds.
_LARGE_SHARE = 0.05
#: The moment of the first cycle, in seconds after the year began: the gangs of a storm are minutes old.
_BEGIN_S = 400
_NOW = 1_767_225_600.0 + _BEGIN_S


class _World:
    """The cluster that a storm is drawn into. ``first``: the queue of running pods. ``queues``: those of the storm.
    ``arrives``: when the other tenant's gang is made."""

    def __init__(self, dice: Dice, action: str, dialect: str) -> None:
        self.dice, self.action, self.kai = dice, action, dialect == "kai"
        self.size = (_KAI_SIZES if self.kai else _SIZES)[dice.chance(_LARGE_SHARE)]
        self.nodes = max(dice.number(*self.size.nodes), _CONSOLIDATED if action == "consolidation" else 0)
        self.first = "q0" if action in _PREEMPTS else "old"
        # A job finds victims in its own queue only, where running pods are.
        self.queues = ["q0", *(f"s{i:02d}" for i in range(0 if action in _PREEMPTS else dice.one(_QUEUES)))]
        self.arrives = dice.one((99, _BEGIN_S + 1))

    def pod(self, name: str, group: str, cpu: float, gpus: int = 0, **rest: object) -> Raw:
        """Return a pod. ``rest``: fields of the spec, and ``namespace`` and ``on``, its node."""
        namespace, on = str(rest.pop("namespace", "ns")), rest.pop("on", "")
        requests = {"cpu": f"{cpu:g}", "memory": "16Mi", **({_GPU: str(gpus)} if gpus else {})}
        container: Raw = {"name": "main", "resources": {"requests": requests}}
        if ports := rest.pop("ports", None):
            container["ports"] = ports
        spec: Raw = {"schedulerName": "kai-scheduler" if self.kai else "volcano", "containers": [container], **rest}
        if on:
            spec["nodeName"] = on
        notes = {GROUP_NAME_ANNOTATION: group} if group else {}
        metadata = {"namespace": namespace, "annotations": notes, "labels": {"app": group or name}}
        return raw("v1", "Pod", name, metadata=metadata, spec=spec, status={"phase": "Running" if on else "Pending"})

    def group(self, name: str, least: int, queue: str, priority: str, at: int, **rest: object) -> Raw:
        """Return a PodGroup. ``at``: when it was made, in seconds after the year began. ``rest``: fields of the spec,
        and ``namespace`` and ``phase``."""
        namespace, phase, spec = str(rest.pop("namespace", "ns")), rest.pop("phase", "Inqueue"), dict(rest)
        made = f"2026-01-01T00:{at // 60:02d}:{at % 60:02d}Z"
        metadata = {"namespace": namespace, "creationTimestamp": made}
        spec |= {"minMember": least, "queue": queue, "priorityClassName": priority}
        api = "scheduling.run.ai/v2alpha2" if self.kai else VOLCANO
        return raw(api, "PodGroup", name, metadata=metadata, spec=spec, status={"phase": phase})


def draw_storm(dice: Dice, dialect: str) -> tuple[Conf, list[Raw]]:
    """Return a policy with few steps for each action, and the objects of its world."""
    searching = _KAI_ACTIONS if dialect == "kai" else _ACTIONS
    action = dice.one(searching)
    world = _World(dice, action, dialect)
    made = _kai_objects(world) if world.kai else _objects(world)
    actions = action if dice.chance(0.7) else _KAI_EVERY if world.kai else _EVERY
    settings = [
        {"name": each, "arguments": {"maxSearchSteps": dice.number(*world.size.steps)}}
        for each in searching
        if each in actions.split(", ")
    ]
    if world.kai:
        tiers = [{"plugins": [{"name": name} for name in DEFAULT_PLUGINS]}]
        return {"dialect": "kai", "actions": actions, "tiers": tiers, "configurations": settings}, made
    names = ["priority", "gang", "predicates", "proportion", "network-topology-aware"]
    names += dice.some(["nodeorder", "binpack", "drf", "conformance"], 0.3)
    plugins = [{"name": name} for name in names]
    return {"actions": actions, "tiers": [{"plugins": plugins}], "configurations": settings}, made


def _objects(world: _World) -> list[Raw]:
    """Return a cluster of Volcano's: pods fill it (for ``allocate``, half of it)."""
    dice, action = world.dice, world.action
    within = action == "allocate" and dice.chance(0.5)
    tier = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}} if within else {}
    gangs = "gang" in action
    # The actions that evict whole gangs count nodes that a selector leaves, so for them the port is taken everywhere.
    never = dice.one(("port",) if gangs else ("selector", "port", "taken name"))
    misfit: Raw = {"ports": [{"containerPort": 80, "hostPort": 80}]} if never == "port" else {}
    if never == "selector":
        misfit = {"nodeSelector": {"rack": "nowhere"}}
    elif never == "taken name":
        misfit = {"nodeSelector": {"kubernetes.io/hostname": "gone"}}
    made = [*_volcano_queues(world), *_volcano_nodes(world)]
    for i in range(world.nodes // 2 if action == "allocate" else world.nodes):
        made.append(world.group(f"old{i}", 0, world.first, "low", 0, phase="Running"))
        made += [world.pod(f"old{i}-{k}", f"old{i}", 1, on=f"n{i}", priority=1) for k in range(_CORES)]
    if never == "port":
        made += [world.pod(f"port{i}", "", 0.001, on=f"n{i}", **misfit) for i in range(world.nodes)]
    for i in range(dice.number(*world.size.gangs)):
        name, queue = f"s{i:02d}", dice.one(world.queues)
        cores = [1 + dice.number(0, 99) / 100 for _ in range(dice.number(1, 3))]
        made.append(world.group(name, len(cores) + 1, queue, "high", 1 + i, namespace=STORM, **tier))
        made += [world.pod(f"{name}-{k}", name, cpu, namespace=STORM, priority=2) for k, cpu in enumerate(cores)]
        made.append(world.pod(f"{name}-x", name, 3.5, namespace=STORM, priority=2, **misfit))
    made.append(world.group("fits", 2, "q0", "high", world.arrives, namespace=OTHER, **tier))
    return [*made, *(world.pod(f"fits-{k}", "fits", 1, namespace=OTHER, priority=2) for k in range(2))]


def _volcano_queues(world: _World) -> Iterator[Raw]:
    for name, value in (("low", 1), ("high", 2)):
        yield raw("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    for name in ("old", *world.queues):
        # So that the other tenant's share is enough for its gang, whatever the storm asks for.
        spec = {"weight": 40 if name == "q0" else 1}
        yield raw(VOLCANO, "Queue", name, spec=spec, status={"state": "Open"})


def _volcano_nodes(world: _World) -> Iterator[Raw]:
    for i in range(world.nodes):
        room = {"cpu": f"{_CORES}.1", "memory": "32Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": f"n{i}"}
        yield raw("v1", "Node", f"n{i}", metadata={"labels": labels}, status={"allocatable": room})
    for first in range(0, world.nodes, 3):
        names = [f"n{k}" for k in range(first, min(first + 3, world.nodes))]
        members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]
        spec = {"tier": 1, "members": members}
        yield raw("topology.volcano.sh/v1alpha1", "HyperNode", f"r{first // 3}", spec=spec)


def _kai_objects(world: _World) -> list[Raw]:
    """Return a cluster of KAI's whose GPUs are all taken (for ``allocate`` on half of the nodes; for ``consolidation``
    two are free on each)."""
    dice, action = world.dice, world.action
    levels = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
    within = {"topologyConstraint": {"topology": "hosts", "requiredTopologyLevel": "kubernetes.io/hostname"}}
    # Without a topology, allocate counts no steps.
    where: Raw = within if action == "allocate" else {}
    made: list[Raw] = [raw("kai.scheduler/v1alpha1", "Topology", "hosts", spec=levels)]
    made += [raw("scheduling.k8s.io/v1", "PriorityClass", f"p{value}", value=value) for value in (10, *range(50, 90))]
    for name, quota in (("old", 0), *((each, 8 * world.nodes) for each in world.queues)):
        unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        gpus = {"quota": quota, "limit": -1, "overQuotaWeight": 1}
        made.append(raw(_KAI, "Queue", name, spec={"resources": {"gpu": gpus, "cpu": unlimited, "memory": unlimited}}))
    for i in range(world.nodes):
        room = {"cpu": "64", "memory": "64Gi", "pods": "110", _GPU: "8"}
        labels = {"kubernetes.io/hostname": f"n{i}", "nvidia.com/gpu.memory": "40000"}
        made.append(raw("v1", "Node", f"n{i}", metadata={"labels": labels}, status={"allocatable": room}))
        there = (4, 2) if action == "consolidation" else (4, 4) if action != "allocate" or i % 2 else ()
        for k, count in enumerate(there):
            name = f"old{i:02d}-{k}"
            made.append(world.group(name, 1, world.first, "p10", 0))
            made.append(world.pod(f"{name}-0", name, 1, count, on=f"n{i}", priorityClassName="p10", priority=10))
    for i in range(dice.number(*world.size.gangs)):
        # Of unlike priority, so that none is refuted with another; only the last pod fits nowhere.
        name, rank = f"s{i:02d}", 50 + dice.number(0, 39)
        priority: Raw = {"priorityClassName": f"p{rank}", "priority": rank}
        each = [dice.number(1, 2) for _ in range(dice.number(1, 2))]
        queue = dice.one(world.queues)
        made.append(world.group(name, len(each) + 1, queue, f"p{rank}", 1 + i, namespace=STORM, **where))
        made += [world.pod(f"{name}-{k}", name, 1, n, namespace=STORM, **priority) for k, n in enumerate(each)]
        nowhere = {"nodeSelector": {"rack": "nowhere"}, **priority}
        made.append(world.pod(f"{name}-x", name, 1, 1, namespace=STORM, **nowhere))
    made.append(world.group("fits", 2, "q0", "p50", world.arrives, namespace=OTHER, **where))
    priority = {"priorityClassName": "p50", "priority": 50}
    each_gpus = 4 if action == "consolidation" else 2
    return [*made, *(world.pod(f"fits-{k}", "fits", 1, each_gpus, namespace=OTHER, **priority) for k in range(2))]


def play_storm(decoded: Iterable[object], policy: Policy) -> PlayResult:
    """Run a world with and without its storm. Nothing is bound if the gang is not served without it either."""
    found = [each for each in decoded if isinstance(each, Object)]
    calm = [each for each in found if getattr(each, "namespace", "") != STORM]
    wanted = {each.key for each in found if isinstance(each, Pod) and each.namespace == OTHER}
    alone = next(_cycles(calm, policy))
    if not wanted or not wanted <= _given(alone):
        return PlayResult("")
    for decisions, outcome in _cycles(found, policy):
        if wanted <= _given((decisions, outcome)):
            return PlayResult("", len(wanted), sum(isinstance(each, Evict) for each in decisions))
    names = ", ".join(sorted(wanted))
    return PlayResult(f"S16: a storm delays {names} by more than {CYCLES - 1} cycle")


def _cycles(objects: Sequence[Object], policy: Policy) -> Iterator[tuple[list[Decision], Outcome]]:
    """Yield what each cycle decides from when the other tenant's gang is there. Nothing of it is carried out."""
    store, memo = Store(scheduler_names=(policy.dialect.scheduler,), default_queue=policy.dialect.default_queue), Memo()
    theirs = [each for each in objects if getattr(each, "namespace", "") == OTHER]
    for each in objects:
        if getattr(each, "namespace", "") != OTHER:
            store.apply(Seen(each))
    later = max((each.creation for each in theirs if isinstance(each, PodGroup)), default=0.0) > _NOW
    for k in range(later + CYCLES):
        if k == later:
            for each in theirs:
                store.apply(Seen(each))
        planner = ListPlanner()
        outcome = run_cycle(store.snapshot(_NOW + k), policy, _NOW + k, planner, memo=memo)
        store.remember(outcome.writes)
        if k >= later:
            yield planner.taken, outcome


def _given(cycle: tuple[list[Decision], Outcome]) -> set[str]:
    """Return the pods to which a cycle gave nodes, at once or as soon as victims have left."""
    decisions, outcome = cycle
    return {each.pod for each in decisions if isinstance(each, Bind)} | outcome.pipelined.keys()
