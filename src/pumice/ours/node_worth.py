"""Value the free capacity of a node by the best that typical pods can make of its GPUs and cores together.

A part of a device is worth its share of a device in the cheapest way to cut devices for all requests. These are the
dual prices of the cutting stock problem (Gilmore and Gomory, 1961). The worth of a node is the largest total worth of
pods that fit on it together; this module computes an upper bound. Cores are sold at a price, the best of a few, so
that each device can be cut independently (Lagrangian relaxation). The cost of a placement is the loss of the node's
worth. Units: milli-devices.

Shape letters as in ``fragments``; L prices of cores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.ours.fragments import F64, WHOLE, Ask, Ints, Room, Shape

#: Units of one device: parts of a device are counted in hundredths.
PARTS = 100
#: Number of core prices to try, besides zero.
_CORE_PRICES = 6
#: Bound of simplex steps. With about a hundred sizes the search may stop before the optimum. Worths are then slightly
#: off, but scaled so that no cut is worth more than a device.
_CUTS_MAX = 200
_EPS = 1e-9

#: Weight of the fragment gradient beside the loss of worth; it decides between nodes with equal losses.
#: Bids are rounded to the step, in milli-devices, so that near-equal bids tie and go by name: nodes fill one by one.
_GRADIENT, _STEP = 0.03, 4.0
#: Gain on nodes where a pod has no room by this measure, which counts GPU memory as a whole device; below all gains.
NO_ROOM = -1e6


class NodeWorth:
    """Upper bounds of the worth of nodes at each core price.

    ``core_prices`` (L,) are per milli-core, ascending from 0. ``_gaps`` (PARTS + 1, L) is the largest worth of so many
    free hundredths of a device in use, with 0 for a whole device. ``_whole`` (devices + 1, L) is the largest worth of
    so many whole devices.
    """

    __slots__ = ("_gaps", "_whole", "core_prices")

    def __init__(self, shapes: Sequence[Shape], devices: int) -> None:
        """Compute the tables for the pods to expect, ``shapes``, on nodes with at most ``devices`` GPUs."""
        asks = [shape.ask for shape in shapes if 0 < shape.ask.devices <= devices]
        cores: F64 = np.array([ask.milli_cpu for ask in asks], dtype=np.float64)
        counts = np.array([ask.devices for ask in asks], dtype=np.int64)
        sizes = np.array([_hundredths_asked(ask) for ask in asks], dtype=np.int64)
        asked: F64 = np.zeros(PARTS + 1)
        for shape in shapes:
            asked[_hundredths_asked(shape.ask)] += shape.pods * shape.ask.devices
        worths = part_worths(asked)[sizes] * counts
        self.core_prices = _core_prices(cores, worths)
        net = np.maximum(worths[:, None] - np.multiply.outer(cores, self.core_prices), 0.0)
        best: F64 = np.zeros((PARTS + 1, len(self.core_prices)))
        several: F64 = np.zeros((devices + 1, len(self.core_prices)))
        np.maximum.at(best, sizes[counts == 1], net[counts == 1])
        np.maximum.at(several, counts[counts > 1], net[counts > 1])
        self._gaps = _most(best)
        self._whole = _most_of_whole(several, self._gaps[PARTS])
        # Whole devices are counted in ``_whole``. A zero here lets ``_at_prices`` sum over all devices without a mask.
        self._gaps[PARTS] = 0.0

    def of(self, room: Room) -> F64:
        """Return the worth of nodes in their current state. Shape (n,)."""
        # Each price gives an upper bound, so the lowest is the tightest.
        return np.asarray(self._at_prices(room, _hundredths(room.gpus)).min(axis=1))

    def loss(self, room: Room, ask: Ask) -> F64:
        """Return by how much a placement reduces the worth of each node.

        For a pod that asks for a part of one device, the answer is per device, and is meaningless for devices without
        room. The pod must fit on the nodes. Shape (n, G), or (n, 1).
        """
        gaps = _hundredths(room.gpus)
        whole = (gaps == PARTS).sum(axis=1)
        now = self._at_prices(room, gaps)
        later = now - ask.milli_cpu * self.core_prices - self._whole[whole]
        if not 0 < ask.milli < WHOLE:
            later = (later + self._whole[whole - ask.devices])[:, None, :]
        else:
            fewer = np.where((gaps == PARTS)[:, :, None], self._whole[np.maximum(whole - 1, 0)][:, None, :], 0.0)
            same = np.where((gaps == PARTS)[:, :, None], 0.0, self._whole[whole][:, None, :])
            left = _hundredths(np.maximum(room.gpus - ask.milli, 0.0))
            later = later[:, None, :] + fewer + same + self._gaps[left] - self._gaps[gaps]
        return np.asarray(now.min(axis=1)[:, None] - later.min(axis=2))

    def gain(self, room: Room, ask: Ask, gradient: F64) -> F64:
        """Return how good nodes are for a pod, in milli-devices. ``gradient`` is that of the fragment and has the
        shape of the answer."""
        return np.asarray(_GRADIENT * gradient - self.loss(room, ask))

    def _at_prices(self, room: Room, gaps: Ints) -> F64:
        """Return the worth of nodes at each core price. Shape (n, L)."""
        whole = self._whole[(gaps == PARTS).sum(axis=1)]
        return np.asarray(np.multiply.outer(room.milli_cpu, self.core_prices) + whole + self._gaps[gaps].sum(axis=1))


def bids(gain: F64, taken: float, in_use: F64) -> F64:
    """Return gains less the price of the ``taken`` milli-devices, rounded to steps.

    The price is the share of GPUs of the node's model that is ``in_use`` (n,). Shape (n,).
    """
    # A price that rises with use fills models evenly: pods that may run anywhere avoid the models that other pods
    # need.
    return np.asarray(np.round((gain - taken * in_use) / _STEP))


def part_worths(asked: F64) -> F64:
    """Return the worth of each part of a device, in milli-devices, such that no cut of a device is worth more than the
    device.

    Subject to that, the worth of all parts that are ``asked`` for is as large as possible; parts with no request are
    worth 0. Shape of ``asked`` and of the answer (PARTS + 1,), by hundredths.

    Source: column generation for cutting stock, Gilmore and Gomory, 1961; revised simplex with the inverse of the
    basis.
    """
    sizes = asked.nonzero()[0]
    sizes = sizes[sizes > 0]
    found: F64 = np.zeros(PARTS + 1)
    if not len(sizes):
        return found
    per_device = (PARTS // sizes).astype(np.float64)
    # The first basis cuts each device into parts of one size, which is always feasible.
    inverse, costs, have = np.diag(1.0 / per_device), np.ones(len(sizes)), asked[sizes] / per_device
    worths = 1.0 / per_device
    for _ in range(_CUTS_MAX):
        column, cost = _better_cut(sizes, worths)
        if column is None:
            break
        # Not `@`: on matrices this small, the threads of BLAS cost more than they save.
        enters = (inverse * column).sum(axis=1)
        ratios = np.divide(have, enters, out=np.full(len(sizes), np.inf), where=enters > _EPS)
        leaves = int(ratios.argmin())
        if not np.isfinite(ratios[leaves]):
            break
        have, costs[leaves] = have - ratios[leaves] * enters, cost
        have[leaves] = ratios[leaves]
        pivot = inverse[leaves] / enters[leaves]
        inverse -= np.multiply.outer(enters, pivot)
        inverse[leaves] = pivot
        worths = (costs[:, None] * inverse).sum(axis=0)
    worths = np.maximum(worths, 0.0)
    # If the loop stopped at its bound, the best cut is worth more than a device; dividing by it restores the
    # guarantee.
    found[sizes] = np.round(WHOLE * worths / max(_best_cut(sizes, worths)[0], 1.0), 6)
    return found


def _better_cut(sizes: Ints, worths: F64) -> tuple[F64 | None, float]:
    """Return a column that improves the program, and its cost, or None if there is none."""
    # A negative worth means that more of this part is cut than is asked for. The column that improves the program is
    # the surplus, at no cost.
    if worths.min() < -_EPS:
        return -np.eye(len(sizes))[int(worths.argmin())], 0.0
    worth, cut = _best_cut(sizes, worths)
    return (cut, 1.0) if worth > 1.0 + _EPS else (None, 0.0)


def _best_cut(sizes: Ints, worths: F64) -> tuple[float, F64]:
    """Return the largest worth of the parts of a whole device, and how many parts of each size that cut has."""
    best: F64 = np.zeros((PARTS + 1, 1))
    best[sizes, 0] = np.maximum(worths, 0.0)
    most = _most(best)[:, 0]
    cut: F64 = np.zeros(len(sizes))
    gap = PARTS
    while most[gap] > _EPS:
        fits = int(np.searchsorted(sizes, gap, side="right"))
        left = worths[:fits] + most[gap - sizes[:fits]]
        chosen = int(left.argmax())
        # No part reaches the optimum of this gap, so the optimum leaves a hundredth unused.
        if left[chosen] < most[gap] - _EPS:
            gap -= 1
            continue
        cut[chosen] += 1.0
        gap -= int(sizes[chosen])
    return float(most[PARTS]), cut


def _most(best: F64) -> F64:
    """Return the largest total worth of parts in a gap of each size: an unbounded knapsack.

    ``best`` is the worth of one part of each size. Shapes (PARTS + 1, L).
    """
    sizes = np.flatnonzero(best.any(axis=1))
    most = np.zeros_like(best)
    for gap in range(1, PARTS + 1):
        fits = sizes[: int(np.searchsorted(sizes, gap, side="right"))]
        most[gap] = most[gap - 1]
        if len(fits):
            most[gap] = np.maximum(most[gap], (best[fits] + most[gap - fits]).max(axis=0))
    return most


def _most_of_whole(several: F64, one: F64) -> F64:
    """Return the largest total worth of so many whole devices.

    ``one`` (L,) is the worth of a device used for parts. ``several`` (devices + 1, L) is the worth of so many devices
    given to one pod.
    """
    most = np.zeros_like(several)
    for count in range(1, len(several)):
        most[count] = np.maximum(most[count - 1] + one, (several[1 : count + 1] + most[:count][::-1]).max(axis=0))
    return most


def _core_prices(cores: F64, worths: F64) -> F64:
    """Return the core prices to try: zero, and quantiles of what pods could pay per milli-core. Shape (L,)."""
    pays = (worths > 0) & (cores > 0)
    if not pays.any():
        return np.zeros(1)
    # The best price lies where some kind of pod is just worth its cores. Quantiles of these ratios cover them evenly.
    found = np.quantile(distinct(worths[pays] / cores[pays]), np.linspace(0.0, 1.0, _CORE_PRICES))
    return np.concatenate(([0.0], found))


def _hundredths(milli: F64) -> Ints:
    """Return free capacity in hundredths of a device, rounded down, since no request fits in the rest of a
    hundredth."""
    # The small addend absorbs floating-point error: 29.999999 is 30.
    found: Ints = np.minimum(np.floor(milli * (PARTS / WHOLE) + 1e-6), PARTS).astype(np.int64)
    return found


def _hundredths_asked(ask: Ask) -> int:
    """Return the request of a pod on each of its devices, in hundredths; 0 without GPUs."""
    return min(max(round(ask.milli / WHOLE * PARTS), 1), PARTS) if ask.devices else 0
