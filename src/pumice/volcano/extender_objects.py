"""Write rows as the objects that Volcano sends to an extender: the fields of its structures, under their Go names.

Source: Volcano extender plugin.
"""

from __future__ import annotations

from typing import Any

from pumice.columns.dtypes import F64, ResourceAxis
from pumice.columns.nodes import FUTURE, IDLE, PIPELINED, RELEASING, USED
from pumice.columns.tables import Tables
from pumice.model.pod import Pod

Obj = dict[str, Any]


def amount(axis: ResourceAxis, row: F64) -> Obj:
    """Return MilliCPU, Memory and ScalarResources."""
    found = axis.resource(row)
    # Pod slots are a resource here but not in Volcano's structure.
    scalars = {name: value for name, value in (found.scalars or {}).items() if name != "pods"}
    return {"MilliCPU": found.milli_cpu, "Memory": found.memory, "ScalarResources": scalars}


def task(tables: Tables, row: int) -> Obj:
    """Return a task. Its pod has metadata and the named fields of the spec only."""
    tasks, pod = tables.tasks, tables.tasks.pods[row]
    job, node, asked = (
        int(tasks.job[row]),
        int(tasks.node[row]),
        amount(tables.axis, tables.classes.req[tasks.cls[row]]),
    )
    return {
        "UID": pod.uid,
        "Job": tables.jobs.uids[job] if job >= 0 else "",
        "Name": pod.name,
        "Namespace": pod.namespace,
        "TaskRole": pod.role,
        "Resreq": asked,
        # In Volcano, too, both are the full request, init containers included.
        "InitResreq": asked,
        "NodeName": tables.nodes.facts.names[node] if node >= 0 else "",
        # Volcano's task statuses are bit flags.
        "Status": 1 << max(int(tasks.status[row]), 0),
        "Priority": int(tasks.priority[row]),
        "Preemptable": bool(tasks.preemptable[row]),
        "BestEffort": bool(tasks.best_effort[row]),
        "Pod": _pod(pod),
    }


def _pod(pod: Pod) -> Obj:
    """Return a pod."""
    return {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "labels": dict(pod.labels),
            "annotations": dict(pod.annotations),
        },
        # The fields that placement rests on. A program that needs more can read the pod by its UID.
        "spec": {
            "schedulerName": pod.scheduler_name,
            "nodeName": pod.node_name,
            "nodeSelector": dict(pod.spec.node_selector),
        },
        "status": {"phase": pod.phase},
    }


def node(tables: Tables, row: int) -> Obj:
    """Return a node with its resources by state."""
    nodes, facts = tables.nodes, tables.nodes.facts
    obj = facts.objs[row]
    books = {"Idle": IDLE, "Used": USED, "Releasing": RELEASING, "Pipelined": PIPELINED, "FutureIdle": FUTURE}
    return {
        "Name": obj.name,
        # All books, because a program that filters needs what is idle and what will be.
        **{name: amount(tables.axis, nodes.books[row, book]) for name, book in books.items()},
        "Allocatable": amount(tables.axis, facts.allocatable[row]),
        "Node": {"metadata": {"name": obj.name, "labels": dict(obj.labels), "annotations": dict(obj.annotations)}},
    }


def job(tables: Tables, row: int) -> Obj:
    """Return a job with its tasks."""
    jobs, group = tables.jobs, tables.jobs.groups[row]
    queue = int(jobs.queue[row])
    return {
        "UID": jobs.uids[row],
        "Name": group.name,
        "Namespace": group.namespace,
        "Queue": tables.queues.names[queue] if queue >= 0 else "",
        "Priority": int(jobs.priority[row]),
        "MinAvailable": int(jobs.min_available[row]),
        "Allocated": amount(tables.axis, jobs.allocated[row]),
        # By UID, the key of Volcano's map of tasks.
        "Tasks": {tables.tasks.pods[each].uid: task(tables, each) for each in jobs.tasks[row].tolist()},
        "PodGroup": {
            "metadata": {"name": group.name, "namespace": group.namespace, "annotations": dict(group.annotations)}
        },
    }


def queue(tables: Tables, row: int) -> Obj:
    """Return a queue."""
    obj = tables.queues.objs[row]
    # Volcano's queues have no UID of their own: the name is used for it.
    return {"UID": obj.name, "Name": obj.name, "Weight": obj.weight}
