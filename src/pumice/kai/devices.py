"""Open the ledger of shared GPUs for a session that has pods with parts of GPUs."""

from __future__ import annotations

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
from pumice.placing.derived import derived

_MILLI = 1000.0


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
    devices.close_excess(_count_once(ssn, devices))


def _column(ssn: Session, name: str, axis: str, *shape: int, values: AnyArray | None) -> Column[Any]:
    """Return a column of the session, created if it does not exist."""
    name, column = ssn.world.column(name, axis, *shape, values=values)
    ssn.memo.begin_column(ssn.world, name)
    return column


def _count_once(ssn: Session, devices: DeviceLedger) -> set[tuple[int, str]]:
    """Release the GPUs that reservation pods hold. Return their groups: row of the node, name."""
    tables, reserved = ssn.tables, set[tuple[int, str]]()
    gpu = tables.axis.column[GPU_RESOURCE]
    for row in reservations(tables, devices).tolist():
        # KAI reserves a shared GPU with a pod that asks for a whole GPU. The pods in the same group hold the same
        # device, so without this correction it would be counted twice.
        change = np.zeros_like(tables.nodes.books[0])
        held = min(float(tables.classes.req[tables.tasks.cls[row], gpu]), _MILLI)
        change[[IDLE, FUTURE], gpu], change[USED, gpu] = held, -held
        ssn.journal.add(tables.nodes["books"], int(tables.tasks.node[row]), change)
        reserved |= _groups_of(tables, row)
    return reserved


def reservations(tables: Tables, devices: DeviceLedger | None) -> AnyArray:
    """Return the rows of pods that reserve a shared device whose group the ledger knows: one for each group."""
    tasks = tables.tasks
    if devices is None:
        return np.zeros(0, dtype=np.int64)
    gpu = tables.axis.column[GPU_RESOURCE]
    others = tasks.alive & (tasks.job < 0) & (tasks.node >= 0) & (HELD[tasks.status] > 0)
    rows = others.nonzero()[0]
    rows = rows[tables.classes.req[tasks.cls[rows], gpu] > 0]
    # The test of a pod reads its labels in Python, so arrays select the few candidates first.
    groups, found = set(devices.groups()), []
    for row in rows.tolist():
        if tasks.pods[row].namespace == RESERVATION_NAMESPACE and groups & _groups_of(tables, row):
            groups -= _groups_of(tables, row)  # a second pod would reserve another device
            found.append(row)
    return np.array(found, dtype=np.int64)


def _groups_of(tables: Tables, row: int) -> set[tuple[int, str]]:
    node = int(tables.tasks.node[row])
    return {(node, group) for group in gpu_groups(tables.tasks.pods[row].labels)}
