"""conformance: never evict pods that the cluster itself needs. Source: Volcano conformance plugin."""

from __future__ import annotations

import numpy as np

from pumice.api import (
    JOBS,
    PODS,
    ROWS,
    Bool,
    Candidates,
    EvictionContext,
    Job,
    JobRows,
    Session,
    Task,
    TaskRows,
    plugin,
    points,
)

# Names that Kubernetes itself creates. Their priorities could be compared as well, but Volcano goes by name.
CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


@plugin("conformance")
class Conformance:
    """Protect critical and system pods."""

    spares = "that the cluster itself needs"

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    @points.preemptable(reads=(ROWS,))
    @points.reclaimable(reads=(ROWS,))
    def evictable(self, evictor: Task, candidates: Candidates) -> Bool:
        """Return the candidates that are neither critical nor system pods. Shape (rows,)."""
        return self._ordinary(candidates)

    @points.unified_evictable
    def unified_evictable(self, context: EvictionContext, candidates: TaskRows) -> Bool:
        """Return the candidates that are neither critical nor system pods. Shape (rows,)."""
        return self._ordinary(candidates)

    @points.consolidate_victims(reads=(ROWS, PODS, JOBS))
    def movable(self, job: Job, jobs: JobRows) -> Bool:
        """Return the jobs without critical or system pods. Shape (rows,)."""
        # A job moves as a whole, so one such pod keeps all of it in place.
        tables, rows = self.ssn.tables, jobs.rows.tolist()
        found = [bool(ordinary(TaskRows(tables, tables.jobs.tasks[row])).all()) for row in rows]
        return np.array(found, dtype=bool)

    def _ordinary(self, candidates: TaskRows) -> Bool:
        """Return ``ordinary``. Shape (rows,)."""
        # The shared answer has tasks on nodes only, and a plugin from outside may ask for others.
        if (candidates.tables.tasks.node[candidates.rows] < 0).any():
            return ordinary(candidates)
        # Pods are read once: a search for victims asks about thousands of them again and again.
        found: Bool = self.ssn.shared(ordinary, self._of_all)[candidates.rows]
        return found

    def _of_all(self) -> Bool:
        """Return the tasks on nodes that are neither critical nor system pods. Shape (T,)."""
        tables = self.ssn.tables
        there = TaskRows(tables, (tables.tasks.alive & (tables.tasks.node >= 0)).nonzero()[0])
        return there.scatter(ordinary(there))


def ordinary(candidates: TaskRows) -> Bool:
    """Return True for tasks that are neither critical nor in the system namespace. Shape (rows,)."""
    pods = candidates.pods
    found = [p.spec.priority_class_name not in CRITICAL and p.namespace != SYSTEM_NAMESPACE for p in pods]
    return np.array(found, dtype=bool)
