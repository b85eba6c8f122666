"""Sums over groups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def sums_by(group: npt.NDArray[np.int32], values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Sum of the rows of ``values`` (n, R) by ``group`` (n,), for groups 0 to ``count`` - 1. Returns (count, R).

    One pass a dimension: several times faster than ``np.add.at``, and exact for whole numbers.
    """
    group_of, found = group.astype(np.int64), np.empty((values.shape[1], count))
    for dimension, column in enumerate(np.ascontiguousarray(values.T)):
        found[dimension] = np.bincount(group_of, column, count)
    return np.ascontiguousarray(found.T)
