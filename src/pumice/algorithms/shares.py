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
    there = total >= EPS
    if not there.any():
        return np.zeros(allocated.shape[:-1])
    shares: F64 = (allocated[..., there] / total[there]).max(axis=-1)
    return np.maximum(shares, 0.0)


def queue_share(allocated: F64, deserved: F64) -> F64:
    """Largest part of what each queue deserves that it has. Shapes (Q, R) -> (Q,).

    Dimensions that a queue deserves less than 0.1 of are left out. Source: Volcano proportion.
    """
    there = deserved >= EPS
    ratio = np.divide(allocated, deserved, out=np.zeros_like(allocated), where=there)
    return np.asarray(np.where(there, ratio, 0.0).max(axis=-1)) if deserved.shape[-1] else np.zeros(len(deserved))


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
    Source: Volcano proportion (the remainder is fixed during a pass).
    """
    deserved = np.zeros_like(request)
    remaining = total
    # of those that still want something: row, weight, and (Q, R) most, request, guarantee, share so far
    wanting = np.arange(len(weight)), weight, np.minimum(limit, request), request, guarantee, deserved.copy()
    while len(wanting[0]):
        rows, weights, most, wanted, least, old = wanting
        all_weights = weights.sum()
        if all_weights == 0:
            break
        new = old + remaining * (weights / all_weights)[:, None]
        np.minimum(new, most, out=new)
        np.maximum(new, least, out=new)
        deserved[rows] = new
        rest = np.maximum(remaining - np.add.reduce(new - old, axis=0), 0.0)
        if not [r for r in rest.tolist() if r >= EPS] or rest.tolist() == remaining.tolist():
            break
        remaining = rest
        still = ~(at_most(wanted, new) | np.logical_and.reduce(new == old, axis=1))
        if still.all():
            wanting = rows, weights, most, wanted, least, new
        else:
            wanting = rows[still], weights[still], most[still], wanted[still], least[still], new[still]
    return deserved
