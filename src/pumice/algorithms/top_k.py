"""Exact selection of the k best, deterministic among equals."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_BLOCK = 64


def top_k(score: F64, k: int) -> I64:
    """Return the positions of the k highest scores, except for -inf, in no particular order.

    Among equal scores lower positions are chosen. Shapes (n,) -> (at most k,).
    """
    n = len(score)
    if k >= n:
        found: I64 = (score > -np.inf).nonzero()[0]
        return found
    # Far fewer candidates than nodes are wanted as a rule, so nothing is sorted as a whole.
    best = score.max()
    if best == -np.inf:
        return np.zeros(0, dtype=np.int64)
    equal = (score == best).nonzero()[0]
    # Empty clusters of equal nodes: many share the best score, and on so many equal values a partition is slow.
    if len(equal) >= k:
        first: I64 = equal[:k]
        return first
    # The k-th highest of the maxima of blocks is a lower bound of the k-th highest score: only what reaches it has to
    # be sorted out, which is little more than k.
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
    # Ties are cut off by row, so that the same cluster always gives the same nodes.
    ties = near[values == kth][: k - len(above)]
    return np.concatenate((above, ties))


def _kth(values: F64, k: int) -> float:
    """Return the k-th highest value."""
    return float(np.partition(values, len(values) - k)[len(values) - k])


@lru_cache(maxsize=64)
def _starts(n: int) -> I64:
    # Kept by length: a scheduler asks for the same number of nodes again and again.
    starts = np.arange(0, n, _BLOCK)
    # Read-only, because all callers of a length are handed this one array.
    starts.setflags(write=False)
    return starts
