"""How a quantity is distributed over jobs, some of which have not ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from msgspec import Struct

from pumice.algorithms.groups import distinct
from pumice.algorithms.survival import kaplan_meier

PERCENTILES = (50, 90, 99)


class Spread(Struct, frozen=True):
    """How a quantity is distributed over ``count`` jobs, of which ``censored`` had not ended.

    Percentiles are Kaplan-Meier estimates, None if too few jobs had ended for one; ``mean`` is a lower bound if some
    are censored; ``max`` is the largest value seen, ended or not. Units: seconds, or none for a slowdown.
    """

    count: int
    censored: int
    mean: float
    p50: float | None
    p90: float | None
    p99: float | None
    max: float

    def text(self, percentile: float | None, formatted: Callable[[float], str]) -> str:
        """Return a percentile as text. If too few jobs had ended for an estimate, it is more than the largest value
        seen."""
        return f"> {formatted(self.max)}" if percentile is None else formatted(percentile)

    def to_json(self) -> dict[str, float | None]:
        named = {"mean": self.mean, "p50": self.p50, "p90": self.p90, "p99": self.p99, "max": self.max}
        rounded = {name: None if value is None else round(value, 3) for name, value in named.items()}
        return {"count": self.count, "censored": self.censored, **rounded}


def spread(values: Iterable[float], censored: Iterable[float] = ()) -> Spread | None:
    """Return the distribution of values and of ``censored`` ones, which are lower bounds. None if there are neither."""
    ended, cut_off = (np.fromiter(found, dtype=np.float64) for found in (values, censored))
    everything = np.concatenate([ended, cut_off])
    if not len(everything):
        return None
    estimate = kaplan_meier(everything, np.arange(len(everything)) >= len(ended))
    p50, p90, p99 = (estimate.quantile(percentile / 100) for percentile in PERCENTILES)
    return Spread(len(everything), len(cut_off), estimate.mean, p50, p90, p99, estimate.longest)


def outlasting(values: Iterable[float], censored: Iterable[float], points: int = 240) -> list[list[float]]:
    """Return (length, share of all that last longer) at no more than ``points`` places of the Kaplan-Meier curve; empty
    without values."""
    ended, cut_off = (np.fromiter(found, dtype=np.float64) for found in (values, censored))
    everything = np.concatenate([ended, cut_off])
    if not len(ended):
        return []
    found = kaplan_meier(everything, np.arange(len(everything)) >= len(ended))
    chosen = distinct(np.linspace(0, len(found.lengths) - 1, points).astype(int))
    return [[float(found.lengths[i]), float(found.share[i])] for i in chosen.tolist()]
