"""What the search of room for a gang tries: its tasks by sub-job, prefixes of victim sets, and plans. Source: Volcano
gangpreempt and gangreclaim actions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.placement import Placement
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Plan
from pumice.framework.cycle.trace import Kind, Operation
from pumice.model.blockers import Blocker
from pumice.volcano.gangs.pending_tasks import PendingTasks


class GangPlan(NamedTuple):
    """Operations, and the hypernode of each sub-job."""

    plan: Plan
    hypernodes: dict[int, int]


class WaitingTasks(NamedTuple):
    """Tasks of a sub-job to place, in order.

    ``classes``: of each task. ``wanted``: each class with the number of tasks, and the request of one as (dimension,
    amount) pairs.
    """

    sub: int
    rows: list[int]
    classes: list[int]
    wanted: list[tuple[int, int, list[tuple[int, float]]]]

    def first_that_fit(self, fitting: Mapping[int, int]) -> int:
        """Return how many tasks come before the first one of a class of which no more fit. ``fitting``: by class."""
        placed = Counter[int]()
        for position, cls in enumerate(self.classes):
            if placed[cls] >= fitting[cls]:
                return position
            placed[cls] += 1
        return len(self.classes)


class VictimPrefixes:
    """The victims of each try in one domain: the first ``ends`` of those ``chosen``, in order. ``finding``: why none
    would do."""

    def __init__(self, chosen: Sequence[int] = (), ends: Sequence[int] = (), finding: Blocker | None = None) -> None:
        self._chosen, self._ends, self.finding = chosen, ends, finding

    def __len__(self) -> int:
        return len(self._ends)

    # One list at a time: all of them together are as long as the square of the number of victims.
    def __getitem__(self, at: int) -> list[int]:
        return list(self._chosen[: self._ends[at]])


def waiting_tasks_of(ssn: Session, job: int) -> Iterator[WaitingTasks]:
    """Yield the tasks to place of each sub-job, in order, without gated tasks."""
    tables, left = ssn.tables, PendingTasks(ssn, job)
    while left:
        sub = left.pop()
        sub_queue = left.sub_queues[sub]
        rows = [row for row in sub_queue.rows if not sub_queue.is_gated(row)]
        if rows:
            each = tables.tasks.cls[rows]
            classes, counts = np.unique(each, return_counts=True)
            asks = [list(_asked(tables.classes.req[cls])) for cls in classes.tolist()]
            wanted = list(zip(classes.tolist(), counts.tolist(), asks, strict=True))
            yield WaitingTasks(sub, rows, each.tolist(), wanted)


def _asked(req: F64) -> Iterator[tuple[int, float]]:
    """Yield the dimensions that a request contains, and the amounts."""
    return ((dimension, amount) for dimension, amount in enumerate(req.tolist()) if amount > 0)


def joined(ssn: Session, plan: Plan) -> Plan:
    """Return a plan in which consecutive placements of one sub-job are one operation."""
    sub, found = ssn.tables.tasks.sub, list[Operation]()
    for (kind, _, evicted), each in groupby(plan, key=lambda op: (op.kind, int(sub[op.placement.rows[0]]), op.evicted)):
        # Evictions keep their own operations, because each carries a reason and is reported by itself.
        if kind is not Kind.PIPELINE:
            found += each
            continue
        placed = [op.placement for op in each]
        rows, nodes = ([row for one in placed for row in one.rows], [node for one in placed for node in one.nodes])
        found.append(Operation(kind, Placement(rows, nodes), evicted=evicted))
    return tuple(found)


def last_of_each(undone: Iterable[Operation], known: set[int]) -> Iterator[Operation]:
    """Yield, of operations that were taken back, the last placement of each task that is not ``known``, and add these
    tasks to it."""
    for op in reversed(list(undone)):
        placed = zip(op.placement.rows, op.placement.nodes, strict=True)
        new = [(row, node) for row, node in placed if row not in known]
        if op.kind is Kind.PIPELINE and new:
            known.update(row for row, _ in new)
            yield op._replace(placement=Placement([row for row, _ in new], [node for _, node in new]))
