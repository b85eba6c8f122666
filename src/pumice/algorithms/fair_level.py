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
    # As the level rises past least / weight, a vessel fills by its weight; at most / weight it is full.
    levels = np.concatenate([least, most]) / np.concatenate([weights, weights])
    order = levels.argsort(axis=0, kind="stable")
    levels = np.take_along_axis(levels, order, axis=0)
    slopes = np.concatenate([weight, -weight])[order].cumsum(axis=0)
    held = least.sum(axis=0) + np.concatenate(
        [np.zeros((1, len(total))), (slopes[:-1] * np.diff(levels, axis=0)).cumsum(axis=0)]
    )
    last = np.maximum((held < total).sum(axis=0) - 1, 0)[None]  # the last level at which there is still some to pour
    at, slope = (np.take_along_axis(found, last, axis=0)[0] for found in (levels, slopes))
    spare = np.maximum(total - np.take_along_axis(held, last, axis=0)[0], 0.0)
    level = at + np.divide(spare, slope, out=np.zeros_like(spare), where=slope > 0)
    shares: F64 = np.minimum(np.maximum(weights * level, least), most)
    return shares
