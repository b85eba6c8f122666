"""The contents of a snapshot as objects of the API. Decisions that are not confirmed yet count as done."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from pumice.columns.snapshot import Snapshot
from pumice.columns.tables import Tables
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.status import ALLOCATED_STATUSES, TaskStatus
from pumice.model.workloads.podgroup import PodGroup


def objects_in(snapshot: Snapshot, now: float) -> list[Object]:
    """Return all objects in the order of their rows. ``now``: for fields that need a time."""
    tables = snapshot.tables
    return [
        *tables.nodes.facts.objs,
        *tables.tree.objs,
        *tables.queues.objs,
        *groups_in(tables),
        *pods_in(tables, now),
    ]


def groups_in(tables: Tables) -> list[PodGroup]:
    """Return every known PodGroup."""
    return [group for group in tables.jobs.groups if group is not None]


def pods_in(tables: Tables, now: float) -> Iterator[Pod]:
    """Yield every known pod, on the node where it will be."""
    tasks, names = tables.tasks, tables.nodes.facts.names
    for row in np.flatnonzero(tasks.alive).tolist():
        pod, status, node = tasks.pods[row], TaskStatus(int(tasks.status[row])), int(tasks.node[row])
        if status in ALLOCATED_STATUSES and node >= 0 and not pod.node_name:
            pod = replace(pod, node_name=names[node])
        elif status is TaskStatus.RELEASING and pod.deletion is None:
            pod = replace(pod, deletion=now)
        yield pod
