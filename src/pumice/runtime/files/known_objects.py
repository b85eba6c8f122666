"""The contents of a snapshot as objects of the API. Decisions that are not confirmed yet count as done."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from pumice.columns.snapshot import Snapshot
from pumice.columns.tables import Tables
from pumice.model.devices.pod_devices import with_devices
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass, Queue
from pumice.model.status import ALLOCATED_STATUSES, TaskStatus
from pumice.model.workloads.podgroup import PodGroup


def objects_in(snapshot: Snapshot, now: float) -> list[Object]:
    """Return all objects in the order of their rows. ``now``: for fields that need a time."""
    tables = snapshot.tables
    return [
        *tables.nodes.facts.objs,
        *tables.tree.objs,
        *queues_in(tables),
        *groups_in(tables),
        *pods_in(tables, now),
    ]


def queues_in(tables: Tables) -> list[Queue]:
    """Return every queue with its status."""
    statuses = zip(tables.queue_statuses.objs, tables.queues.objs, strict=True)
    return [status.added_to(queue) for status, queue in statuses]


def groups_in(tables: Tables) -> list[PodGroup]:
    """Return every known PodGroup."""
    return [group for group in tables.jobs.groups if group is not None]


def pods_in(tables: Tables, now: float) -> Iterator[Pod]:
    """Yield every known pod, on the node where it will be."""
    tasks, names = tables.tasks, tables.nodes.facts.names
    given = {grant.key: grant for grant in tables.device_grants.objs}
    for row in np.flatnonzero(tasks.alive).tolist():
        pod, status, node = tasks.pods[row], TaskStatus(int(tasks.status[row])), int(tasks.node[row])
        if status in ALLOCATED_STATUSES and node >= 0 and not pod.node_name:
            pod = replace(pod, node_name=names[node])
            if pod.key in given:
                pod = with_devices(pod, given[pod.key])
        elif status is TaskStatus.RELEASING and pod.deletion is None:
            pod = replace(pod, deletion=now)
        yield pod


def all_objects_in(snapshot: Snapshot, now: float) -> list[Object]:
    """Return all objects, also those that have a table by kind, and priority classes as jobs have their values."""
    tables = snapshot.tables
    found = objects_in(snapshot, now)
    for name in _BESIDE:
        # Not +=, which NumPy would take for an addition of amounts. Rows that are not in use have None.
        found.extend(obj for obj in getattr(tables, name).objs if obj is not None)
    return [*_priority_classes(tables), *found]


def scheduler_names_in(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the scheduler names of the pods of all jobs."""
    tasks = snapshot.tables.tasks
    rows = np.flatnonzero(tasks.alive & (tasks.job >= 0)).tolist()
    return tuple(sorted({tasks.pods[row].scheduler_name for row in rows}))


#: Tables of which each row is one object, apart from nodes and queues.
_BESIDE = (
    "budgets",
    "topologies",
    "quotas",
    "numas",
    "zones",
    "claims",
    "slices",
    "device_classes",
    "volumes",
    "volume_claims",
    "storage_classes",
    "csi_nodes",
    "storage_capacities",
)


def _priority_classes(tables: Tables) -> list[PriorityClass]:
    jobs, found = tables.jobs, dict[str, int]()
    for row in np.flatnonzero(jobs.alive).tolist():
        group = jobs.groups[row]
        if group is not None and group.priority_class_name:
            found.setdefault(group.priority_class_name, int(jobs.priority[row]))
    return [PriorityClass(name, value) for name, value in found.items()]
