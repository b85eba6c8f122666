"""podaffinity: pods go near those that they wish to be near, and away from others.

Source: KAI podaffinity, which scores as kube-scheduler's InterPodAffinity does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import F64, PODS, ROWS, NodeRows, Session, Task, plugin
from pumice.kai import points
from pumice.placing.filters.of_session import inter_pod_score
from pumice.placing.filters.pods import classes_where, has_pod_terms

if TYPE_CHECKING:
    from pumice.placing.filters.preferred_terms import InterPodScore

SCORE = 100_000.0


@plugin("podaffinity")
class PodAffinity:
    """Where pods are is what ``predicates`` keeps in step. It has nothing to say where no pod speaks of others."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        has_terms = bool(classes_where(ssn, "pod terms", has_pod_terms))
        self._wishes: InterPodScore | None = inter_pod_score(ssn) if has_terms else None
        self.unused_points = () if self._wishes is not None else (points.batch_node_order,)

    @points.batch_node_order(reads=(ROWS, PODS))
    def score(self, task: Task, nodes: NodeRows) -> F64 | None:
        """100,000 for each of up to 100 points. Shape (rows,)."""
        if self._wishes is None or not self._wishes.concerns(int(self.ssn.tables.tasks.cls[task.row])):
            return None
        return SCORE * self._wishes.score(task, nodes)
