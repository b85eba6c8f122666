"""Sums over groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def sums_by(
    group: npt.NDArray[np.integer[Any]], values: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.float64]:
    """Return the sums of the rows of ``values`` (n, R) by ``group`` (n,), for groups 0 to ``count`` - 1.

    Shape (count, R).
    """
    # ``bincount`` is several times faster than ``np.add.at``. It adds row after row, so rounding is that of a loop.
    width = values.shape[1]
    place = group.astype(np.int64)[:, None] * width + np.arange(width)
    sums = np.bincount(place.ravel(), values.ravel(), count * width)
    # Without rows ``bincount`` returns integers.
    return sums.reshape(count, width).astype(np.float64, copy=False)
