"""How much room there will be on nodes as running jobs end: the profile on which a reservation is planned.

Source: the extensible profile of EASY and conservative backfilling (Mu'alem and Feitelson, Utilization, Predictability,
Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling, 2001), with vectors in place of
processors.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.algorithms.sums import sums_by
from pumice.columns.dtypes import EPS, F64, I64, AnyArray, Bool

#: Places on one node that are counted at most.
PLACES_MAX = 1_000_000


class Demand(NamedTuple):
    """Equal pods: how many, what one asks for (R,), and the nodes that may take it (N,). ``kind``: equal for
    those that ask for the same on the same nodes, where answers are shared. ``within`` (N,): the domain in which
    all must be, None for anywhere."""

    pods: int
    each: F64
    nodes: Bool
    kind: Hashable = None
    within: Bool | None = None


class RoomOverTime:
    """``free`` (N, R) is free now. Pod i on ``node[i]`` frees ``amount[i]`` at ``end[i]``, shapes (P,) and (P, R)."""

    def __init__(self, free: F64, node: AnyArray, amount: F64, end: F64) -> None:
        # Stable, so that jobs which end together are always in the order of their rows.
        order = np.argsort(end, kind="stable")
        self._free, self._node, self._amount, self._end = free.copy(), node[order], amount[order], end[order]

    def at(self, moment: float) -> F64:
        """Return what is free at a moment. Shape (N, R)."""
        gone = int(np.searchsorted(self._end, moment, side="right"))
        return self._free + sums_by(self._node[:gone], self._amount[:gone], len(self._free))

    def moments(self, now: float) -> F64:
        """Return when pods end, after now, ascending."""
        found: F64 = distinct(self._end[np.isfinite(self._end) & (self._end > now)])
        return found

    def places_at(self, demand: Demand, moments: F64) -> F64:
        """Return how many places for a demand there are at each of some moments, ascending. Shape (moments,)."""
        free, found, gone = self._free.copy(), np.empty(len(moments)), 0
        here = places(free, demand)
        for i, until in enumerate(np.searchsorted(self._end, moments, side="right").tolist()):
            # Only of nodes on which something ends, so that many moments cost little more than one.
            nodes, which = np.unique(self._node[gone:until], return_inverse=True)
            free[nodes] += sums_by(which, self._amount[gone:until], len(nodes))
            gone = until
            here[nodes] = places(free[nodes], demand._replace(nodes=demand.nodes[nodes]))
            found[i] = here.sum()
        return found

    def earliest(self, demands: Sequence[Demand], now: float) -> float:
        """Return when all demands fit together, ``inf`` for never. Logarithmic in the number of ends."""
        if fits(self.at(now), demands) is not None:
            return now
        moments = self.moments(now)
        if not len(moments) or fits(self.at(float(moments[-1])), demands) is None:
            return float("inf")
        # Room only grows, since pods end and none starts: so the moments can be halved.
        low, high = 0, len(moments) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if fits(self.at(float(moments[middle])), demands) is None else (low, middle)
        return float(moments[low])

    def take(self, demands: Sequence[Demand], until: float) -> None:
        """Place demands that fit now, until a moment."""
        taken = fits(self._free, demands)
        assert taken is not None, "taken without room"
        for demand, counts in zip(demands, taken, strict=True):
            nodes = counts.nonzero()[0]
            amount = counts[nodes, None] * demand.each
            self._free[nodes] -= amount
            at = np.searchsorted(self._end, until, side="right")
            self._node = np.insert(self._node, at, nodes)
            self._amount = np.insert(self._amount, at, amount, axis=0)
            self._end = np.insert(self._end, at, np.full(len(nodes), until))


def places(free: F64, demand: Demand, most: int = PLACES_MAX) -> I64:
    """Return how many equal pods each node has room for, up to ``most`` on one node. Shape (N,)."""
    asks = demand.each > 0
    # A pod that asks for nothing has room without end, which no sum over nodes could hold.
    each = np.floor((free[:, asks] + EPS) / demand.each[asks]).min(axis=1, initial=most)
    return np.where(demand.nodes, np.maximum(each, 0), 0).astype(np.int64)


def fits(free: F64, demands: Sequence[Demand]) -> list[I64] | None:
    """Return pods per node for each demand, shapes (N,), or None if they do not fit together, one demand after the
    other and node by node. For one demand, and so for equal pods, the answer is exact."""
    # Unlike pods share nodes, so each demand sees what the ones before it have left.
    found, left = [], free if len(demands) < 2 else free.copy()
    for demand in demands:
        room = places(left, demand, demand.pods)
        before = np.cumsum(room) - room
        counts = np.clip(demand.pods - before, 0, room)
        if counts.sum() < demand.pods:
            return None
        if len(demands) > 1:
            left -= counts[:, None] * demand.each
        found.append(counts)
    return found


def places_lost(each: F64, demand: Demand) -> int:
    """Return how many places for pods of a demand one pod with these requests takes at most, on whichever node."""
    return int(places_lost_by(each[None, :], demand)[0])


def places_lost_by(each: F64, demand: Demand) -> F64:
    """Return how many places for pods of a demand one pod takes at most, for requests of several kinds (kinds, R), on
    whichever node. Shape (kinds,)."""
    asks = demand.each > 0
    if not asks.any():
        return np.zeros(len(each))
    # The places of a node are a minimum of quotients over resources, and none of these falls by more than this.
    found: F64 = np.ceil((each[:, asks] - EPS) / demand.each[asks]).max(axis=1, initial=0.0)
    return found
