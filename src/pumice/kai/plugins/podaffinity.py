"""podaffinity: place pods near the pods that they prefer, and away from the pods that they avoid.

Source: KAI podaffinity plugin, which scores like InterPodAffinity of kube-scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import F64, PODS, ROWS, NodeRows, Session, Task, plugin
from pumice.kai import points
from pumice.placing.filters.of_session import inter_pod_score
from pumice.placing.filters.pods import classes_where, has_pod_terms

if TYPE_CHECKING:
    from pumice.placing.filters.preferred_terms import InterPodScore

#: One point of kube-scheduler's 0 to 100 is worth what the plugin topology adds at most: ten steps of 100,000.
SCORE = 1_000_000.0


@plugin("podaffinity")
class PodAffinity:
    """Score nodes by preferred pod affinity."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        has_terms = bool(classes_where(ssn, "pod terms", has_pod_terms))
        self._preferred: InterPodScore | None = inter_pod_score(ssn) if has_terms else None
        # Clusters without pod affinity terms skip the point. The plugin predicates keeps the pod counts up to date.
        self.unused_points = () if self._preferred is not None else (points.batch_node_order,)

    @points.batch_node_order(reads=(ROWS, PODS))
    def score(self, task: Task, nodes: NodeRows) -> F64 | None:
        """Return the InterPodAffinity score, 0 to 100, times 1,000,000. Shape (rows,)."""
        if self._preferred is None or not self._preferred.concerns(int(self.ssn.tables.tasks.cls[task.row])):
            return None
        return SCORE * self._preferred.score(task, nodes)
