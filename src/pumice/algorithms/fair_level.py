"""Max-min fair shares of whole demand vectors, by weight and with bounds, in closed form. Arrays in, arrays out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

#: Amounts of a resource below this do not count.
_LEAST = 0.1


def fair_parts(total: F64, weight: F64, least: F64, demand: F64) -> F64:
    """Return the part of its demand (0 to 1) that each queue deserves, so that dominant shares are equal by weight.

    All parts rise together, as dominant share over weight. Where a resource is used up, the queues that ask for it
    stop, and the others go on. A queue starts at the part at which it has its ``least`` of each resource.
    Shapes: ``total`` (M, R), ``weight`` (Q,) above 0, ``least`` and ``demand`` (M, Q, R). Returns (M, Q).
    Source: dominant resource fairness (Ghodsi et al., NSDI'11), section 4.1, progressive filling.
    """
    if not len(weight):
        return np.zeros(demand.shape[:2])
    # A resource that the cluster hardly has must not dominate, as a division by almost 0 would make it.
    ratio = np.divide(demand, total[:, None], out=np.zeros_like(demand), where=total[:, None] >= _LEAST)
    dominant = ratio.max(axis=-1, initial=0.0)
    asks = dominant > 0
    # A part of the demand for each unit of the level.
    slope = np.divide(weight, dominant, out=np.zeros_like(dominant), where=asks)
    promised = np.divide(np.minimum(least, demand), demand, out=np.zeros_like(demand), where=demand > 0)
    low = promised.max(axis=-1, initial=0.0)
    parts: F64 = np.ones_like(dominant)
    is_open = asks
    closed = total < _LEAST
    # Each pass uses up one more resource, in each of the M cases.
    for _ in range(demand.shape[-1]):
        level = np.where(closed, np.inf, _levels(total, demand, slope, low, parts, is_open))
        if not np.isfinite(level).any():
            break
        first = level.argmin(axis=-1)
        at = np.take_along_axis(level, first[:, None], axis=-1)
        needs = np.take_along_axis(demand, first[:, None, None], axis=-1)[..., 0] > 0
        # The queues that ask for the resource that is used up first stop here. Those that do not ask for it go on.
        stop = is_open & needs & np.isfinite(at)
        reached = np.clip(np.where(np.isfinite(at), at, 0.0) * slope, low, 1.0)
        parts, is_open = np.where(stop, reached, parts), is_open & ~stop
        np.put_along_axis(closed, first[:, None], values=True, axis=-1)
    return parts


def _levels(total: F64, demand: F64, slope: F64, low: F64, parts: F64, is_open: Bool) -> F64:
    """Return the level at which each resource is used up if no other is, ``inf`` for never. Shape (M, R)."""
    # What is used of a resource is piecewise linear in the level: the part of an open queue rises from low / slope to
    # 1 / slope. Sorting these levels gives the sum at each of them, and the level is found between two.
    inverse = np.divide(1.0, slope, out=np.full_like(slope, np.inf), where=is_open)
    begins = np.where(is_open, np.where(is_open, low, 0.0) * np.where(is_open, inverse, 0.0), np.inf)
    levels = np.concatenate((begins, inverse), axis=1)
    order = levels.argsort(axis=1, kind="stable")
    levels = np.take_along_axis(levels, order, axis=1)
    rise = np.where(is_open, slope, 0.0)[..., None] * demand
    slopes = np.take_along_axis(np.concatenate((rise, -rise), axis=1), order[..., None], axis=1).cumsum(axis=1)
    steps = np.where(
        np.isfinite(levels[:, 1:]), levels[:, 1:] - np.where(np.isfinite(levels[:, :-1]), levels[:, :-1], 0), 0
    )
    base = (np.where(is_open, low, parts)[..., None] * demand).sum(axis=1)
    sums = np.concatenate((base[:, None], base[:, None] + (slopes[:, :-1] * steps[..., None]).cumsum(axis=1)), axis=1)
    last = np.maximum((sums < total[:, None]).sum(axis=1) - 1, 0)
    # Where even the whole demand is no more than the total, the resource is never used up.
    short = sums[:, -1] > total + _LEAST
    at = np.take_along_axis(slopes, last[:, None], axis=1)[:, 0]
    spare = np.maximum(total - np.take_along_axis(sums, last[:, None], axis=1)[:, 0], 0.0)
    found = np.take_along_axis(levels, last, axis=1)
    found = found + np.divide(spare, at, out=np.zeros_like(spare), where=at > 0)
    return np.asarray(np.where(short, found, np.inf))
