"""What waiting jobs demand: how many equal pods, and on which nodes they may be."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.framework.cycle.session import Session
from pumice.model.status import TaskStatus
from pumice.ours.reservations.domains import domains_of, needs_all, parts_of
from pumice.ours.reservations.room_over_time import Demand, Parts
from pumice.placing.derived import derived
from pumice.placing.filters.nodes import stable_codes


class Demands:
    """What the waiting jobs of a session demand."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    def choices(self, job: int) -> list[list[Demand]]:
        """Return what a job demands in each domain in which it may be."""
        parts = parts_of(self.ssn, job)
        domains = domains_of(self.ssn, job, parts)
        found = [self._demands(job, number, within, parts) for number, within in enumerate(domains)]
        # Sub-groups that may use different nodes are unlike: the first could take the places of the second.
        return found if parts is None else [demands for demands in found if len(demands) == 1]

    def _demands(self, job: int, number: int, within: Bool | None, parts: Parts | None) -> list[Demand]:
        """Return what a job needs at least, its first tasks up to its minimum, by what they ask for and the nodes that
        they may use, in one of its domains."""
        tables = self.ssn.tables
        # Only the minimum: pods beyond it start one by one, and nothing is kept for them.
        rows = tables.jobs.tasks[job]
        rows = rows[tables.tasks.status[rows] == TaskStatus.PENDING]
        if not needs_all(self.ssn, job):
            rows = rows[: max(int(tables.jobs.min_available[job]), 1)]
        # By class: a gang of thousands of equal pods costs as much as one pod.
        classes, counts = np.unique(tables.tasks.cls[rows], return_counts=True)
        found: dict[Hashable, Demand] = {}
        for cls, count in zip(classes.tolist(), counts.tolist(), strict=True):
            each = self._demand(cls, count, number, within, parts)
            # Pods of sub-groups are in classes of their own where they differ in labels alone.
            like = each.each.tobytes(), each.nodes.tobytes()
            if like in found:
                pods, of_classes = found[like].pods + count, (*found[like].classes, cls)
                each = found[like]._replace(pods=pods, classes=of_classes)
            found[like] = each
        # Large pods first, because small ones find room between them.
        return sorted(found.values(), key=lambda demand: (-demand.each).tolist())

    def _demand(self, cls: int, count: int, number: int, within: Bool | None, parts: Parts | None) -> Demand:
        nodes, each = self.nodes_of(cls), self.ssn.tables.classes.req[cls]
        kind: tuple[Hashable, ...] = (cls,)
        # By the nodes, since domains of two jobs have the same number, and may be of different topologies.
        if within is not None:
            nodes = nodes & within
            kind = (*kind, number, within.tobytes())
        if parts is not None:
            kind = (*kind, "parts of", parts.size, parts.domain.tobytes())
        return Demand(count, each, nodes, kind, within, parts, (cls,))

    def nodes_of(self, cls: int) -> Bool:
        """Return the nodes that may take pods of a class, by what does not change as pods come and go. Shape (N,)."""
        tables = self.ssn.tables
        codes = stable_codes(derived(self.ssn), tables.classes.specs[cls], affinity=True, taints=True).codes
        found: Bool = (codes == 0) & (tables.nodes.quarantined_by == 0)
        return found
