"""What a snapshot knows, as objects of the API: what was decided and is not confirmed yet counts as done."""

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
    """All of them, in the order of their rows. ``now``: where a time is needed."""
    tables = snapshot.tables
    return [
        *tables.nodes.facts.objs,
        *tables.tree.objs,
        *tables.queues.objs,
        *groups_in(tables),
        *pods_in(tables, now),
    ]


def groups_in(tables: Tables) -> list[PodGroup]:
    """Every PodGroup that is known."""
    return [group for group in tables.jobs.groups if group is not None]


def pods_in(tables: Tables, now: float) -> Iterator[Pod]:
    """Every pod that is known, where it will be."""
    tasks, names = tables.tasks, tables.nodes.facts.names
    for row in np.flatnonzero(tasks.alive).tolist():
        pod, status, node = tasks.pods[row], TaskStatus(int(tasks.status[row])), int(tasks.node[row])
        if status in ALLOCATED_STATUSES and node >= 0 and not pod.node_name:
            pod = replace(pod, node_name=names[node])
        elif status is TaskStatus.RELEASING and pod.deletion is None:
            pod = replace(pod, deletion=now)
        yield pod
