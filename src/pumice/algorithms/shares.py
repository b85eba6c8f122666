"""Shares: dominant share of allocations, and water filling of deserved resources over weighted queues. Arrays in,
arrays out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

EPS = 0.1


def dominant_share(allocated: F64, total: F64) -> F64:
    """Largest part of ``total`` taken, over the dimensions there are. Shapes (..., R) and (R,) -> (...).

    Source: dominant resource fairness (Ghodsi et al., NSDI'11); dimensions below 0.1 are not there, as in Volcano.
    """
    shares = np.divide(allocated, total, out=np.zeros(allocated.shape), where=total >= EPS)
    return np.asarray(np.maximum.reduce(shares, axis=-1, initial=0.0))


def queue_share(allocated: F64, deserved: F64) -> F64:
    """Largest part of what each queue deserves that it has. Shapes (Q, R) -> (Q,).

    Dimensions that a queue deserves less than 0.1 of are left out. Source: Volcano proportion.
    """
    ratio = np.divide(allocated, deserved, out=np.zeros(allocated.shape), where=deserved >= EPS)
    return np.maximum.reduce(ratio, axis=-1) if deserved.shape[-1] else np.zeros(len(deserved))


def largest_part(held: list[float], of: list[float]) -> float:
    """``queue_share`` of one queue: a few numbers are faster without arrays."""
    return max([h / o if o >= EPS else 0.0 for h, o in zip(held, of, strict=True)], default=0.0)


def all_at_most(a: list[float], b: list[float]) -> bool:
    """``at_most`` of one row, likewise."""
    return all(left - right < EPS for left, right in zip(a, b, strict=True))


def at_most(a: F64, b: F64) -> Bool:
    """a <= b in every dimension, within 0.1. Shapes (..., R) -> (...)."""
    return np.asarray((a - b < EPS).all(axis=-1))


def water_filling(total: F64, weight: F64, request: F64, guarantee: F64, limit: F64) -> F64:
    """What each queue deserves: the total shared by weight, nobody more than it asks or may have, nobody less than its
    guarantee.

    Shapes: ``total`` (R,), ``weight`` (Q,), the others (Q, R); ``limit`` may be inf. Returns (Q, R).
    Each pass hands the remainder to the queues that still want something; ends when nothing is left or nothing moves.
    Weights are whole numbers, and so add up to the same in any order. Source: Volcano proportion (the remainder is
    fixed during a pass).
    """
    deserved, remaining, most = np.zeros_like(request), total, np.minimum(limit, request)
    weights = weight[:, None]  # of those that want nothing more: 0, with which they stay where they are
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
