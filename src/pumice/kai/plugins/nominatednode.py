"""nominatednode: prefer the node to which a pod is nominated. Source: KAI nominatednode plugin."""

from __future__ import annotations

from pumice.api import F64, PENDING, NodeRows, Session, Task, plugin
from pumice.kai import points

SCORE = 10_000_000.0


@plugin("nominatednode")
class NominatedNode:
    """Score the nominated node of pending pods."""

    def __init__(self, ssn: Session) -> None:
        self._tasks = tasks = ssn.tables.tasks
        any_nominated = (tasks.alive & (tasks.status == PENDING) & (tasks.nominated >= 0)).any()
        # Scoring per task is slower than scoring per class; it is only needed if some pending pod is nominated.
        self.unused_points = () if any_nominated else (points.node_order,)

    @points.node_order
    def score(self, task: Task, nodes: NodeRows) -> F64:
        """Return 10,000,000 for the nominated node, else 0. Shape (rows,)."""
        found: F64 = SCORE * (nodes.rows == self._tasks.nominated[task.row])
        return found
