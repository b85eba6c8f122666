"""Water filling to its end in one step: the level at which weighted vessels hold all that is poured. Arrays in, arrays
out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


def fair_shares(total: F64, weight: F64, least: F64, most: F64) -> F64:
    """What each of Q gets of ``total``: by weight, nobody more than ``most`` or less than ``least``, and nothing left
    while anybody wants more.

    Each amount is ``weight × level`` cut to [least, most], with one level a dimension at which the sum is the total:
    max-min fairness by weight. Where all can have ``most`` they do; where not even ``least`` fits, all have that.
    Shapes: ``total`` (R,), ``weight`` (Q,) above 0, ``least`` <= ``most`` (Q, R). Returns (Q, R).
    Source: Bertsekas, Gallager, Data Networks §6.5 (max-min flow control).
    """
    if not len(weight):
        return np.zeros_like(most)
    weights = weight[:, None]
    columns = np.arange(len(total))
    # As the level rises past least / weight, a vessel fills by its weight; at most / weight it is full.
    levels = np.concatenate((least / weights, most / weights))
    order = levels.argsort(axis=0, kind="stable")
    levels = levels[order, columns]
    slopes = np.concatenate((weight, -weight))[order].cumsum(axis=0)
    held = np.empty_like(levels)  # at each level
    held[0] = least.sum(axis=0)
    held[1:] = held[0] + (slopes[:-1] * (levels[1:] - levels[:-1])).cumsum(axis=0)
    last = np.maximum((held < total).sum(axis=0) - 1, 0)  # the last level at which there is still some to pour
    spare = np.maximum(total - held[last, columns], 0.0)
    slope = slopes[last, columns]
    level = levels[last, columns] + np.divide(spare, slope, out=np.zeros_like(spare), where=slope > 0)
    shares: F64 = np.minimum(np.maximum(weights * level, least), most)
    return shares
