"""What a kubelet's Topology Manager gives of the NUMA zones of nodes, as arrays.

Letters: r rows (nodes), Z zones, K resources that zones report. Source: KAI numa plugin (evaluator), which follows the
kubelet's policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
I64 = NDArray[np.int64]
#: Amounts by zone and resource (Z, K) of one node.
Amounts = list[list[float]]

#: Policies. Zones of nodes with the first two are not modelled.
UNKNOWN, NONE, BEST_EFFORT, RESTRICTED, SINGLE = range(5)


class Machines(NamedTuple):
    """What does not change in a session. ``policy`` (r,), ``by_pod`` (r,): the scope is the pod and not the container,
    ``zones`` (r,): how many zones, ``reported`` (r, K): resources that any zone reports, ``prefix`` (r, Z, K): sums of
    the largest 1 to Z allocatable amounts."""

    policy: I64
    by_pod: Bool
    zones: I64
    reported: Bool
    prefix: F64

    def at(self, rows: Any) -> Machines:
        """Return some rows."""
        return Machines(*(each[rows] for each in self))


class ZoneRequest(NamedTuple):
    """Amounts (K,) that are aligned together: ``together`` are held side by side, each of ``alone`` by itself before
    them."""

    together: Sequence[F64]
    alone: Sequence[F64] = ()


class Alignment(NamedTuple):
    """``fits`` (r,): the request can be aligned. ``taken`` (r, Z, K): what it would take, nothing where it does not
    fit."""

    fits: Bool
    taken: F64


def aligned(asked: ZoneRequest, machines: Machines, free: F64) -> Alignment:
    """Return what a request takes of the free amounts (r, Z, K)."""
    left, taken, fits = free, np.zeros_like(free), np.ones(len(free), dtype=bool)
    for amount in asked.together:
        need = np.where(machines.reported, amount, 0.0)
        mask, found = _zones_for(need, machines, left)
        fits &= found
        drawn = _drawn(need, left, mask)
        # The next container finds less, since both run at one time.
        left, taken = left - drawn, taken + drawn
    for amount in asked.alone:
        fits &= _zones_for(np.where(machines.reported, amount, 0.0), machines, free)[1]
    return Alignment(fits, np.where(fits[:, None, None], taken, 0.0))


def taken_on_one(asked: ZoneRequest, machines: Machines, row: int, free: Amounts) -> Amounts | None:
    """Return what a request takes of the free amounts (Z, K) of one node, ``row``, or None if it cannot be aligned.

    Equal to ``aligned`` of that row. Lists: for a few zones of one node, the calls of NumPy would cost more than the
    arithmetic.
    """
    machine = _Machine.at(machines, row)
    # What one amount takes is gone for the next one, as they are held side by side.
    left, taken = free, [[0.0] * len(each) for each in free]
    for amount in asked.together:
        need = machine.need(amount)
        zones = _zones_on_one(need, machine, left)
        # A pod starts with all of its containers, so one without zones leaves the pod without any.
        if zones is None:
            return None
        drawn = _drawn_on_one(need, left, zones)
        left, taken = minus(left, drawn), _plus(taken, drawn)
    # Against what was free before, since these run while none of the others does.
    for amount in asked.alone:
        if _zones_on_one(machine.need(amount), machine, free) is None:
            return None
    return taken


def minus(left: Amounts, right: Amounts) -> Amounts:
    """Return the difference of two amounts by zone (Z, K)."""
    return [[x - y for x, y in zip(*each, strict=True)] for each in zip(left, right, strict=True)]


def _plus(left: Amounts, right: Amounts) -> Amounts:
    return [[x + y for x, y in zip(*each, strict=True)] for each in zip(left, right, strict=True)]


class _Machine(NamedTuple):
    """One row of ``Machines``."""

    policy: int
    zones: int
    reported: list[bool]
    prefix: Amounts

    @classmethod
    def at(cls, machines: Machines, row: int) -> _Machine:
        """Return a row."""
        policy, prefix = int(machines.policy[row]), Amounts()
        if policy == RESTRICTED:  # no other policy reads it
            prefix = machines.prefix[row].tolist()
        return cls(policy, int(machines.zones[row]), machines.reported[row].tolist(), prefix)

    def need(self, amount: F64) -> list[float]:
        """Return the amounts (K,) of resources that the zones report."""
        return [each if known else 0.0 for each, known in zip(amount.tolist(), self.reported, strict=True)]


def _drawn_on_one(need: list[float], free: Amounts, zones: Sequence[int]) -> Amounts:
    """Return what is taken of some zones (Z, K), of the lowest ones first. ``zones`` are in order."""
    found = [[0.0] * len(need) for _ in free]
    for k, wanted in enumerate(need):
        total = 0.0
        for zone in zones if wanted > 0 else ():
            # A zone may be overused, and then it has nothing to give, rather than less than nothing.
            there = max(free[zone][k], 0.0)
            total += there
            # Subtracted from a running sum, as in the array form, so that both round equally.
            found[zone][k] = min(max(wanted - (total - there), 0.0), there)
    return found


def _zones_on_one(need: list[float], machine: _Machine, free: Amounts) -> Sequence[int] | None:
    """Return the zones that a need would get on one node, in order, or None if there are none."""
    if machine.policy == RESTRICTED:
        return _narrowest_on_one(need, machine, free)
    if machine.policy == BEST_EFFORT:
        return _covering_on_one(need, free)
    # The lowest zone that holds the whole need, since no policy that ends here accepts several.
    for zone, there in enumerate(free[: machine.zones]):
        if all(x >= y or y <= 0 for x, y in zip(there, need, strict=True)):
            return (zone,)
    return None


def _narrowest_on_one(need: list[float], machine: _Machine, free: Amounts) -> Sequence[int] | None:
    """Return what ``_narrowest`` returns, for one node."""
    asks = [k for k, amount in enumerate(need) if amount > 0]
    widths = {1 + sum(each[k] < need[k] for each in machine.prefix) for k in asks}
    # Resources that prefer different numbers of zones have no preference in common, and the kubelet refuses the pod.
    if len(widths) != 1:
        return None if widths else ()
    # In lexicographic order, so that the first set that holds the need is the lowest.
    for zones in combinations(range(machine.zones), widths.pop()):
        if all(sum(free[zone][k] for zone in zones) >= need[k] for k in asks):
            return zones
    return None


def _covering_on_one(need: list[float], free: Amounts) -> Sequence[int] | None:
    """Return what ``_covering`` returns, for one node."""
    left, missing = dict(enumerate(free)), need
    while any(amount > 0 for amount in missing) and left:
        covers = {
            zone: sum(min(max(x, 0.0), y) for x, y in zip(missing, there, strict=True)) for zone, there in left.items()
        }
        best = max(covers, key=covers.__getitem__)  # of equal zones the first
        # No zone that is left has anything of what is missing.
        if covers[best] <= 0:
            return None
        missing = [x - y for x, y in zip(missing, left.pop(best), strict=True)]
    return None if any(amount > 0 for amount in missing) else sorted(set(range(len(free))) - left.keys())


def _drawn(need: F64, free: F64, mask: Bool) -> F64:
    """Return what is taken of the zones in ``mask`` (r, Z), of the lowest ones first. Shape (r, Z, K)."""
    # A zone may hold more than it has, where its node's agent and the records of pods disagree.
    there = np.where(mask[:, :, None], np.maximum(free, 0.0), 0.0)
    before = there.cumsum(axis=1) - there
    found: F64 = np.clip(need[:, None, :] - before, 0.0, there)
    return found


def _zones_for(need: F64, machines: Machines, free: F64) -> tuple[Bool, Bool]:
    """Return the zones (r, Z) that a need (r, K) would get, and where there are such zones (r,)."""
    mask = _lowest_zone(need, machines, free)
    found: Bool = np.logical_or.reduce(mask, axis=1)
    wider = machines.policy == RESTRICTED
    if wider.any():
        mask[wider], found[wider] = _narrowest(need[wider], machines.at(wider), free[wider])
    greedy = machines.policy == BEST_EFFORT
    if greedy.any():
        mask[greedy], found[greedy] = _covering(need[greedy], free[greedy])
    return mask, found


def _lowest_zone(need: F64, machines: Machines, free: F64) -> Bool:
    """Return the lowest zone that holds all of a need, as a mask (r, Z)."""
    holds = ((free >= need[:, None, :]) | (need[:, None, :] <= 0)).all(axis=2)
    holds &= np.arange(free.shape[1]) < machines.zones[:, None]
    first: Bool = holds & (holds.cumsum(axis=1) == 1)
    return first


def _narrowest(need: F64, machines: Machines, free: F64) -> tuple[Bool, Bool]:
    """Return the lowest zones that hold a need, as many as the resources agree to need at least when all is free."""
    asks, most = need > 0, free.shape[1]
    # By what is allocatable and not by what is free: a kubelet prefers the width that an empty node would need, and
    # refuses any other.
    width = np.where(asks, (machines.prefix < need[:, None, :]).sum(axis=1) + 1, 0)
    wanted = width.max(axis=1, initial=0)
    # The kubelet merges the preferences of each resource, and finds none if two prefer different numbers of zones.
    agrees = ((width == wanted[:, None]) | ~asks).all(axis=1) & (wanted <= most)
    mask, found = np.zeros((len(need), most), dtype=bool), agrees & (wanted == 0)
    for size in sorted(set(wanted[agrees].tolist()) - {0}):
        rows, sets = np.flatnonzero(agrees & (wanted == size)), _sets(most, size)
        sums = np.einsum("sz,rzk->rsk", sets.astype(np.float64), free[rows])
        holds = ((sums >= need[rows][:, None, :]) | ~asks[rows][:, None, :]).all(axis=2)
        holds &= ~(sets[None] & (np.arange(most) >= machines.zones[rows][:, None])[:, None, :]).any(axis=2)
        found[rows] = holds.any(axis=1)
        mask[rows] = sets[holds.argmax(axis=1)] & found[rows][:, None]
    return mask, found


# At most eight zones, so at most 70 sets of a size: listing them is cheaper than a search for each node.
@lru_cache(maxsize=128)
def _sets(zones: int, size: int) -> Bool:
    """Return all sets of so many zones, the lexicographically lowest first. Shape (sets, Z)."""
    found = np.zeros((0, zones), dtype=bool)
    chosen = list(combinations(range(zones), size))
    if chosen:
        found = np.zeros((len(chosen), zones), dtype=bool)
        found[np.arange(len(chosen))[:, None], np.array(chosen)] = True
    return found


def _covering(need: F64, free: F64) -> tuple[Bool, Bool]:
    """Return zones, each the one that covers most of what is missing after those before it."""
    mask, missing = np.zeros(free.shape[:2], dtype=bool), need.copy()
    rows = np.arange(len(need))
    for _ in range(free.shape[1]):
        covers = np.minimum(np.maximum(missing, 0.0)[:, None, :], free).sum(axis=2)
        # A zone is added once, although it may cover more of another resource.
        covers[mask] = 0.0
        best = covers.argmax(axis=1)
        helps = covers[rows, best] > 0
        mask[rows[helps], best[helps]] = True
        missing = np.where(helps[:, None], missing - free[rows, best], missing)
    covered: Bool = np.logical_and.reduce(missing <= 0, axis=1)
    return mask, covered
