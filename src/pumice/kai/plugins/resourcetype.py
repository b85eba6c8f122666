"""resourcetype: tasks without GPUs rather go to nodes without GPUs. Source: KAI resourcetype."""

from __future__ import annotations

from pumice.columns.dtypes import F64
from pumice.columns.rows import NodeRows
from pumice.columns.views import TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import ROWS
from pumice.kai import points
from pumice.kai.amounts import asks_for_gpus, gpu_column

SCORE = 10.0


@plugin("resourcetype")
@points.node_order(reads=(ROWS,))
def resourcetype(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64 | None:
    """10 for a node without GPUs. Shape (rows,)."""
    gpu = gpu_column(ssn.tables)
    if gpu < 0 or asks_for_gpus(cls, gpu):
        return None
    found: F64 = SCORE * (nodes.allocatable[:, gpu] == 0)
    return found
