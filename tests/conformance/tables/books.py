"""Checks of the function tables about what a node and a job keep of their tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.snapshot import Snapshot
from pumice.columns.views import Task
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.model.status import TaskStatus
from pumice.state.store import Store
from pumice.testing.build import cluster
from tests.conformance.tables.objects import FLAG_OF_STATUS, Raw, amount, decoded, homes, in_group, job_row
from tests.conformance.tables.table import Row, difference, disagreement, table

_DEVICES = {
    "Others": "what plugins for devices keep with a node",
    "State": "Volcano keeps nodes that are not ready; Pumice has those that are there",
}


class _Told:
    """A snapshot in the words of the recording. ``raws`` are the manifests of its pods."""

    def __init__(self, snapshot: Snapshot, raws: Iterable[Raw]) -> None:
        self.tables = snapshot.tables
        self._raws = {raw["metadata"]["uid"]: raw for raw in raws}

    def task(self, row: int) -> dict[str, Any]:
        task = Task(self.tables, row)
        request = amount(self.tables.axis, task.req)
        placed = {"NodeName": task.node.name} if task.node else {}
        reports = {
            "UID": task.pod.uid,
            "Name": task.pod.name,
            "Namespace": task.pod.namespace,
            "Pod": self._raws[task.pod.uid],
            "Priority": task.priority,
            "Resreq": request,
            "InitResreq": request,
            "TransactionContext": {"Status": FLAG_OF_STATUS[task.status], **placed},
        }
        return reports | ({"Preemptable": True} if task.preemptable else {})

    def tasks(self, rows: AnyArray) -> dict[str, Any]:
        return {self.tables.tasks.pods[row].uid: self.task(row) for row in rows.tolist()}

    def by_status(self, rows: AnyArray) -> dict[str, Any]:
        found: dict[str, dict[str, Any]] = {}
        for row in rows.tolist():
            status = TaskStatus(int(self.tables.tasks.status[row]))
            found.setdefault(status.label, {})[self.tables.tasks.pods[row].uid] = self.task(row)
        return found

    def job(self, key: str) -> dict[str, Any]:
        tables, tasks = self.tables, self.tables.tasks
        job = job_row(tables, key)
        rows = tables.jobs.tasks[job]
        requests = tables.classes.req[tasks.cls[rows]]
        return {
            "UID": _name(key),
            "Tasks": self.tasks(rows),
            "TaskStatusIndex": self.by_status(rows),
            "TaskToSubJob": {tasks.pods[row].uid: _name(tables.subs.uids[tasks.sub[row]]) for row in rows.tolist()},
            "SubJobs": {_name(tables.subs.uids[sub]): self.sub_job(sub) for sub in tables.jobs.subs[job]},
            "Allocated": amount(tables.axis, tables.jobs.allocated[job]),
            "TotalRequest": amount(tables.axis, requests.sum(axis=0)),
        }

    def sub_job(self, sub: int) -> dict[str, Any]:
        tables = self.tables
        rows = tables.subs.tasks[sub]
        by_priority: dict[str, list[str]] = {}
        for row in rows.tolist():
            by_priority.setdefault(str(tables.tasks.priority[row]), []).append(tables.tasks.pods[row].uid)
        return {
            "UID": _name(tables.subs.uids[sub]),
            "GID": _name(tables.subs.gids[sub]),
            "Job": _name(tables.jobs.uids[tables.subs.job[sub]]),
            "Priority": int(tables.subs.priority[sub]),
            "Tasks": self.tasks(rows),
            "TaskStatusIndex": self.by_status(rows),
            "taskPriorities": {priority: sorted(uids) for priority, uids in by_priority.items()},
        }

    def counted(self, key: str) -> str | None:
        """Whether the counts that the job keeps are those of its tasks."""
        tables = self.tables
        job = job_row(tables, key)
        for counts, rows in (
            (tables.jobs.counts[job], tables.jobs.tasks[job]),
            *((tables.subs.counts[sub], tables.subs.tasks[sub]) for sub in tables.jobs.subs[job]),
        ):
            there = np.bincount(tables.tasks.status[rows], minlength=len(counts))
            problem = disagreement(counts.tolist(), there.tolist())
            if problem:
                return f"counts: {problem}"
        return None

    def node(self, raw: Raw) -> dict[str, Any]:
        tables, facts, axis = self.tables, self.tables.nodes.facts, self.tables.axis
        node = facts.row_of[raw["metadata"]["name"]]
        pods_max = int(facts.max_pods[node])
        rows = np.flatnonzero(tables.tasks.node == node)
        reports = {
            "Name": facts.names[node],
            "Node": raw,
            "Allocatable": amount(axis, facts.allocatable[node], pods_max),
            "Capacity": amount(axis, axis.vector(facts.objs[node].capacity), facts.objs[node].capacity.max_task_num),
            "Idle": amount(axis, tables.nodes.idle[node], pods_max),
            "Used": amount(axis, tables.nodes.used[node]),
            "Releasing": amount(axis, tables.nodes.releasing[node]),
            "Pipelined": amount(axis, tables.nodes.pipelined[node]),
            "Tasks": {tables.tasks.pods[row].key: self.task(row) for row in rows.tolist()},
        }
        return {key: value for key, value in reports.items() if value}


def _name(key: str) -> str:
    """A job is known by its owner in the rows, by namespace and group in Pumice."""
    return key.partition("/")[2]


# -- jobs


@table("api/TestAddTaskInfo.yaml", "api/TestDeleteTaskInfo.yaml")
def tasks_of_a_job(row: Row) -> str | None:
    """The rows have no PodGroup: the owner's UID is used as its name."""
    owner = row["uid"]
    pods = in_group(decoded(Pod=row["pods"]), owner)
    (namespace,) = {pod.namespace for pod in pods}
    store = cluster(homes(pods), pods)
    for gone in decoded(Pod=row.get("rmPods", ())):
        assert isinstance(gone, Pod)
        store.apply(Gone(Pod, gone.key))
    reports = _Told(store.snapshot(), row["pods"])
    key = f"{namespace}/{owner}"
    return difference(reports.job(key), row["expected"]) or reports.counted(key)


