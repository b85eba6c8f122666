"""Exact best-k selection with a deterministic order among equals."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_BLOCK = 64


def top_k(score: F64, k: int) -> I64:
    """Positions of the k highest scores, -inf excluded; of equal scores the lower positions. In no particular order.

    Shape (n,) -> (at most k,). The k-th highest of the block maxima is a lower bound of the k-th highest score, so only
    what reaches it is looked at closely; that also keeps away from inputs on which a partition degenerates.
    """
    n = len(score)
    if k >= n:
        found: I64 = (score > -np.inf).nonzero()[0]
        return found
    best = score.max()
    if best == -np.inf:
        return np.zeros(0, dtype=np.int64)
    equal = (score == best).nonzero()[0]
    if len(equal) >= k:
        first: I64 = equal[:k]
        return first
    floor = -np.inf
    starts = _starts(n)
    if k < len(starts):
        floor = _kth(np.maximum.reduceat(score, starts), k)
    near: I64 = ((score >= floor) & (score > -np.inf)).nonzero()[0]
    if len(near) <= k:
        return near
    values = score[near]
    kth = floor if values.max() == floor else _kth(values, k)
    above = near[values > kth]
    ties = near[values == kth][: k - len(above)]
    return np.concatenate((above, ties))


def _kth(values: F64, k: int) -> float:
    """The k-th highest value."""
    return float(np.partition(values, len(values) - k)[len(values) - k])


@lru_cache(maxsize=64)
def _starts(n: int) -> I64:
    starts = np.arange(0, n, _BLOCK)
    starts.setflags(write=False)
    return starts
