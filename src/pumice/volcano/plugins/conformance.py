"""conformance: what the cluster itself needs is never a victim. Source: Volcano conformance (spec 04 §3)."""

from __future__ import annotations

from pumice.columns.views import Task
from pumice.framework import points
from pumice.framework.combine import Vote
from pumice.framework.eviction import EvictionContext
from pumice.framework.plugin import plugin
from pumice.framework.session import Session

CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


@plugin("conformance", by_shape=True)
class Conformance:
    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    @points.preemptable
    @points.reclaimable
    def evictable(self, evictor: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        return ordinary(candidates), Vote.PERMIT

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: list[Task]) -> tuple[list[Task], Vote]:
        return ordinary(candidates), Vote.PERMIT


def ordinary(candidates: list[Task]) -> list[Task]:
    """Tasks that are neither critical nor in the system namespace."""
    return [
        t for t in candidates if t.pod.spec.priority_class_name not in CRITICAL and t.pod.namespace != SYSTEM_NAMESPACE
    ]
