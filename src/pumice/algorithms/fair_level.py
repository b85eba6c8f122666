"""Water filling in closed form: max-min fair shares by weight, with bounds. Arrays in, arrays out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


def fair_shares(total: F64, weight: F64, least: F64, most: F64) -> F64:
    """Return the max-min fair share of each of Q by weight, between ``least`` and ``most``.

    Each share is ``weight × level`` cut to [least, most], with one level for each resource, at which the shares add up
    to ``total``. If ``most`` fits for all, all get it; if not even ``least`` fits, all get that.
    Shapes: ``total`` (R,), ``weight`` (Q,) above 0, ``least`` <= ``most`` (Q, R). Returns (Q, R).
    Source: Bertsekas, Gallager, Data Networks §6.5 (max-min flow control).
    """
    if not len(weight):
        return np.zeros_like(most)
    weights = weight[:, None]
    columns = np.arange(len(total))
    # The sum of shares is piecewise linear in the level: a share begins to grow at least / weight, with slope weight,
    # and stops at most / weight. Sorting these levels gives the sum at each of them, and the level is found between
    # two.
    levels = np.concatenate((least / weights, most / weights))
    order = levels.argsort(axis=0, kind="stable")
    levels = levels[order, columns]
    slopes = np.concatenate((weight, -weight))[order].cumsum(axis=0)
    sums = np.empty_like(levels)
    sums[0] = least.sum(axis=0)
    sums[1:] = sums[0] + (slopes[:-1] * (levels[1:] - levels[:-1])).cumsum(axis=0)
    last = np.maximum((sums < total).sum(axis=0) - 1, 0)  # the last level at which the sum is below the total
    spare = np.maximum(total - sums[last, columns], 0.0)
    # Slope 0: all have ``most``, and what is left cannot be given to anything.
    slope = slopes[last, columns]
    level = levels[last, columns] + np.divide(spare, slope, out=np.zeros_like(spare), where=slope > 0)
    shares: F64 = np.minimum(np.maximum(weights * level, least), most)
    return shares
