"""nominatednode: a pod that was nominated to a node goes there, if it can. Source: KAI nominatednode."""

from __future__ import annotations

from pumice.api import F64, PENDING, NodeRows, Session, Task, plugin
from pumice.kai import points

SCORE = 1_000_000.0


@plugin("nominatednode")
class NominatedNode:
    """It has nothing to say where no waiting pod is nominated."""

    def __init__(self, ssn: Session) -> None:
        self._tasks = tasks = ssn.tables.tasks
        somebody = (tasks.alive & (tasks.status == PENDING) & (tasks.nominated >= 0)).any()
        self.unused_points = () if somebody else (points.node_order,)

    @points.node_order
    def score(self, task: Task, nodes: NodeRows) -> F64:
        """1,000,000 for that node. Shape (rows,)."""
        found: F64 = SCORE * (nodes.rows == self._tasks.nominated[task.row])
        return found
