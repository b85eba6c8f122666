"""Checks of the function tables about fit errors: why a task found no node, and what its users read about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.closing import close_session
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt
from pumice.framework.plugin.filter_result import Code, FilterResult, FitErrors, Unfit
from pumice.model.pod import Pod
from pumice.placing.batch import placing_of
from pumice.testing.build import cluster, node, podgroup, pods
from pumice.volcano.eviction.node_search import NodeSearch
from pumice.volcano.status.fit_errors import FitTexts, error_text
from tests.conformance.tables.objects import decoded, in_group, job_row, opened, row_of
from tests.conformance.tables.table import Row, difference, disagreement, table


def _errors(
    ssn: Session,
    task: int,
    reasons: Mapping[str, Sequence[str]],
    hypernode: str = "",
    code: Code = Code.UNSCHEDULABLE,
) -> FitErrors:
    """The fit errors of a task on nodes that all object, each for its reasons."""
    nodes = NodeRows(ssn.tables, np.array([ssn.tables.nodes.facts.row_of[name] for name in reasons], dtype=np.int64))
    why = ((), *(tuple(Unfit(reason, code) for reason in each) for each in reasons.values()))
    objections = FilterResult(np.arange(1, len(why), dtype=np.int32), why)
    return placing_of(ssn).feasible.errors_of(
        Task(ssn.tables, task).cls, nodes, [("test", objections)], hypernode, resources=False
    )


@table("api/TestFitErrors.yaml")
def text_of_fit_errors(row: Row) -> str | None:
    """``err`` is the reason at ``node``, ``fiterr`` at every one of ``filterNodes``; ``fitStr`` is the head."""
    reasons = {name: [s["Reason"] for s in row["fiterr"]["Status"]] for name in row["filterNodes"]}
    if "err" in row:
        reasons[row["node"]] = [row["err"]["$error"]]
    ssn = opened(cluster([node(name) for name in reasons] or node("n"), podgroup("g"), pods("g", 1)))
    task = row_of(ssn, "g-0")
    errors = replace(_errors(ssn, task, reasons, row.get("hyperNode", "")), message=row.get("fitStr", ""))
    return disagreement(error_text(ssn.tables, task, errors), row["want"])


@table("api/TestTaskSchedulingReason.yaml")
def reasons_of_a_waiting_gang(row: Row) -> str | None:
    """Pods that name a node are waiting ones that a discarded statement had placed there."""
    name, expected = row["jobid"], row["expected"]
    given = in_group(decoded(Pod=row["pods"]), name)
    refused = {uid: errors["nodes"] for uid, errors in row["nodefes"].items()}
    names = {pod.node_name for pod in given if pod.node_name} | {each for nodes in refused.values() for each in nodes}
    waiting = [_waiting(pod) for pod in given]
    group = podgroup(name, len(given), namespace=given[0].namespace)
    ssn = opened(cluster([node(each) for each in sorted(names)], group, waiting))
    job = job_row(ssn.tables, group.key)
    with ssn.statement() as stmt:
        for pod in given:
            if pod.node_name:
                stmt.allocate([row_of(ssn, pod.uid)], [ssn.tables.nodes.facts.row_of[pod.node_name]])
        stmt.discard()
        ssn.trace.take(job, Attempt(undone=tuple(stmt.undone)))
    for uid, nodes in refused.items():
        task = row_of(ssn, uid)
        reasons = {each: [s["Reason"] for s in errors["Status"]] for each, errors in nodes.items()}
        ssn.trace.note(task, _errors(ssn, task, reasons))
    text = FitTexts(ssn.tables, ssn.trace).job_text(job)
    notices = {notice.uid: notice.message for notice in close_session(ssn).notices()}
    return difference({**notices, "pg": text}, expected)


@table("framework/TestFilterOutPreemptMayNotHelpNodes.yaml")
def nodes_where_evictions_may_help(row: Row) -> str | None:
    """``status``: why a node refuses a task, by task."""
    given = decoded(Node=row["Nodes"], PodGroup=row["PodGroups"], Queue=row["Queues"], Pod=row["Pods"])
    ssn = opened(cluster(given))
    names, search = ssn.tables.nodes.facts.names, NodeSearch(ssn, cached=False, by_score=False)
    for uid, error in row["status"].items():
        reasons = {error["NodeName"]: [status["Reason"] for status in error["Status"]]}
        code = max(Code(status["Code"]) for status in error["Status"])
        task = row_of(ssn, uid)
        ssn.trace.note(task, _errors(ssn, task, reasons, code=code))
    found = {}
    for pod in (each for each in given if isinstance(each, Pod)):
        mask = search.not_given_up(Task(ssn.tables, row_of(ssn, pod.uid)))
        left = [name for i, name in enumerate(names) if mask is None or mask[i]]
        if left:
            found[pod.uid] = left
    return difference(found, row["want"])


def _waiting(pod: Pod) -> Pod:
    return replace(pod, node_name="")
