"""What GPUs of a model, its cores, and the gaps in its devices are worth to the pods that may come: prices.

Both are duals of relaxed placement problems, found by subgradient steps: a price goes up while more is asked for than
there is, down while less is. Steps shrink, and the mean of the later ones counts. So many steps, whatever comes in:
prices only rank places, so that a little off costs a little, and nobody decides by their last digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pumice.algorithms.fragments import F64, WHOLE, Ask, Bool, Ints, Room, Shape

#: Of one device, in hundredths: what parts of a device are counted in.
PARTS = 100
_STEPS, _FIRST_STEPS = 1_500, 500
_GAP_STEPS, _FIRST_GAP_STEPS = 400, 133
#: A price that is above all others of a pod without GPUs is no reason not to place it.
_MUST = 1e6


class Demand(NamedTuple):
    """Equal pods a row: ``milli_cpu`` and ``gpus`` (C,) that each asks for, in milli-cores and milli-devices, how many
    ``pods`` (C,) there are of them, and on which models they ``may`` run (C, M)."""

    milli_cpu: F64
    gpus: F64
    pods: F64
    may: Bool


def model_prices(demand: Demand, milli_cpu: F64, gpus: F64) -> tuple[F64, F64]:
    """What a milli-device and a milli-core of each model is worth, in milli-devices placed. ``milli_cpu``, ``gpus``
    (M,): what all nodes of a model have. Demand is taken for as much of GPUs as there is. Shapes (M,)."""
    has = gpus > 0
    scale = np.where(has, gpus, 1.0)
    cores = np.maximum(milli_cpu, 1.0)
    pods = demand.pods * gpus.sum() / max(float(demand.gpus @ demand.pods), 1.0)
    of_gpus, of_cores = np.zeros(len(gpus)), np.zeros(len(gpus))
    sums = np.zeros((2, len(gpus)))
    must = np.where(demand.gpus > 0, 0.0, _MUST)[:, None]
    may = demand.may & (has | (demand.gpus == 0)[:, None])
    for step in range(_STEPS):
        worth = demand.gpus[:, None] * (1.0 - of_gpus) - demand.milli_cpu[:, None] * of_cores + must
        worth[~may] = -np.inf
        best = worth.argmax(axis=1)
        placed = np.where(worth.max(axis=1) > 0, pods, 0.0)
        taken_gpus = np.bincount(best, demand.gpus * placed, len(gpus))
        taken_cores = np.bincount(best, demand.milli_cpu * placed, len(gpus))
        length = 0.3 / np.sqrt(step + 1.0)
        of_gpus = np.clip(of_gpus + length * np.where(has, taken_gpus / scale - 1.0, 0.0), 0.0, 2.0)
        ratio = scale / cores
        of_cores = np.clip(of_cores + length * (taken_cores / cores - 1.0) * ratio, 0.0, 2.0 * ratio)
        if step >= _FIRST_STEPS:
            sums += (of_gpus, of_cores)
    found = sums / (_STEPS - _FIRST_STEPS)
    return found[0], found[1]


class GapPrices(NamedTuple):
    """``gaps`` (PARTS + 1,): what so many hundredths that are free of a device are worth; ``parts``, likewise: what a
    pod that asks for so many is worth where it is placed. In milli-devices. A part costs what its gap loses in worth,
    less its own: 0 where a best cut of devices would put it."""

    gaps: F64
    parts: F64

    def loss(self, free: F64, milli: float) -> F64:
        """What is lost when a part goes into gaps, each of so many milli-devices; at least 0. Shape of ``free``."""
        before = np.minimum(free / WHOLE * PARTS, PARTS).astype(np.int64)
        size = round(milli / WHOLE * PARTS)
        found = self.gaps[before] - self.gaps[np.maximum(before - size, 0)] - self.parts[size]
        return np.asarray(np.maximum(found, 0.0))


#: What each part of a gain weighs: the gradient of the fragment, GPUs of a scarce model, cores, gaps cut badly.
#: Found by trial on the workloads of the guide; a gain is told in steps, so that nodes are filled one by one.
_GRADIENT, _GPUS, _CORES, _GAPS, _STEP = 0.3, 1.0, 0.15, 10.0, 40.0
#: A model's GPUs count as scarce above this price: below it lie the steps' own errors.
_SCARCE = 0.3


class Prices(NamedTuple):
    """Of a milli-device and a milli-core of each model (M,), and of gaps."""

    gpus: F64
    cores: F64
    gaps: GapPrices

    def gain(self, room: Room, ask: Ask, gradient: F64) -> F64:
        """How good nodes are for a pod, in steps; ``gradient`` (n, G) of the fragment, whose shape the answer has."""
        taken = ask.devices * ask.milli
        paid = _GPUS * taken * self.gpus[room.model] + _CORES * ask.milli_cpu * self.cores[room.model]
        found = _GRADIENT * gradient - paid[:, None]
        if 0 < ask.milli < WHOLE:
            found = found - _GAPS * self.gaps.loss(room.gpus, ask.milli)
        return np.asarray(np.round(found / _STEP))


def prices_of(shapes: Sequence[Shape], milli_cpu: F64, gpus: F64) -> Prices:
    """By pods that are there, and what all nodes of a model have (M,)."""
    asks = [shape.ask for shape in shapes]
    pods = np.array([shape.pods for shape in shapes], dtype=np.float64)
    taken = np.array([ask.devices * ask.milli for ask in asks], dtype=np.float64)
    may = np.array([shape.models for shape in shapes], dtype=bool).reshape(len(shapes), len(gpus))
    demand = Demand(np.array([ask.milli_cpu for ask in asks], dtype=np.float64), taken, pods, may)
    of_gpus, of_cores = model_prices(demand, milli_cpu, gpus)
    scale = float(gpus.sum()) / max(float(taken @ pods), 1.0)
    parts, whole = np.zeros(PARTS + 1), 0.0
    for ask, count in zip(asks, (pods * scale).tolist(), strict=True):
        if 0 < ask.milli < WHOLE:
            parts[round(ask.milli / WHOLE * PARTS)] += count
        else:
            whole += ask.devices * count
    gaps = gap_prices(parts, float(gpus.sum()) / WHOLE - whole)
    return Prices(np.maximum(of_gpus - _SCARCE, 0.0), of_cores, gaps)


def gap_prices(pods: F64, devices: float) -> GapPrices:
    """The prices at which devices are best cut. ``pods`` (PARTS + 1,): how many ask for so many hundredths. Source:
    the dual of the cutting stock problem, Gilmore and Gomory, 1961."""
    sizes = pods.nonzero()[0]
    sizes = sizes[sizes > 0]
    asked, devices = pods[sizes].astype(np.float64), max(devices, 1.0)
    rent = np.zeros(len(sizes))
    total = np.zeros(len(sizes))
    scale = max(float(asked.max(initial=0.0)), devices)
    for step in range(_GAP_STEPS):
        _, cut = _best_cut(sizes, sizes - rent)
        rent = np.clip(rent - 12.0 / np.sqrt(step + 1.0) * (asked - devices * cut) / scale, 0.0, sizes)
        if step >= _FIRST_GAP_STEPS:
            total += rent
    worth = sizes - total / (_GAP_STEPS - _FIRST_GAP_STEPS)
    parts = np.zeros(PARTS + 1)
    parts[sizes] = worth
    return GapPrices(_best_cut(sizes, worth)[0] * (WHOLE / PARTS), parts * (WHOLE / PARTS))


def _best_cut(sizes: Ints, worth: F64) -> tuple[F64, F64]:
    """The most that parts in a gap can be worth, by its size (PARTS + 1,); and how many of each size a whole device is
    cut into then."""
    most = np.zeros(PARTS + 1)
    last = np.full(PARTS + 1, -1)
    for gap in range(1, PARTS + 1):
        most[gap] = most[gap - 1]
        fits = int(np.searchsorted(sizes, gap, side="right"))
        if fits:
            found = worth[:fits] + most[gap - sizes[:fits]]
            best = int(found.argmax())
            if found[best] > most[gap] + 1e-12:
                most[gap], last[gap] = found[best], best
    cut, gap = np.zeros(len(sizes)), PARTS
    while gap > 0:
        if last[gap] < 0:
            gap -= 1
        else:
            cut[last[gap]] += 1.0
            gap -= int(sizes[last[gap]])
    return most, cut
