"""GPUs that pods share, in a session: opened before its plugins are, where there are such pods."""

from __future__ import annotations

import numpy as np

from pumice.columns.devices import DeviceLedger, sharing_tasks, slot_count
from pumice.framework.session import Session


def open_devices(ssn: Session) -> None:
    """Give the ledger of tasks one of devices, with everything on it that is there."""
    tables = ssn.tables
    rows = sharing_tasks(tables).tolist()
    if not rows:
        return
    shares, of, left = (
        ssn.memo.begin_column(*ssn.world.column(name, axis, *shape, values=values))
        for name, axis, shape, values in (
            ("devices.shares", "node", (slot_count(tables, rows), 3), None),
            ("devices.of", "task", (), np.zeros(tables.tasks.capacity, dtype=np.int64)),
            ("devices.left", "task", (), np.zeros(tables.tasks.capacity, dtype=np.int64)),
        )
    )
    devices = ssn.ledger.devices = DeviceLedger(tables, ssn.journal, shares, of, left)
    devices.enter(rows)