@table("cache/TestGetOrCreateJob.yaml")
def a_job_comes_with_its_first_task(row: Row) -> str | None:
    """A task that names no job makes none."""
    raw = row["task"]
    pods = in_group(decoded(Pod=[raw["Pod"]]), raw.get("Job", ""))
    jobs = cluster(homes(pods), pods).snapshot().tables.jobs
    return disagreement(bool(jobs.alive.any()), row.get("gotJob", False))


# -- nodes


@table("api/TestNodeInfo_AddPod.yaml", "api/TestNodeInfo_RemovePod.yaml", unread=_DEVICES)
def pods_of_a_node(row: Row) -> str | None:
    store = cluster(decoded(Node=[row["node"]], Pod=row["pods"]))
    for gone in decoded(Pod=row.get("rmPods", ())):
        assert isinstance(gone, Pod)
        store.apply(Gone(Pod, gone.key))
    return _node_as_wanted(store, row, row["node"], "expected")


@table("api/TestNodeInfo_SetNode.yaml", unread=_DEVICES)
def a_node_changes(row: Row) -> str | None:
    """Smaller than what its pods ask for, then as it was."""
    store = cluster(decoded(Node=[row["node"]], Pod=row["pods"]))
    for raw, wanted in ((row["updated"], "expected"), (row["node"], "expected2")):
        (node,) = decoded(Node=[raw])
        store.apply(Seen(node))
        problem = _node_as_wanted(store, row, raw, wanted)
        if problem:
            return problem
    return None


def _node_as_wanted(store: Store, row: Row, raw: Raw, key: str) -> str | None:
    problem = difference(_Told(store.snapshot(), row["pods"]).node(raw), row[key])
    return f"{key}: {problem}" if problem else None
