"""Reject scenarios by counting, without simulating them.

For each class of tasks in a part, the number of tasks that fit on all nodes, with the evicted tasks gone, is an upper
bound. If it is below the number of tasks of that class, the part cannot be placed. Placing other jobs first only takes
resources, so the bound holds for every order.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, inf

import numpy as np

from pumice.columns.dtypes import EPS, F64, AnyArray, Bool
from pumice.columns.nodes import FUTURE
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Chunk, Part
from pumice.placing.feasibility import Feasibility


class Bound:
    """Upper bounds for one part, with the recorded victims gone."""

    def __init__(self, ssn: Session, feasible: Feasibility, part: Part, recorded: Iterable[int]) -> None:
        self._ssn = ssn
        tables = ssn.tables
        self._freed: dict[int, F64] = {}
        listed: list[int] = tables.tasks.cls[part.rows].tolist()
        # By class and not by task, because equal tasks share one count per node.
        self._needs = {cls: listed.count(cls) for cls in dict.fromkeys(listed)}
        self._asked = {cls: (tables.classes.req[cls] > 0).nonzero()[0].tolist() for cls in self._needs}
        self._free(recorded)
        # Cached over all nodes by Feasibility, so a bound only computes what victims change.
        self._capacity = {cls: feasible.capacity(cls) for cls in self._needs}
        self._closed = {cls: _closed(feasible, cls, held) for cls, held in self._capacity.items()}
        self._fits = {cls: self._fit_counts(cls) for cls in self._needs}
        self._total = {cls: float(fits.sum()) for cls, fits in self._fits.items()}

    def _free(self, rows: Iterable[int]) -> None:
        """Add what the victims hold to the freed amounts of their nodes."""
        tables = self._ssn.tables
        # ``frees`` and not ``req``: the last task on a shared GPU frees all of it, and an upper bound must not be too
        # low.
        node, cls, req = tables.tasks.node, tables.tasks.cls, tables.classes.frees
        for row in rows:
            there = int(node[row])
            held = self._freed.get(there)
            self._freed[there] = req[cls[row]] if held is None else held + req[cls[row]]

    def _fit_counts(self, cls: int) -> F64:
        """Return how many tasks of a class fit on each node once the recorded victims are gone. Shape (N,)."""
        found: F64 = np.maximum(self._capacity[cls], 0.0)
        # Only nodes that victims leave differ from the cached capacity.
        for node in self._freed:
            found[node] = self._fits_on(node, cls)
        return found

    def _fits_on(self, node: int, cls: int, more: F64 | float = 0.0) -> float:
        """Return how many tasks of a class fit on one node once ``more`` (R,) is freed there as well."""
        tables = self._ssn.tables
        if self._closed[cls][node]:
            return 0.0
        # Plain numbers: for one node, the calls of NumPy would cost more than the arithmetic.
        need, fits = tables.classes.req[cls].tolist(), inf
        room = (tables.nodes.books[node, FUTURE] + self._freed.get(node, 0.0) + more).tolist()
        for dimension in self._asked[cls]:
            fits = min(fits, floor((room[dimension] + EPS) / need[dimension]))
        return max(0.0, fits)

    @property
    def is_met(self) -> bool:
        """True unless the part cannot fit once the victims so far are gone."""
        return all(self._total[cls] >= count for cls, count in self._needs.items())

    def allows(self, chunk: Chunk) -> bool:
        """Add a chunk to the victims, and return True unless the part still cannot fit."""
        self._free(chunk.rows)
        # The totals are kept up to date instead of recomputed: a chunk changes the counts of its own nodes only.
        for node in chunk.nodes:
            for cls, fits in self._fits.items():
                fresh = self._fits_on(node, cls)
                self._total[cls] += fresh - fits[node]
                fits[node] = fresh
        return self.is_met

    def reaches(self, chunk: Chunk) -> bool:
        """Return True unless the part cannot fit once a chunk on one node is gone. The bound does not change."""
        tables, node = self._ssn.tables, chunk.nodes[0]
        more = tables.classes.frees[tables.tasks.cls[list(chunk.rows)]].sum(axis=0)
        return all(
            self._total[cls] - self._fits[cls][node] + self._fits_on(node, cls, more) >= count
            for cls, count in self._needs.items()
        )

    def possible(self, node: AnyArray, amounts: F64) -> Bool:
        """Return True for chunks at which the part might fit, for chunks on one node each, in eviction order.

        ``node`` (K,) and ``amounts`` (K, R) are where the chunks are and what they hold. A chunk is tested with all
        earlier chunks of its own node gone, and those of other nodes in place. Shape (K,).
        """
        # Grouping the chunks by node turns "all earlier chunks of this node" into a running sum within the group. One
        # pass of arrays replaces a simulation, or a call of ``allows``, per chunk.
        order = np.argsort(node, kind="stable")
        there, tables = node[order], self._ssn.tables
        starts = np.concatenate(([True], there[1:] != there[:-1]))
        first = np.maximum.accumulate(np.where(starts, np.arange(len(there)), 0))
        found = np.ones(len(there), dtype=bool)
        for cls, count in self._needs.items():
            need, fits = tables.classes.req[cls], np.full(len(there), np.inf)
            for dimension in self._asked[cls]:
                summed = amounts[order, dimension].cumsum()
                # The running sum runs over all nodes; subtracting its value at the start of the group restarts it
                # there.
                left = summed - np.where(first > 0, summed[first - 1], 0.0)
                room = tables.nodes.books[there, FUTURE, dimension] + left + self._recorded(dimension)[there]
                np.minimum(fits, np.floor((room + EPS) / need[dimension]), out=fits)
            fits = np.where(self._closed[cls][there], 0.0, np.maximum(fits, 0.0))
            found &= self._total[cls] - self._fits[cls][there] + fits >= count
        back = np.empty_like(found)
        back[order] = found
        return back

    def _recorded(self, dimension: int) -> F64:
        """Return what the recorded victims free on each node, in one dimension. Shape (N,)."""
        found = np.zeros(len(self._ssn.tables.nodes.facts))
        for node, amount in self._freed.items():
            found[node] = amount[dimension]
        return found


def _closed(feasible: Feasibility, cls: int, capacity: F64) -> Bool:
    """Return the nodes that filters reject for a class whatever is freed. Shape (N,)."""
    rejected: Bool = capacity < 0
    # A filter may object to pods that hold something else than resources, for example a NUMA zone.
    return rejected & ~feasible.mendable(cls) if rejected.any() else rejected
