"""What is free on a node is worth what typical pods can make of it at best: of its GPUs and its cores together.

A part of a device is worth what it costs to place where devices are cut as is best for all that is asked for: the dual
of the cutting stock problem (Gilmore and Gomory, 1961). A node is worth the most that pods on it can be worth together,
and of that an upper bound is taken: cores are sold at a price, the best of a few, so that each device can be cut by
itself (Lagrangian relaxation). A placement costs what the node's worth loses. All in milli-devices.

Shape letters as in ``fragments``; L prices of cores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.ours.fragments import F64, WHOLE, Ask, Ints, Room, Shape

#: Of one device, in hundredths: what parts of a device are counted in.
PARTS = 100
#: Prices of cores that are tried, beside none.
_CORE_PRICES = 6
#: Cuts are exchanged until none is better; where that takes longer (with a hundred sizes), worths are a little off, but
#: still such that no cut is worth more than a device.
_CUTS_MAX = 200
_EPS = 1e-9

#: What the gradient of the fragment weighs beside a loss of worth, and the step, in milli-devices, in which bids are
#: told: it decides among nodes that lose as much, and what is left equal goes by name, so that nodes fill one by one.
_GRADIENT, _STEP = 0.03, 4.0
#: The gain where a pod has no room by this measure, which takes memory of a GPU for a whole one: less than any other.
NO_ROOM = -1e6


class NodeWorth:
    """``core_prices`` (L,): of a milli-core, from nothing up. ``_gaps`` (PARTS + 1, L): what so many hundredths, free
    of a device in use, are worth at most at each price, 0 for a whole one; ``_whole`` (devices + 1, L): what so many
    whole devices are."""

    __slots__ = ("_gaps", "_whole", "core_prices")

    def __init__(self, shapes: Sequence[Shape], devices: int) -> None:
        """``shapes``: the pods to expect. ``devices``: as many as a node has at most."""
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
        self._gaps[PARTS] = 0.0

    def of(self, room: Room) -> F64:
        """What nodes are worth as they are. Shape (n,)."""
        return np.asarray(self._at_prices(room, _hundredths(room.gpus)).min(axis=1))

    def loss(self, room: Room, ask: Ask) -> F64:
        """How much less nodes are worth after the pod came; by device for a pod that asks for a part of one, where one
        without room for it says nothing. The pod fits on the nodes. Shape (n, G), or (n, 1)."""
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
        """How good nodes are for a pod, in milli-devices; ``gradient`` (n, G) of the fragment, whose shape the answer
        has."""
        return np.asarray(_GRADIENT * gradient - self.loss(room, ask))

    def _at_prices(self, room: Room, gaps: Ints) -> F64:
        """Of nodes at each price of cores. Shape (n, L)."""
        whole = self._whole[(gaps == PARTS).sum(axis=1)]
        return np.asarray(np.multiply.outer(room.milli_cpu, self.core_prices) + whole + self._gaps[gaps].sum(axis=1))


def bids(gain: F64, taken: float, in_use: F64) -> F64:
    """``gain`` (n,), less the ``taken`` milli-devices at a price: the part of the GPUs of the node's model that are
    ``in_use`` (n,). So models fill evenly, and who may choose leaves those alone that others must have. In steps."""
    return np.asarray(np.round((gain - taken * in_use) / _STEP))


def part_worths(asked: F64) -> F64:
    """What parts are worth, in milli-devices, such that no cut of a device is worth more than the device, and all that
    are ``asked`` for as much as can be: 0 where nobody asks. ``asked`` and answer (PARTS + 1,), by hundredths.

    Source: column generation for cutting stock, Gilmore and Gomory, 1961; a simplex with the inverse of its basis."""
    sizes = asked.nonzero()[0]
    sizes = sizes[sizes > 0]
    found: F64 = np.zeros(PARTS + 1)
    if not len(sizes):
        return found
    per_device = (PARTS // sizes).astype(np.float64)
    inverse, costs, have = np.diag(1.0 / per_device), np.ones(len(sizes)), asked[sizes] / per_device
    worths = 1.0 / per_device
    for _ in range(_CUTS_MAX):
        column, cost = _better_cut(sizes, worths)
        if column is None:
            break
        enters = (inverse * column).sum(axis=1)  # not by BLAS, whose threads may cost more than they save
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
    found[sizes] = np.round(WHOLE * worths / max(_best_cut(sizes, worths)[0], 1.0), 6)
    return found


def _better_cut(sizes: Ints, worths: F64) -> tuple[F64 | None, float]:
    """A column of the program that would improve it, and its cost; None: there is none. A negative worth says that
    there is too much of that part: what is left over is the column."""
    if worths.min() < -_EPS:
        return -np.eye(len(sizes))[int(worths.argmin())], 0.0
    worth, cut = _best_cut(sizes, worths)
    return (cut, 1.0) if worth > 1.0 + _EPS else (None, 0.0)


def _best_cut(sizes: Ints, worths: F64) -> tuple[float, F64]:
    """The most that parts of a whole device can be worth, and how many of each size it is cut into then."""
    best: F64 = np.zeros((PARTS + 1, 1))
    best[sizes, 0] = np.maximum(worths, 0.0)
    most = _most(best)[:, 0]
    cut: F64 = np.zeros(len(sizes))
    gap = PARTS
    while most[gap] > _EPS:
        fits = int(np.searchsorted(sizes, gap, side="right"))
        left = worths[:fits] + most[gap - sizes[:fits]]
        chosen = int(left.argmax())
        if left[chosen] < most[gap] - _EPS:  # nothing ends here: the gap is not cut to its end
            gap -= 1
            continue
        cut[chosen] += 1.0
        gap -= int(sizes[chosen])
    return float(most[PARTS]), cut


def _most(best: F64) -> F64:
    """The most that parts in a gap can be worth together, by the gap's size, where one of each size is worth ``best``
    at most: an unbounded knapsack. Shapes (PARTS + 1, L)."""
    sizes = np.flatnonzero(best.any(axis=1))
    most = np.zeros_like(best)
    for gap in range(1, PARTS + 1):
        fits = sizes[: int(np.searchsorted(sizes, gap, side="right"))]
        most[gap] = most[gap - 1]
        if len(fits):
            most[gap] = np.maximum(most[gap], (best[fits] + most[gap - fits]).max(axis=0))
    return most


def _most_of_whole(several: F64, one: F64) -> F64:
    """The same of so many whole devices, ``one`` of which is worth (L,), and several, given to one pod, ``several``
    (devices + 1, L)."""
    most = np.zeros_like(several)
    for count in range(1, len(several)):
        most[count] = np.maximum(most[count - 1] + one, (several[1 : count + 1] + most[:count][::-1]).max(axis=0))
    return most


def _core_prices(cores: F64, worths: F64) -> F64:
    """None, and from what the pods with most cores for their worth could pay for each to what those with fewest could.
    Shape (L,)."""
    pays = (worths > 0) & (cores > 0)
    if not pays.any():
        return np.zeros(1)
    found = np.quantile(np.unique(worths[pays] / cores[pays]), np.linspace(0.0, 1.0, _CORE_PRICES))
    return np.concatenate(([0.0], found))


def _hundredths(milli: F64) -> Ints:
    """Rounded down: what is left of a hundredth fits nobody."""
    found: Ints = np.minimum(np.floor(milli * (PARTS / WHOLE) + 1e-6), PARTS).astype(np.int64)
    return found


def _hundredths_asked(ask: Ask) -> int:
    """Of each of its devices."""
    return min(max(round(ask.milli / WHOLE * PARTS), 1), PARTS) if ask.devices else 0
