"""Exact best-k selection with a deterministic order among equals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def top_k(score: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.int64]:
    """Positions of the k highest scores, -inf excluded; of equal scores the lower positions are taken. In no particular order.

    Shape (n,) -> (at most k,).
    """
    n = len(score)
    if k >= n:
        return np.flatnonzero(score > -np.inf)
    kth = np.partition(score, n - k)[n - k]
    if kth == -np.inf:
        return np.flatnonzero(score > -np.inf)
    above = np.flatnonzero(score > kth)
    ties = np.flatnonzero(score == kth)[: k - len(above)]
    return np.concatenate((above, ties))
