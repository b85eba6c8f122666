"""What each queue holds and deserves, by the state of the API server: pods on nodes, and jobs between arrival and end.

A queue deserves its share of the cluster by weight: no more than it requests (its demand) or its capability, and at
least its guarantee. It is a part of its whole demand, all resources together, so that dominant shares are equal by
weight where something is short. What a queue does not request goes to others. Demand is all that jobs request from
their arrival, whether or not the scheduler has admitted them: a queue that must wait does not deserve less because of
it. Queues count as one level, whatever their parents are.

Changes are only recorded, and many moments are computed together, which costs little more than one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pumice.algorithms.fair_level import fair_parts
from pumice.algorithms.shares import dominant_share
from pumice.columns.dtypes import F64, Bool
from pumice.model.node import Node
from pumice.model.queue import Queue
from pumice.model.resources import MIN_RESOURCE, PODS
from pumice.sim.measures.node_usage import Amounts, amounts_of

#: Moments that are computed together.
TOGETHER = 256


class QueueShares(NamedTuple):
    """Shares of the cluster, 0 to 1, of the resource of which a queue holds, or deserves, most. Integrals are in
    seconds.

    ``contended``: both over the time in which more was requested than the cluster has.
    """

    share: float
    deserved: float
    share_s: float
    deserved_s: float
    contended_share_s: float
    contended_deserved_s: float


class Change(NamedTuple):
    """From this moment, a queue holds or deserves another share."""

    at: float
    queue: str
    share: float
    deserved: float


class _Moment(NamedTuple):
    """What queues hold and request from this moment. Shapes (Q, R), None: as before."""

    at: float
    held: list[list[float]] | None
    asked: list[list[float]] | None


class Fairness:
    """Shares of queues and their exact integrals. Tables have a row per queue and a column per resource.

    M: moments that are computed together.
    """

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues
        self._rows: dict[str, int] = {}
        self._columns: dict[str, int] = {}
        self._total: list[float] = []
        self._weight: list[float] = []
        self._asked, self._held = _Table(), _Table()
        self._least, self._limit = _Table(), _Table(math.inf)
        self._moments: list[_Moment] = []  # that are to be worked out
        self._spans: list[tuple[int, float]] = []  # seconds that passed, each after so many of these moments
        self._changes: list[Change] = []
        self._now: F64 = np.zeros((2, 0))  # share, deserved
        self._sums: F64 = np.zeros((4, 0))  # share and deserved over all time, then while contended
        self._held_changed = self._asked_changed = False
        self._contended = False
        self._contended_s = 0.0

    # -- events --------------------------------------------------------------------------------------------------------

    def ask(self, queue: str, amounts: Amounts, sign: float) -> None:
        """Add a request (+1), or subtract it (-1)."""
        row = self._row(queue)
        if row is not None:
            self._add(self._asked, row, amounts, sign)
            self._asked_changed = True

    def hold(self, queue: str, amounts: Amounts, sign: float) -> None:
        """Add what pods hold (+1), or subtract it (-1)."""
        row = self._row(queue)
        if row is not None:
            self._add(self._held, row, amounts, sign)
            self._held_changed = True

    def node(self, node: Node, sign: float) -> None:
        """Add a node (+1), or remove it (-1)."""
        self.work_out()
        for name, amount in amounts_of(node.allocatable):
            if name != PODS:
                self._total[self._column(name)] += sign * amount
        self._held_changed = self._asked_changed = True

    def settle(self, at: float) -> None:
        """Record the state at this moment, which holds until the next one."""
        if self._held_changed or self._asked_changed:
            held = self._held.copy() if self._held_changed else None
            self._moments.append(_Moment(at, held, self._asked.copy() if self._asked_changed else None))
            self._held_changed = self._asked_changed = False
            self._work_out_many()

    def pass_time(self, seconds: float) -> None:
        """Count time in which the recorded state held."""
        self._spans.append((len(self._moments), seconds))
        self._work_out_many()

    # -- asked ---------------------------------------------------------------------------------------------------------

    @property
    def contended(self) -> bool:
        """Return True if more is requested than the cluster has."""
        self.work_out()
        return self._contended

    @property
    def contended_s(self) -> float:
        """Seconds in which more was requested than the cluster had."""
        self.work_out()
        return self._contended_s

    def queues(self) -> dict[str, QueueShares]:
        """Return all queues with requests so far, by name."""
        self.work_out()
        table = np.concatenate([self._now, self._sums]).T.tolist()
        return {name: QueueShares(*table[row]) for name, row in self._rows.items()}

    def changes(self) -> list[Change]:
        """Return changes in the moments that were computed since the last call, oldest first."""
        changes, self._changes = self._changes, []
        return changes

    def work_out(self) -> None:
        """Compute the shares at each recorded moment, changes, and integrals."""
        moments, spans = self._moments, self._spans
        if not (moments or spans):
            return
        self._moments, self._spans = [], []
        total = np.array(self._total)
        shares = dominant_share(self._tables_of([moment.held for moment in moments]), total)
        deserved, contended = self._deserved(self._tables_of([moment.asked for moment in moments]), total)
        at_shares = np.cumsum([0, *(moment.held is not None for moment in moments)])
        at_deserved = np.cumsum([0, *(moment.asked is not None for moment in moments)])
        shares = np.concatenate((self._now[:1], shares))[at_shares]
        deserved = np.concatenate((self._now[1:], np.minimum(dominant_share(deserved, total), 1.0)))[at_deserved]
        contended = np.concatenate(([self._contended], contended))[at_deserved]
        states = np.stack((shares, deserved), axis=1)  # (M + 1, 2, Q): the first is how it was before
        self._note_changes(moments, states)
        self._sum_up(states, contended, spans)
        self._now, self._contended = states[-1], bool(contended[-1])

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _work_out_many(self) -> None:
        if len(self._moments) + len(self._spans) >= TOGETHER:
            self.work_out()

    def _note_changes(self, moments: list[_Moment], states: F64) -> None:
        names = list(self._rows)
        changed = (states[1:] != states[:-1]).any(axis=1).nonzero()
        pairs = states[1:].transpose(0, 2, 1)[changed].tolist()
        for at, row, pair in zip(*(each.tolist() for each in changed), pairs, strict=True):
            self._changes.append(Change(moments[at].at, names[row], *pair))

    def _sum_up(self, states: F64, contended: Bool, spans: list[tuple[int, float]]) -> None:
        """Add to the integrals, one span after the other."""
        after = [moment for moment, _ in spans]
        seconds = np.array([seconds for _, seconds in spans])
        passed, counts = states[after] * seconds[:, None, None], contended[after]
        self._sums[:2] = np.concatenate((self._sums[None, :2], passed)).cumsum(axis=0)[-1]
        self._sums[2:] = np.concatenate((self._sums[None, 2:], passed[counts])).cumsum(axis=0)[-1]
        self._contended_s = float(np.concatenate(([self._contended_s], seconds[counts])).cumsum()[-1])

    def _deserved(self, asked: F64, total: F64) -> tuple[F64, Bool]:
        """Return what queues deserve (M, Q, R), and whether more is requested than exists (M,)."""
        demand = np.minimum(asked, self._limit.array())
        short = ((total >= MIN_RESOURCE) & (demand.sum(axis=1) > total + MIN_RESOURCE)).any(axis=1)
        if short.any():
            # The whole vector: of a resource that is in plenty, a queue deserves no more than its jobs can use with
            # what it gets of the others.
            least = np.broadcast_to(self._least.array(), demand[short].shape)
            totals = np.broadcast_to(total, (len(demand[short]), len(total)))
            demand[short] *= fair_parts(totals, np.array(self._weight), least, demand[short])[..., None]
        return demand, short

    def _tables_of(self, given: list[list[list[float]] | None]) -> F64:
        """Return the tables of the moments that have one. Shape (tables, Q, R)."""
        found = [table for table in given if table is not None]
        return np.array(found).reshape(len(found), len(self._rows), len(self._columns))

    def _add(self, table: _Table, row: int, amounts: Amounts, sign: float) -> None:
        for name, amount in amounts:
            if name != PODS:
                column = self._column(name)
                table.rows[row][column] += sign * amount

    def _row(self, queue: str) -> int | None:
        """Return the row of a queue, None if it does not exist: nothing is deserved in it."""
        row = self._rows.get(queue)
        found = self._queues.get(queue) if row is None else None
        if found is None:
            return row
        self.work_out()
        row = self._rows[queue] = len(self._rows)
        self._weight.append(max(float(found.weight), MIN_RESOURCE))
        for table in self._tables():
            table.add_row()
        for table, given in ((self._least, found.guarantee), (self._limit, found.capability)):
            for name, amount in amounts_of(given) if given is not None else ():
                table.rows[row][self._column(name)] = amount
        self._now = np.pad(self._now, ((0, 0), (0, 1)))
        self._sums = np.pad(self._sums, ((0, 0), (0, 1)))
        return row

    def _column(self, resource: str) -> int:
        column = self._columns.get(resource)
        if column is None:
            self.work_out()
            column = self._columns[resource] = len(self._columns)
            self._total.append(0.0)
            for table in self._tables():
                table.add_column()
        return column

    def _tables(self) -> tuple[_Table, ...]:
        return self._asked, self._held, self._least, self._limit


class _Table:
    """Rows of amounts that grow, and that are changed one by one far more often than read."""

    def __init__(self, empty: float = 0.0) -> None:
        self.rows: list[list[float]] = []
        self._width = 0
        self._empty = empty

    def add_row(self) -> None:
        self.rows.append([self._empty] * self._width)

    def add_column(self) -> None:
        self._width += 1
        for row in self.rows:
            row.append(self._empty)

    def copy(self) -> list[list[float]]:
        return [row.copy() for row in self.rows]

    def array(self) -> F64:
        """Shape (rows, columns)."""
        return np.array(self.rows).reshape(len(self.rows), self._width)
