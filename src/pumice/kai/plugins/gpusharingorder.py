"""gpusharingorder: nodes with a device in use that has room for one more first. Source: KAI gpusharingorder."""

from __future__ import annotations

import numpy as np

from pumice.api import F64, ROWS, NodeRows, Session, TaskClass, plugin
from pumice.kai import points
from pumice.kai.amounts import gpu_column

SCORE = 1000.0


@plugin("gpusharingorder")
@points.node_order(reads=(ROWS,))
def gpusharingorder(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64 | None:
    """1000 where it could join. Like KAI's, it takes a task without GPUs for one that needs nothing of a device, and so
    draws it to devices in use. Shape (rows,)."""
    devices = ssn.ledger.devices
    if devices is None:
        return None
    share = devices.share_of(cls.row)
    if share is not None:
        need = devices.need(share)[nodes.rows]
    else:
        asks = cls.req[gpu_column(ssn.tables)] > 0
        need = devices.mib[nodes.rows] * float(asks)
    found: F64 = SCORE * np.asarray(devices.joins(need, nodes.rows, soon=True).any(axis=1), dtype=np.float64)
    return found
