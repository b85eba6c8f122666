"""Sums over groups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def sums_by(group: npt.NDArray[np.int32], values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Sum of the rows of ``values`` (n, R) by ``group`` (n,), for groups 0 to ``count`` - 1. Returns (count, R).

    One count over all cells: several times faster than ``np.add.at``, and exact for whole numbers.
    """
    if not len(group):
        return np.zeros((count, values.shape[1]))  # where bincount would count in integers
    width = values.shape[1]
    cells = group[:, None] * np.int64(width) + np.arange(width)
    return (
        np.bincount(cells.ravel(), values.ravel(), count * width).reshape(count, width).astype(np.float64, copy=False)
    )
