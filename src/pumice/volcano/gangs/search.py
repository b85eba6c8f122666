"""Search for a placement of a small gang of different pods where the usual way, pod by pod, found none.

Volcano does not do this, so it is for Kubernetes' own PodGroups alone: which of them can start must not depend on the
order of their pods. KEP-4671 promises a placement for gangs of equal pods only.
"""

from __future__ import annotations

import numpy as np

from pumice.algorithms.assignment import NOWHERE, Items, assign
from pumice.columns.dtypes import EPS
from pumice.columns.rows import NodeRows
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.model.blockers import SearchCut
from pumice.placing.batch import placing_of
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.readiness import sub_missing

#: Pods of a gang that is searched for.
PODS_MAX = 16
#: Steps for one gang, and for all gangs in one run of the action. A step is a node that is looked at for a pod.
STEPS_MAX, STEPS_IN_ALL_MAX = 20_000, 200_000


class SmallGangs:
    """The searches of one run of an action."""

    def __init__(self, ssn: Session) -> None:
        self._ssn, self._left = ssn, STEPS_IN_ALL_MAX

    def concerns(self, job: int, rows: list[int]) -> bool:
        """Return True if these waiting tasks of a job are searched for: few and different ones of a native gang."""
        # Equal pods are placed one by one wherever there is a placement at all.
        native = self._ssn.tables.jobs.groups[job].native
        if native is None or not native.is_gang or not 2 <= len(rows) <= PODS_MAX:
            return False
        return len(set(self._ssn.tables.tasks.cls[rows].tolist())) > 1

    def place(self, stmt: Statement, sub: int, rows: list[int], attempt: OpenAttempt) -> bool:
        """Place as many of the tasks as the sub-job misses, on idle resources. Return False if nothing was placed."""
        ssn, missing = self._ssn, sub_missing(self._ssn, sub)
        # What was found rests on all nodes and all tasks, so an equal gang may not share it.
        attempt.unlike_others = True
        if self._left <= 0:
            attempt.findings.append(SearchCut(ssn.trace.action, STEPS_IN_ALL_MAX))
            return False
        found = self._search(rows, missing, attempt)
        if not found:
            return False
        mark = stmt.mark()
        if not all(self._put(stmt, row, node, attempt) for row, node in found) or sub_missing(ssn, sub):
            stmt.rollback(mark)
            return False
        attempt.forget(sub)
        return True

    def _search(self, rows: list[int], wanted: int, attempt: OpenAttempt) -> list[tuple[int, int]]:
        """Return tasks with their nodes, empty if none were found."""
        tables, feasible = self._ssn.tables, placing_of(self._ssn).feasible
        classes = tables.tasks.cls[rows]
        distinct, counts = np.unique(classes, return_counts=True)
        need = tables.classes.req[distinct]
        allowed = np.array([feasible.of(int(cls)).allowed & feasible.of(int(cls)).idle_fits for cls in distinct])
        nodes = np.nonzero(allowed.any(axis=0))[0]
        if not len(nodes) or wanted > len(rows):
            return []
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
            if found.steps >= limit:
                attempt.findings.append(SearchCut(self._ssn.trace.action, found.steps))
            return []
        by_class = {cls: [row for row in rows if tables.tasks.cls[row] == cls] for cls in distinct.tolist()}
        ordered = [row for kind in kinds for row in by_class[int(distinct[kind])]]
        where = feasible.all_nodes.rows[nodes]
        return [(row, int(where[at])) for row, at in zip(ordered, found.bins, strict=True) if at != NOWHERE]

    def _put(self, stmt: Statement, row: int, node: int, attempt: OpenAttempt) -> bool:
        """Place a task on a node, if filters and its queue agree after those before it."""
        ssn = self._ssn
        queue = int(ssn.tables.jobs.queue[ssn.tables.subs.job[ssn.tables.tasks.sub[row]]])
        if not attempt.allowed(queue, [row], stmt).tasks:
            return False
        choice = placing_of(ssn).choose(row, NodeRows(ssn.tables, np.array([node])), explain=False)
        return choice.node >= 0 and choice.idle and stmt.allocate([row], [choice.node]) is None
