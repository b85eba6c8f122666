"""Checks of the function tables of resource-strategy-fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.points import class_scores
from pumice.model.node import Node
from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import Resource
from pumice.model.strategy import resource_strategy
from pumice.testing.build import cluster, podgroup
from pumice.volcano import points
from pumice.volcano.scorers.strategies import Rule, Strategies
from tests.conformance.tables.api import resource
from tests.conformance.tables.objects import opened, row_of
from tests.conformance.tables.table import Row, difference, disagreement, table

_NAME = "resource-strategy-fit"
_FOLDER = f"plugins-{_NAME}"


def _session(
    offered: Resource, used: Resource, asked: Resource, arguments: Mapping[str, Any], notes: Mapping[str, str]
) -> Session:
    there = Pod("ns", "there", "there", PodSpec(used), node_name="n", phase="Running")
    waits = Pod("ns", "waits", "waits", PodSpec(asked, strategy=resource_strategy(notes)))
    plugins = [{"name": _NAME, "arguments": dict(arguments)}]
    store = cluster(Node("n", offered), podgroup("g"), there, waits)
    return opened(store, {"actions": "allocate", "tiers": [{"plugins": plugins}]})


def _score(
    offered: Resource,
    used: Resource,
    asked: Resource,
    arguments: Mapping[str, Any],
    notes: Mapping[str, str],
) -> float:
    ssn = _session(offered, used, asked, arguments, notes)
    found = ssn.ask(class_scores, Task(ssn.tables, row_of(ssn, "waits")).cls, NodeRows(ssn.tables, np.arange(1)))
    return float(np.asarray(found).reshape(-1)[0])


def _written(resources: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {"type": each["Type"], "weight": each["Weight"]} for name, each in resources.items()}


@table(f"{_FOLDER}/TestScore.yaml")
def score(row: Row) -> str | None:
    args = row["args"]
    weight, node, task = args["weight"], args["node"], args.get("task", {})
    arguments = {"resourceStrategyFitWeight": weight["Weight"], "resources": _written(weight["Resources"])}
    notes = ((task.get("Pod") or {}).get("metadata") or {}).get("annotations") or {}
    offered, used, asked = (resource(each) for each in (node["Allocatable"], node["Used"], task.get("Resreq") or {}))
    found = _score(offered, used, asked, arguments, notes)
    return disagreement(round(found, 8), round(float(row.get("want", 0)), 8))


@table(f"{_FOLDER}/Test_leastRequestedScore.yaml", kind="LeastAllocated")
@table(f"{_FOLDER}/Test_mostRequestedScore.yaml", kind="MostAllocated")
def score_of_one(row: Row, *, kind: str) -> str | None:
    """A resource of which there is too little takes the whole score, which another one would have."""
    args = row.get("args") or {}
    offered, used, asked = (args.get(key, 0) for key in ("capacity", "used", "requested"))
    rules = {name: {"type": kind, "weight": args.get("weight", 0) or 1} for name in ("cpu", "memory")}
    roomy = Resource(1000.0, float(offered))
    found = _score(roomy, Resource(100.0, float(used)), Resource(100.0, float(asked)), {"resources": rules}, {})
    return disagreement(found == 0, bool(row.get("wantErr", False)))


@table(f"{_FOLDER}/Test_calculateWeight.yaml")
def rules_of_a_policy(row: Row) -> str | None:
    args = row["args"]["args"]
    found = Strategies.read(args.get("resourceStrategyFitWeight", -1), args.get("resources"))
    return difference(
        {"Resources": {n: _as_row(r) for n, r in found.rules.items()}, "Weight": found.weight}, row["want"]
    )


def _as_row(rule: Rule) -> dict[str, Any]:
    return {"Type": "MostAllocated" if rule.most else "LeastAllocated", "Weight": rule.weight}


@table(f"{_FOLDER}/Test_findResourceConfigWithPrefix.yaml")
def rule_of_a_name(row: Row) -> str | None:
    args = row.get("args") or row
    rules = {n: Rule(e["Type"] == "MostAllocated", e["Weight"]) for n, e in (args.get("resources") or {}).items()}
    found = Strategies(1, rules).of(args["resourceName"])
    reports = {} if found is None else {"wantConfig": _as_row(found), "wantFound": True}
    return difference(reports, {key: row[key] for key in ("wantConfig", "wantFound") if key in row})


@table(f"{_FOLDER}/Test_checkNodeResourceIsProportional.yaml")
def left_beside_devices(row: Row) -> str | None:
    args = row["args"]
    rates = {f"{name}.{key.lower()}": n for name, each in args["proportional"].items() for key, n in each.items()}
    wanted = {"enable": True, "resources": ", ".join(args["proportional"]), "resourceProportion": rates}
    asked = resource(args["task"]["Resreq"])
    ssn = _session(resource(args["node"]["Idle"]), Resource(), asked, {"proportional": wanted}, {})
    task = Task(ssn.tables, row_of(ssn, "waits"))
    (filter_result, *_) = [*ssn.ask(points.class_filters, task.cls, NodeRows(ssn.tables, np.arange(1))), None]
    found = filter_result.why[filter_result.codes[0]][0].code if filter_result is not None else 0
    return disagreement((int(found), found != 0), (row.get("want", 0), row.get("wantErr", False)))
