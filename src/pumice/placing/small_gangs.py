"""Search for a placement of a small gang of different pods where the usual way, pod by pod, found none.

Neither Volcano nor KAI does this, so it is for Kubernetes' own PodGroups alone: which of them can start must not depend
on the order of their pods. KEP-4671 promises a placement for gangs of equal pods only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.algorithms.assignment import NOWHERE, Items, assign
from pumice.columns.dtypes import EPS
from pumice.framework.cycle.session import Session
from pumice.model.blockers import SearchCut
from pumice.placing.feasibility import Feasibility

#: Pods of a gang that is searched for.
PODS_MAX = 16
#: Steps for one gang, and for all gangs in one run of an action. A step is a node that is looked at for a pod.
STEPS_MAX, STEPS_IN_ALL_MAX = 20_000, 200_000


class Searched(NamedTuple):
    """``places``: rows of tasks with the rows of their nodes, empty if none were found. ``cut``: the search ended at
    its limit, so that there may be a placement."""

    places: list[tuple[int, int]]
    cut: SearchCut | None = None


class SmallGangs:
    """The searches of one run of an action."""

    def __init__(self, ssn: Session, feasible: Feasibility) -> None:
        self._ssn, self._feasible, self._left = ssn, feasible, STEPS_IN_ALL_MAX

    def concerns(self, job: int, rows: list[int]) -> bool:
        """Return True if these waiting tasks of a job are searched for: few and different ones of a native gang."""
        # Equal pods are placed one by one wherever there is a placement at all.
        native = self._ssn.tables.jobs.groups[job].native
        if native is None or not native.is_gang or not 2 <= len(rows) <= PODS_MAX:
            return False
        return len(set(self._ssn.tables.tasks.cls[rows].tolist())) > 1

    def search(self, rows: list[int], wanted: int) -> Searched:
        """Return nodes with idle resources for ``wanted`` of the tasks."""
        action = self._ssn.trace.action
        if self._left <= 0:
            return Searched([], SearchCut(action, STEPS_IN_ALL_MAX))
        tables, feasible = self._ssn.tables, self._feasible
        classes = tables.tasks.cls[rows]
        distinct, counts = np.unique(classes, return_counts=True)
        need = tables.classes.req[distinct]
        allowed = np.array([feasible.of(int(cls)).allowed & feasible.of(int(cls)).idle_fits for cls in distinct])
        nodes = np.nonzero(allowed.any(axis=0))[0]
        if not len(nodes) or wanted > len(rows):
            return Searched([])
        room = tables.nodes.idle[feasible.all_nodes.rows[nodes]]
        # The largest first, by the share of all room; then by class, so that the order is the same in each run.
        share = (need / np.maximum(room.sum(axis=0), EPS)).max(axis=1)
        kinds = sorted(range(len(distinct)), key=lambda kind: (-share[kind], distinct[kind]))
        items = Items(
            [place for place, kind in enumerate(kinds) for _ in range(counts[kind])],
            [need[kind].tolist() for kind in kinds],
            [allowed[kind][nodes].tolist() for kind in kinds],
        )
        limit = min(STEPS_MAX, self._left)
        found = assign(items, room.tolist(), wanted, limit, EPS)
        self._left -= found.steps
        if found.bins is None:
            return Searched([], SearchCut(action, found.steps) if found.steps >= limit else None)
        by_class = {cls: [row for row in rows if tables.tasks.cls[row] == cls] for cls in distinct.tolist()}
        ordered = [row for kind in kinds for row in by_class[int(distinct[kind])]]
        where = feasible.all_nodes.rows[nodes]
        return Searched([(row, int(where[at])) for row, at in zip(ordered, found.bins, strict=True) if at != NOWHERE])
