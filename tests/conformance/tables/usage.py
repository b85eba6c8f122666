"""Checks of the function tables of usage."""

from __future__ import annotations

import numpy as np

from pumice.columns.rows import NodeRows
from pumice.model.pod import Pod
from pumice.testing.build import cluster, node, pod, podgroup
from pumice.volcano.plugins.usage import Usage
from pumice.volcano.scorers.usage_load import (
    best_effort_use,
    composite,
    estimated_use,
    idleness_score,
    risk_factor,
    weighted,
)
from tests.conformance.tables.objects import STATUS_OF_FLAG, decoded, opened, row_of
from tests.conformance.tables.table import Row, disagreement, table

_FOLDER = "plugins-usage"
_STATUS = {1: "Pending", 32: "Running", 128: "Succeeded"}


def _near(found: float, row: Row) -> str | None:
    return disagreement(round(float(found), 9), round(float(row.get("expected", 0)), 9))


def _pair(row: Row, *keys: str) -> np.ndarray:
    return np.array([float(row.get(key, 0)) for key in keys])


@table(f"{_FOLDER}/TestCalcAppliedRiskFactor.yaml")
def applied_risk_factor(row: Row) -> str | None:
    load = np.array([row["loadCompositePercentage"]])
    return _near(risk_factor(load, row["riskThreshold"], row["riskFactor"])[0], row)


@table(f"{_FOLDER}/TestCalcCompositeUtilization.yaml")
def share_in_use(row: Row) -> str | None:
    percent, coming, capacity = (_pair(row, key) for key in ("realLoadPercent", "shadowEstAbs", "capacity"))
    return _near(composite(percent, coming, capacity)[0], row)


@table(f"{_FOLDER}/TestCalcLoadCompositePercentage.yaml")
def load(row: Row) -> str | None:
    return _near(float(weighted(_pair(row, "cpuComposite", "memComposite"), _pair(row, "cpuWeight", "memWeight"))), row)


@table(f"{_FOLDER}/TestCalcNodeScore.yaml")
def score(row: Row) -> str | None:
    shares, weights = _pair(row, "cpuComp", "memComp"), _pair(row, "cpuWeight", "memWeight")
    return _near(float(idleness_score(shares, weights, row["usageWeight"])), row)


@table(f"{_FOLDER}/TestEstimateBestEffortResource.yaml")
def use_of_best_effort(row: Row) -> str | None:
    return _near(float(best_effort_use(row["configuredValue"], row["appliedRiskFactor"])), row)


@table(f"{_FOLDER}/TestEstimatePodResource.yaml")
def use_of_a_pod(row: Row) -> str | None:
    request, limit = _pair(row, "request"), _pair(row, "limit")
    asked, burst = (float(row.get(key, 0)) for key in ("requestWeight", "burstWeight"))
    return _near(estimated_use(request, limit, asked, burst, row["appliedRiskFactor"])[0], row)


@table(f"{_FOLDER}/TestGetPodResourceRequestLimit.yaml")
def request_and_limit(row: Row) -> str | None:
    (found,) = decoded(Pod=[{"metadata": {"name": "p"}, **row["pod"]}])
    assert isinstance(found, Pod)
    spec = found.spec
    asked = spec.request.milli_cpu, spec.request.memory, spec.limit.milli_cpu, spec.limit.memory
    keys = ("expectedCPUReq", "expectedMemReq", "expectedCPULim", "expectedMemLim")
    return disagreement(asked, tuple(float(row.get(key, 0)) for key in keys))


@table(f"{_FOLDER}/TestShouldAddToShadowCache.yaml")
def is_not_measured_yet(row: Row) -> str | None:
    """Whether something comes to the node with the task. The start of those that run is in words: recent, or old."""
    task = row["task"]
    context = task["TransactionContext"]
    status, on = context["Status"], context.get("NodeName", "")
    label = STATUS_OF_FLAG[status].label
    started = {"recent running task is tracked": -10.0, "old running task is not tracked": -600.0}.get(row["name"])
    waits = label in ("Pending", "Allocated", "Binding")
    one = pod("t", "g", on="" if waits else on, phase=_STATUS.get(status, "Pending"), start_time=started)
    ssn = opened(cluster(node("node1"), podgroup("g"), one), _FOLDER.removeprefix("plugins-"))
    plugin = ssn.hooks.plugin("usage")
    assert isinstance(plugin, Usage)
    if label in ("Allocated", "Binding"):
        statement = ssn.statement()
        statement.allocate([row_of(ssn, "t")], [0])
        statement.keep_uncommitted()
    found = NodeRows(ssn.tables, np.arange(1)).read(plugin.coming)[0]
    return disagreement(bool(found.any()), row.get("expected", False))
