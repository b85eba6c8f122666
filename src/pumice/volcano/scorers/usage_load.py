"""Compute measured and expected load of nodes, as arithmetic on arrays. Source: Volcano usage plugin."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import F64


def risk_factor(load: F64, threshold: float, factor: float) -> F64:
    """Return the factor of estimates on nodes with this load (0 to 1). Shape of ``load``."""
    return np.where(load >= threshold, max(factor, 1.0), 1.0)


def estimated_use(request: F64, limit: F64, request_ratio: float, burst_ratio: float, factor: F64 | float = 1.0) -> F64:
    """Return the expected usage of pods with this request and limit, in their units."""
    # A missing limit, or one below the request, counts as the request.
    most = np.where((limit <= 0) | (limit < request), request, limit)
    found = (request * request_ratio + (limit - request) * burst_ratio * (limit > request)) * factor
    # A pod cannot use more than its limit, whatever the risk factor makes of it.
    return np.clip(found, 0.0, most)


def best_effort_use(amount: F64 | float, factor: F64 | float) -> F64:
    """Return the expected usage of pods without requests."""
    return np.maximum(np.asarray(amount) * factor, 0.0)


def composite(percent: F64, coming: F64, capacity: F64) -> F64:
    """Return the share in use of each resource, 0 to 1, of what was measured (percent) and what is coming; 0 if a node
    has none."""
    # Divided by 1 where a node has none, to avoid a warning; the result is discarded below.
    there = np.where(capacity > 0, capacity, 1.0)
    return np.where(capacity > 0, np.clip((percent * capacity / 100.0 + coming) / there, 0.0, 1.0), 0.0)


def weighted(shares: F64, weights: F64) -> F64:
    """Return the weighted mean of shares (…, 2), 0 if no weight is set. Shape (…,)."""
    total = weights.sum()
    found: F64 = shares @ weights / total if total else np.zeros(shares.shape[:-1])
    return found


def idleness_score(shares: F64, weights: F64, weight: float) -> F64:
    """Return a score that is higher for lower load, 0 to 100 times ``weight``. Shapes (…, 2) -> (…,)."""
    return weighted(1.0 - shares, weights) * 100.0 * weight
