"""Open the ledger of shared GPUs for a session that has pods with parts of GPUs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from pumice.columns.column import Column
from pumice.columns.counting import HELD
from pumice.columns.dtypes import AnyArray
from pumice.columns.gpus.devices import DeviceLedger, memory_of, sharing_tasks, slot_count
from pumice.columns.nodes import FUTURE, IDLE, USED
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.model.devices.gpu import GPU_RESOURCE, RESERVATION_NAMESPACE, gpu_groups
from pumice.model.pod import Pod
from pumice.placing.derived import derived


def open_devices(ssn: Session) -> None:
    """Create the device ledger and enter all tasks that share GPUs. Called before plugins are opened."""
    tables = ssn.tables
    rows = sharing_tasks(tables).tolist()
    # Without such pods there is no ledger, and no placement pays for it.
    if not rows:
        return
    shares, of, left = (
        _column(ssn, name, axis, *shape, values=values)
        for name, axis, shape, values in (
            ("devices.shares", "node", (slot_count(tables, rows), 3), None),
            ("devices.of", "task", (), np.zeros(tables.tasks.capacity, dtype=np.int64)),
            ("devices.left", "task", (), np.zeros(tables.tasks.capacity, dtype=np.int64)),
        )
    )
    memory = derived(ssn).get("gpu memory", lambda: memory_of(tables.nodes.facts))
    devices = ssn.ledger.devices = DeviceLedger(tables, ssn.journal, shares, of, left, memory)
    devices.enter(rows)
    _count_once(ssn, devices)


def _column(ssn: Session, name: str, axis: str, *shape: int, values: AnyArray | None) -> Column[Any]:
    """Return a column of the session, created if it does not exist."""
    name, column = ssn.world.column(name, axis, *shape, values=values)
    ssn.memo.begin_column(ssn.world, name)
    return column


def _count_once(ssn: Session, devices: DeviceLedger) -> None:
    """Release the GPU that a reservation pod holds, on all nodes."""
    tables = ssn.tables
    rows = reservations(tables, devices)
    gpu = tables.axis.column[GPU_RESOURCE]
    for row in rows.tolist():
        # KAI reserves a shared GPU with a pod that asks for a whole GPU. The pods in the same group hold the same
        # device, so without this correction it would be counted twice.
        change = np.zeros_like(tables.nodes.books[0])
        held = float(tables.classes.req[tables.tasks.cls[row], gpu])
        change[[IDLE, FUTURE], gpu], change[USED, gpu] = held, -held
        ssn.journal.add(tables.nodes["books"], int(tables.tasks.node[row]), change)


def reservations(tables: Tables, devices: DeviceLedger | None) -> AnyArray:
    """Return the rows of pods that reserve a shared device whose group the ledger knows."""
    tasks = tables.tasks
    if devices is None:
        return np.zeros(0, dtype=np.int64)
    gpu = tables.axis.column[GPU_RESOURCE]
    others = tasks.alive & (tasks.job < 0) & (tasks.node >= 0) & (HELD[tasks.status] > 0)
    rows = others.nonzero()[0]
    rows = rows[tables.classes.req[tasks.cls[rows], gpu] > 0]
    # The test of a pod reads its labels in Python, so arrays select the few candidates first.
    groups = devices.groups()
    found = [row for row in rows.tolist() if _reserves(groups, tasks.pods[row], int(tasks.node[row]))]
    return np.array(found, dtype=np.int64)


def _reserves(groups: Collection[tuple[int, str]], pod: Pod, node: int) -> bool:
    """Return True if a pod on a node reserves a device of one of the groups."""
    return pod.namespace == RESERVATION_NAMESPACE and any((node, group) in groups for group in gpu_groups(pod.labels))
