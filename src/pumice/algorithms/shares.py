"""Shares: the dominant share of an allocation, and Volcano's water filling over weighted queues. Arrays in, arrays
out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

EPS = 0.1


def dominant_share(allocated: F64, total: F64) -> F64:
    """Return the largest part of ``total`` that is allocated, over all resources. Shapes (..., R) and (R,) -> (...).

    Source: dominant resource fairness (Ghodsi et al., NSDI'11). As in Volcano, a resource with a total below 0.1 does
    not
    count.
    """
    shares = np.divide(allocated, total, out=np.zeros(allocated.shape), where=total >= EPS)
    return np.asarray(np.maximum.reduce(shares, axis=-1, initial=0.0))


def queue_share(allocated: F64, deserved: F64) -> F64:
    """Return the largest part of what each queue deserves that it holds. Shapes (Q, R) -> (Q,).

    Resources of which a queue deserves less than 0.1 do not count. Source: Volcano ``proportion`` plugin.
    """
    ratio = np.divide(allocated, deserved, out=np.zeros(allocated.shape), where=deserved >= EPS)
    return np.maximum.reduce(ratio, axis=-1) if deserved.shape[-1] else np.zeros(len(deserved))


def largest_part(held: list[float], of: list[float]) -> float:
    """Return ``queue_share`` of one queue."""
    # Lists, because arrays of a few numbers are slower. The same holds for ``all_at_most``.
    return max([h / o if o >= EPS else 0.0 for h, o in zip(held, of, strict=True)], default=0.0)


def all_at_most(a: list[float], b: list[float]) -> bool:
    """Return ``at_most`` of one row."""
    return all(left - right < EPS for left, right in zip(a, b, strict=True))


def at_most(a: F64, b: F64) -> Bool:
    """Return True where a <= b in every resource, within 0.1. Shapes (..., R) -> (...)."""
    return np.asarray((a - b < EPS).all(axis=-1))


def water_filling(total: F64, weight: F64, request: F64, guarantee: F64, limit: F64) -> F64:
    """Return what each queue deserves: the total divided by weight, at most its request and limit, at least its
    guarantee.

    Shapes: ``total`` (R,), ``weight`` (Q,), the others (Q, R); ``limit`` may be inf. Returns (Q, R).
    Source: Volcano ``proportion`` plugin, which fixes the remainder during a pass.
    """
    # With a NaN nothing is ever equal to what was left before, and the passes would not end.
    assert np.isfinite(total).all() and np.isfinite(request).all() and np.isfinite(guarantee).all(), "not finite"
    assert np.isfinite(weight).all(), "a weight is not finite"
    # Each pass divides the remainder among the queues that are not satisfied, until nothing is left or nothing changes.
    deserved, remaining, most = np.zeros_like(request), total, np.minimum(limit, request)
    # A queue that needs nothing more gets weight 0, with which its amount stays. Weights are whole numbers, so their
    # sum does not depend on the order of queues.
    weights = weight[:, None]
    while (all_weights := np.add.reduce(weights, axis=None)) != 0:
        new = remaining * (weights / all_weights)
        new += deserved
        np.minimum(new, most, out=new)
        np.maximum(new, guarantee, out=new)
        gained, deserved = new - deserved, new
        rest = np.maximum(remaining - np.add.reduce(gained, axis=0), 0.0)
        left = rest.tolist()
        if max(left, default=0.0) < EPS or left == remaining.tolist():
            break
        wants = np.logical_or.reduce(request - new >= EPS, axis=1, keepdims=True)
        wants &= np.logical_or.reduce(gained, axis=1, keepdims=True)
        remaining, weights = rest, weights * wants
    return deserved
