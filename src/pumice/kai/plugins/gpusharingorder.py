"""gpusharingorder: prefer nodes where the pod can join a shared GPU. Source: KAI gpusharingorder plugin."""

from __future__ import annotations

import numpy as np

from pumice.api import F64, ROWS, NodeRows, Session, TaskClass, plugin
from pumice.kai import points
from pumice.kai.amounts import gpu_column

#: KAI's scores are layers: this one exceeds all that nodeavailability (1,000), numa (100), resourcetype (10) and
#: nodeplacement (9) add together, so sharing a GPU comes before an immediate start.
SCORE = 10_000.0


@plugin("gpusharingorder")
@points.node_order(reads=(ROWS,))
def gpusharingorder(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64 | None:
    """Return 10,000 for nodes where the task can join a shared GPU, else 0. Shape (rows,)."""
    devices = ssn.ledger.devices
    if devices is None:
        return None
    share = devices.share_of(cls.row)
    if share is not None:
        need = devices.need(share)[nodes.rows]
    else:
        # Quirk of KAI, kept on purpose: it compares GPU memory only. A task without GPUs needs 0 of it, can "join"
        # every shared GPU, and is drawn to nodes with shared GPUs.
        asks = cls.req[gpu_column(ssn.tables)] > 0
        need = devices.mib[nodes.rows] * float(asks)
    found: F64 = SCORE * np.asarray(devices.joins(need, nodes.rows, soon=True).any(axis=1), dtype=np.float64)
    return found
