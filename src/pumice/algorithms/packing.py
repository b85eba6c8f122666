"""Pack groups of equal items into bins of several dimensions, in one pass: fast, and not always successful."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


def places(need: F64, rooms: F64, tolerance: float = 0.0) -> I64:
    """Return how many equal items fit into each bin. ``need`` (R,), ``rooms`` (N, R) -> (N,). Items that need nothing
    fit as often as a whole number can say."""
    asks = need > 0
    if not asks.any():
        # The greatest int32 in an int64, so that sums over all bins do not overflow.
        return np.full(len(rooms), np.iinfo(np.int32).max, dtype=np.int64)
    found: I64 = np.maximum(np.floor((rooms[:, asks] + tolerance) / need[asks]).min(axis=1), 0).astype(np.int64)
    return found


def best_fit(needs: F64, counts: I64, may: Bool, rooms: F64, tolerance: float = 0.0) -> I64:
    """Return how many items of each kind go into each bin: kind by kind in the order given, the fullest bins first.

    Shapes: ``needs`` (K, R), ``counts`` (K,), ``may`` (K, N), ``rooms`` (N, R). Returns (K, N); a row adds up to less
    than its count if not all items of the kind found room.
    Source: best fit decreasing (Johnson, Near-optimal bin packing algorithms, 1973), if the largest kinds come first.
    """
    free, found = rooms.copy(), np.zeros(may.shape, dtype=np.int64)
    # Resources are added as parts of what all bins have, because bytes would outweigh cores.
    whole = np.maximum(rooms.sum(axis=0), 1e-9)
    for kind, need in enumerate(needs):
        fits = np.where(may[kind], places(need, free, tolerance), 0)
        # A bin that was the fullest is even fuller with one item more, so each is filled before the next.
        order = np.argsort((free / whole).sum(axis=1), kind="stable")
        before = np.cumsum(fits[order]) - fits[order]
        found[kind, order] = np.clip(counts[kind] - before, 0, fits[order])
        free -= found[kind][:, None] * need
    return found
