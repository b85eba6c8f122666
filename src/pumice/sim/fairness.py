"""What each queue has and deserves, from what the API says: pods on nodes, and jobs that have arrived and not ended.

A queue deserves its part of the cluster by weight, no more than it asks for (its demand) or may have (capability), at
least its guarantee; what one does not ask for goes to the others. Demand is all that jobs ask for from the moment they
arrive, whether or not the scheduler has admitted them: a queue that is kept waiting does not deserve less for it.
Queues are taken as one level, whatever their parents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pumice.algorithms.fair_level import fair_shares
from pumice.algorithms.shares import dominant_share
from pumice.columns.dtypes import F64
from pumice.model.node import Node
from pumice.model.queue import Queue
from pumice.model.resources import MIN_RESOURCE, PODS
from pumice.sim.usage import Amounts, amounts_of


class QueueShares(NamedTuple):
    """Shares of the cluster, 0 to 1, of the resource that a queue has, or deserves, most of; integrals are in seconds.

    ``contended``: the same two over the time in which more was asked for than the cluster has.
    """

    share: float
    deserved: float
    share_s: float
    deserved_s: float
    contended_share_s: float
    contended_deserved_s: float


class Fairness:
    """Shares of queues now, and their exact integrals. Tables have a row a queue and a column a resource."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues
        self._rows: dict[str, int] = {}
        self._columns: dict[str, int] = {}
        self._total: list[float] = []
        self._weight: list[float] = []
        self._asked, self._held = _Table(), _Table()
        self._least, self._limit = _Table(), _Table(math.inf)
        self._now: F64 = np.zeros((2, 0))  # share, deserved
        self._sums: F64 = np.zeros((4, 0))  # share and deserved over all time, then while contended
        self._held_changed = self._asked_changed = False
        self.contended = False  # more is asked for than the cluster has
        self.contended_s = 0.0

    # -- told ----------------------------------------------------------------------------------------------------------

    def ask(self, queue: str, amounts: Amounts, sign: float) -> None:
        """Somebody asks for more (+1), or has ended (-1)."""
        row = self._row(queue)
        if row is not None:
            self._add(self._asked, row, amounts, sign)
            self._asked_changed = True

    def hold(self, queue: str, amounts: Amounts, sign: float) -> None:
        """Somebody takes room on a node (+1), or gives it back (-1)."""
        row = self._row(queue)
        if row is not None:
            self._add(self._held, row, amounts, sign)
            self._held_changed = True

    def node(self, node: Node, sign: float) -> None:
        """A node comes (+1) or goes (-1)."""
        for name, amount in amounts_of(node.allocatable):
            if name != PODS:
                self._total[self._column(name)] += sign * amount
        self._held_changed = self._asked_changed = True

    # -- asked ---------------------------------------------------------------------------------------------------------

    def settle(self) -> list[tuple[str, float, float]]:
        """Take in what changed in this moment. Returns (queue, share, deserved) of the queues that have others now."""
        if not (self._held_changed or self._asked_changed):
            return []
        total, new = np.array(self._total), self._now.copy()
        if self._held_changed:
            new[0] = dominant_share(self._held.array(), total)
        if self._asked_changed:
            new[1] = np.minimum(dominant_share(self._deserved(total), total), 1.0)
        self._held_changed = self._asked_changed = False
        changed = (new != self._now).any(axis=0).nonzero()[0].tolist()
        self._now = new
        names = list(self._rows) if changed else []
        return [(names[row], float(new[0, row]), float(new[1, row])) for row in changed]

    def pass_time(self, seconds: float) -> None:
        """So much of the time that counts has passed with things as they were settled."""
        passed = self._now * seconds
        self._sums[:2] += passed
        if self.contended:
            self._sums[2:] += passed
            self.contended_s += seconds

    def queues(self) -> dict[str, QueueShares]:
        """By name: every queue that was ever asked of."""
        table = np.concatenate([self._now, self._sums]).T.tolist()
        return {name: QueueShares(*table[row]) for name, row in self._rows.items()}

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _deserved(self, total: F64) -> F64:
        """Shape (Q, R). Only where not all can have what they ask for is there anything to share out."""
        demand = np.minimum(self._asked.array(), self._limit.array())
        short = (total >= MIN_RESOURCE) & (demand.sum(axis=0) > total + MIN_RESOURCE)
        self.contended = bool(short.any())
        if self.contended:
            most = demand[:, short]
            least = np.minimum(self._least.array()[:, short], most)
            demand[:, short] = fair_shares(total[short], np.array(self._weight), least, most)
        return demand

    def _add(self, table: _Table, row: int, amounts: Amounts, sign: float) -> None:
        for name, amount in amounts:
            if name != PODS:
                column = self._column(name)
                table.rows[row][column] += sign * amount

    def _row(self, queue: str) -> int | None:
        """None for a queue that is not there: nothing is deserved in it."""
        row = self._rows.get(queue)
        found = self._queues.get(queue) if row is None else None
        if found is None:
            return row
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
            column = self._columns[resource] = len(self._columns)
            self._total.append(0.0)
            for table in self._tables():
                table.add_column()
        return column

    def _tables(self) -> tuple[_Table, ...]:
        return self._asked, self._held, self._least, self._limit


class _Table:
    """Rows of amounts that grow; changed one by one far more often than read."""

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

    def array(self) -> F64:
        """Shape (rows, columns)."""
        return np.array(self.rows).reshape(len(self.rows), self._width)
