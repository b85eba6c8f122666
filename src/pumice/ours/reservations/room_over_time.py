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


class Parts(NamedTuple):
    """Pods are in parts of ``size``, each of which must be within one domain. ``domain`` (N,): that of each node, from
    1 on; 0 for a node in none, which takes no part."""

    size: int
    domain: I64


class Demand(NamedTuple):
    """Equal pods: how many, what one asks for (R,), and the nodes that may take it (N,). ``kind``: equal for
    those that ask for the same on the same nodes, where answers are shared. ``within`` (N,): the domain in which
    all must be, None for anywhere. ``parts``: each part of them must be in some domain, None for no such parts.
    ``classes``: those of the pods."""

    pods: int
    each: F64
    nodes: Bool
    kind: Hashable = None
    within: Bool | None = None
    parts: Parts | None = None
    classes: tuple[int, ...] = ()


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
        here = places_on_nodes(free, demand)
        for i, until in enumerate(np.searchsorted(self._end, moments, side="right").tolist()):
            # Only of nodes on which something ends, so that many moments cost little more than one.
            nodes, which = np.unique(self._node[gone:until], return_inverse=True)
            free[nodes] += sums_by(which, self._amount[gone:until], len(nodes))
            gone = until
            here[nodes] = places_on_nodes(free[nodes], demand._replace(nodes=demand.nodes[nodes]))
            found[i] = (here if demand.parts is None else _of_domains(here, demand.parts)).sum()
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
    """Return how many equal pods may go to each node, up to ``most`` on one node. Shape (N,)."""
    room = places_on_nodes(free, demand, most)
    if demand.parts is None:
        return room
    order = np.argsort(demand.parts.domain, kind="stable")
    whole = _of_domains(room, demand.parts)
    # Which nodes of a domain have the places that are too few for a part makes no difference: the last ones.
    ends = np.cumsum(np.bincount(demand.parts.domain, room)).astype(np.int64)
    found, domain = np.empty_like(room), demand.parts.domain[order]
    after = ends[domain] - np.cumsum(room[order])
    left_over = (np.diff(ends, prepend=0) - whole)[domain]
    found[order] = np.maximum(room[order] - np.maximum(left_over - after, 0), 0)
    return found


def _of_domains(room: I64, parts: Parts) -> I64:
    """Return the places of each domain that whole parts can take. Shape (domains,)."""
    total = np.bincount(parts.domain, room).astype(np.int64)
    # A part that no domain contains would be placed nowhere, however many nodes are in no domain.
    total[0] = 0
    return total - total % parts.size


def places_on_nodes(free: F64, demand: Demand, most: int = PLACES_MAX) -> I64:
    """Return how many equal pods each node has room for by itself, up to ``most`` on one node. Shape (N,)."""
    asks = demand.each > 0
    # A pod that asks for nothing has room without end, which no sum over nodes could hold.
    each = np.floor((free[:, asks] + EPS) / demand.each[asks]).min(axis=1, initial=most)
    return np.where(demand.nodes, np.maximum(each, 0), 0).astype(np.int64)


def pods_of(demands: Sequence[Demand]) -> int:
    """Return the number of pods of all demands."""
    return sum(demand.pods for demand in demands)


def fits(free: F64, demands: Sequence[Demand]) -> list[I64] | None:
    """Return pods per node for each demand, shapes (N,), or None if they do not fit together, one demand after the
    other and node by node. For one demand, and so for equal pods, the answer is exact."""
    # Unlike pods share nodes, so each demand sees what the ones before it have left.
    found, left = [], free if len(demands) < 2 else free.copy()
    for demand in demands:
        room = places(left, demand, demand.pods)
        # Domain by domain, so that parts are whole.
        order = slice(None) if demand.parts is None else np.argsort(demand.parts.domain, kind="stable")
        counts = np.empty_like(room)
        counts[order] = np.clip(demand.pods - np.cumsum(room[order]) + room[order], 0, room[order])
        if counts.sum() < demand.pods:
            return None
        if len(demands) > 1:
            left -= counts[:, None] * demand.each
        found.append(counts)
    return found


def places_taken(taker: Demand, demand: Demand) -> int:
    """Return how many places for a demand the pods of another one take at most, wherever they are placed."""
    one = int(places_lost_by(taker.each[None, :], demand._replace(parts=None))[0])
    if demand.parts is None:
        return taker.pods * one
    together = 1
    if taker.parts is not None and np.array_equal(taker.parts.domain, demand.parts.domain):
        together = taker.parts.size
    size = demand.parts.size
    return taker.pods // together * -(-one * together // size) * size


def places_lost_by(each: F64, demand: Demand) -> F64:
    """Return how many places for pods of a demand one pod takes at most, for requests of several kinds (kinds, R), on
    whichever node. Shape (kinds,)."""
    asks = demand.each > 0
    if not asks.any():
        return np.zeros(len(each))
    # The places of a node are a minimum of quotients over resources, and none of these falls by more than this.
    found: F64 = np.ceil((each[:, asks] - EPS) / demand.each[asks]).max(axis=1, initial=0.0)
    # One place less in a domain may be a whole part less.
    return found if demand.parts is None else np.ceil(found / demand.parts.size) * demand.parts.size
