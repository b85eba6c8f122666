"""resourcetype: prefer nodes without GPUs for tasks without GPUs. Source: KAI resourcetype plugin."""

from __future__ import annotations

from pumice.api import F64, ROWS, NodeRows, Session, TaskClass, plugin
from pumice.kai import points
from pumice.kai.amounts import asks_for_gpus, gpu_column

SCORE = 10.0


@plugin("resourcetype")
@points.node_order(reads=(ROWS,))
def resourcetype(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64 | None:
    """Return 10 for nodes without GPUs, else 0. Shape (rows,)."""
    gpu = gpu_column(ssn.tables)
    if gpu < 0 or asks_for_gpus(cls, gpu):
        return None
    found: F64 = SCORE * (nodes.allocatable[:, gpu] == 0)
    return found
