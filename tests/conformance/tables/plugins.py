"""Checks of the function tables of single plugins, and of the switches that every plugin has."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml
from msgspec.structs import replace

from pumice.columns.dtypes import ResourceAxis
from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.rows import Candidates, NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.plugin.combine import MayGo
from pumice.framework.plugin.point import Question
from pumice.framework.plugin.points import class_scores, task_scores
from pumice.model.node import Node, NodeImage, Taint
from pumice.model.pod import (
    Affinity,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PreferredNodeTerm,
    Requirement,
    TopologySpreadConstraint,
)
from pumice.testing import build
from pumice.testing.build import cluster, node, pod, podgroup, queue, run
from pumice.volcano import points
from pumice.volcano.plugins.network_topology_aware import NetworkTopologyAware
from pumice.volcano.queues.entitlements import Entitlements
from pumice.volcano.revocable import WindowError, parse_window
from pumice.volcano.table import volcano_registry
from pumice.volcano.topology.domains import ALLOCATE, EVICT, gradients_for_job, gradients_for_sub_job
from tests import resource_algebra as algebra
from tests.conformance.tables.api import resource
from tests.conformance.tables.objects import decoded, job_row, lenient, opened, opened_on, row_of
from tests.conformance.tables.table import Row, difference, disagreement, table
from tests.conformance.tables.topology import exactly


def _conf(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"actions": "allocate", "tiers": [{"plugins": [{"name": name, "arguments": dict(arguments)}]}]}


@table("plugins/TestApplyPluginConfDefaults.yaml")
def switches(row: Row) -> str | None:
    """A switch that is written stays as it is; of the others those are on that are not off in Volcano (two are)."""
    option = row["args"]["option"]
    given = {_stem(key): value for key, value in option.items() if key != "Name"}
    conf = {"name": "gang", **{f"enable{stem}": value for stem, value in given.items()}}
    ((found,),) = lenient({"actions": "allocate", "tiers": [{"plugins": [conf]}]}).tiers
    asked = given or {stem: on for stem, on in volcano_registry().dialects["volcano"].switches.items() if on}
    values = {found.switches[stem] for stem in asked}
    return disagreement(values, {row.get("expected", False)})


def _stem(field: str) -> str:
    return field.removeprefix("Enabled").removeprefix("Enable")


# -- network-topology-aware

_TOPOLOGY = "network-topology-aware"


@table("plugins-network-topology-aware/TestNew.yaml")
def arguments_of_topology(row: Row) -> str | None:
    names = str(row["arguments"].get("hypernode.binpack.resources", "")).split(",")
    scalars = {name.strip(): 1 for name in names if name.strip()}
    ssn = opened(cluster(Node("n", build.resource(**scalars))), _conf(_TOPOLOGY, row["arguments"]))
    found = ssn.hooks.plugin(_TOPOLOGY)
    assert isinstance(found, NetworkTopologyAware)
    weights = dict(zip(ssn.tables.axis.names, found.dimension_weight.tolist(), strict=True))
    weight = {
        "GlobalWeight": found.weight,
        "HyperNodeBinPackingCPU": weights.pop("cpu"),
        "HyperNodeBinPackingMemory": weights.pop("memory"),
        "HyperNodeBinPackingResources": {name: each for name, each in weights.items() if each >= 0},
    }
    normal = {"hyperNodeBinPackingEnable": found.normal_pods, "hyperNodeBinPackingFading": found.fading}
    reports = {"weight": _as_row(weight), "normalPodConfig": _as_row(normal)}
    return difference(_as_row(reports), row["expectedPlugin"])


def _as_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """As the tables record it: without what is 0, false or empty."""
    return {key: value for key, value in values.items() if value}


@table("plugins-network-topology-aware/TestHyperNodeGradientPreFiltering.yaml")
def hypernodes_with_room(row: Row) -> str | None:
    """Whether a hypernode of one node is worth a try. What the node has in all is not in the rows: more than what is
    idle in any of them, less than the most that any of them asks for; and pods, of which the rows say nothing."""
    needed = resource(row["minResource"])
    waiting = pod("t", "g", cpu=f"{needed.milli_cpu:g}m", memory=needed.memory)
    group = podgroup("g", tier=row["highestAllowedTier"], min_resources=needed, phase="Inqueue")
    hypernodes = [exactly("low", 1, ["n"]), exactly("high", 2, hypernodes=["low"])]
    snapshot = cluster(node("n", cpu=40, memory="80Gi"), hypernodes, group, waiting).snapshot()
    nodes = snapshot.tables.nodes.fork()
    for book, key in ((IDLE, "idleResource"), (FUTURE, "futureIdleResource")):
        nodes["books"].part()
        nodes["books"].data[0, book] = snapshot.tables.axis.vector(algebra.with_scalar(resource(row[key]), "pods", 110))
    ssn = opened_on(replace(snapshot, tables=dataclasses.replace(snapshot.tables, nodes=nodes)), _TOPOLOGY)
    purpose = EVICT if row.get("purpose", 0) else ALLOCATE
    job = job_row(ssn.tables, group.key)
    if row.get("isSubJob", False):
        (sub,) = ssn.tables.jobs.subs[job]
        found = gradients_for_sub_job(ssn, sub, ssn.tables.tree.top, purpose)
    else:
        found = gradients_for_job(ssn, job, purpose)
    low = ssn.tables.tree.row_of["low"]
    return disagreement(any(low in group for group in found), row.get("expectTier1Selected", False))


# -- nodeorder

#: What the table calls a score -> the argument with its weight, and the name of that weight in the rows.
_SCORES = {
    "NodeResourcesFit_LeastAllocated": ("leastrequested.weight", "leastReqWeight"),
    "NodeResourcesFit_MostAllocated": ("mostrequested.weight", "mostReqWeight"),
    "NodeResourcesBalancedAllocation": ("balancedresource.weight", "balancedResourceWeight"),
    "NodeAffinity": ("nodeaffinity.weight", "nodeAffinityWeight"),
    "InterPodAffinity": ("podaffinity.weight", "podAffinityWeight"),
    "TaintToleration": ("tainttoleration.weight", "taintTolerationWeight"),
    "ImageLocality": ("imagelocality.weight", "imageLocalityWeight"),
    "PodTopologySpread": ("podtopologyspread.weight", "podTopologySpreadWeight"),
}


@table("plugins-nodeorder/TestInitPlugin.yaml")
def scores_by_weight(row: Row) -> str | None:
    """Which scores count node by node, and which over all: those that make a difference where they are left out."""
    weights = {argument: row.get("weight", {}).get(key, 0) for argument, key in _SCORES.values()}
    for point, wanted, unwanted in (
        (points.node_order, "expectNodeOrderKeys", "expectNoNodeOrderKeys"),
        (points.batch_node_order, "expectScorePlugins", "expectNotInScorePlugins"),
    ):
        everything = _scored(point, weights)
        found = {name for name, (key, _) in _SCORES.items() if _scored(point, weights | {key: 0}) != everything}
        problem = disagreement(found, set(row[wanted])) or disagreement(found & _known(row[unwanted]), set())
        if problem:
            return f"{point.name}: {problem}"
    return None


def _known(names: list[str]) -> set[str]:
    if unknown := set(names) - _SCORES.keys():
        raise ValueError(f"no scores are called {sorted(unknown)}")
    return set(names)


def _scored(point: Question, weights: Mapping[str, int]) -> list[float]:
    """What nodeorder says at a point about nodes that differ in everything that it can look at."""
    plain = node("plain", labels={"zone": "a"})
    liked = node(
        "liked",
        labels={"zone": "b", "liked": "yes"},
        taints=[Taint("avoid", effect="PreferNoSchedule")],
        images=(NodeImage(("image:1",), 500 << 20),),
    )
    there = pod("there", "g", cpu=3, memory="1Gi", on="liked", labels={"app": "x"})
    ssn = opened(cluster(plain, liked, podgroup("g"), there, _choosy()), _conf("nodeorder", weights))
    task, total = Task(ssn.tables, row_of(ssn, "choosy")), np.zeros(2)
    for hook in ssn.hooks.at(point):
        nodes, of_class = NodeRows(ssn.tables, np.arange(2)), hook.form == "class"
        answer = hook.answers(class_scores if of_class else task_scores)(task.cls if of_class else task, nodes)
        total = total if answer is None else total + answer
    return [float(score) for score in total]


def _choosy() -> Pod:
    """Return a pod with a preferred term of every kind."""
    same = LabelSelector((Requirement("app", "In", ("x",)),))
    liked = NodeSelectorTerm((Requirement("liked", "In", ("yes",)),))
    return pod(
        "choosy",
        "g",
        images=("image:1",),
        affinity=Affinity(
            node_preferred=(PreferredNodeTerm(1, liked),),
            pod_preferred=(PodAffinityTerm("zone", same, ("ns",), weight=1),),
        ),
        spread=(TopologySpreadConstraint(1, "zone", "ScheduleAnyway", same),),
    )


# -- proportion


@table("plugins-proportion/TestProportion.yaml")
def a_gang_that_fails_leaves_its_share(row: Row) -> str | None:
    """The recording left out the queue, and shows the pods as they were after the test, when they ran."""
    waiting = [replace(each, phase="Pending") for each in decoded(Pod=row["pods"]) if isinstance(each, Pod)]
    groups = decoded(Node=row["nodes"], PriorityClass=row["pcs"], PodGroup=row["pgs"])
    plugins = [{"name": name} for name in ("priority", "gang", "predicates", "proportion")]
    conf = {"actions": "allocate", "tiers": [{"plugins": plugins}]}
    store = cluster(queue("q1"), groups, waiting)
    return disagreement(run(store, yaml.safe_dump(conf)).binds, row["expected"])


# -- capacity


@table("plugins-capacity/Test_updateQueueAttrShare.yaml")
def share_of_a_queue(row: Row) -> str | None:
    axis = ResourceAxis()
    amounts = {key: axis.vector(resource(row[key])) for key in ("deserved", "allocated")}
    deserved = amounts["deserved"][None]
    every = Entitlements(deserved, deserved > 0, np.zeros_like(deserved), deserved.copy(), deserved.copy())
    return disagreement(float(every.share(amounts["allocated"][None])[0]), row.get("wantShare", 0))


# -- pdb


@table("plugins-pdb/TestPreemptableAndReclaimableFn.yaml")
def spared_by_budgets(row: Row) -> str | None:
    """The pods run on one node, in the order of the row; what the recording calls status 512 is a pod without one."""
    tasks = row["preemptees"]
    names = [task["Name"] for task in tasks]
    members = [
        pod(task["Name"], "g", 0, 0, on="n", labels=task["Pod"]["metadata"]["labels"], namespace=task["Namespace"])
        for task in tasks
    ]
    groups = podgroup("g", namespace=tasks[0]["Namespace"])
    budgets = decoded(PodDisruptionBudget=row.get("pdbs") or [])
    ssn = opened(cluster(node("n"), groups, members, budgets), _conf("pdb", {}))
    rows = np.array([row_of(ssn, name) for name in names])
    wanted = row.get("expectVictims") or []
    for point in (points.preemptable, points.reclaimable):
        (hook,) = ssn.hooks.at(point)
        mask = np.asarray(ssn.hooks.ask_one(hook, Task(ssn.tables, int(rows[0])), Candidates(ssn.tables, rows)))
        problem = disagreement([task for task, may in zip(tasks, mask, strict=True) if may], wanted)
        if problem:
            return f"{point.name}: {problem}"
    (hook,) = ssn.hooks.at(points.victim_tasks)
    found = ssn.hooks.ask_one(hook, TaskRows(ssn.tables, rows))
    assert isinstance(found, MayGo)
    named = {json.loads(task)["Name"]: is_victim for task, is_victim in (row.get("expectVictimsMap") or {}).items()}
    return disagreement({name: True for name, may in zip(names, found.mask, strict=True) if may}, named)


# -- tdm


@table("plugins-tdm/Test_parseRevocableZone.yaml")
def hours_of_a_zone(row: Row) -> str | None:
    try:
        window = parse_window(row["rz"])
    except WindowError:
        found: dict[str, Any] = {"err": True}
    else:
        found = {"delta": window.end - window.start}
    return difference(found, {key: row[key] for key in ("err", "delta") if key in row})
