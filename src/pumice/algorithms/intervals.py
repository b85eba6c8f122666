"""Confidence intervals of means of a few measurements. Arrays in, numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

#: The 97.5 % quantiles of Student's t for 1 to 10 degrees of freedom. Source: Student 1908, any table since.
_FEW = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_NORMAL = 1.959964


class Interval(NamedTuple):
    """The mean of ``size`` measurements with its 95 % confidence interval.

    ``low`` and ``high`` are infinite for a single measurement.
    """

    mean: float
    low: float
    high: float
    size: int

    @property
    def excludes_zero(self) -> bool:
        """True if the mean differs from 0 significantly, at the 5 % level."""
        # So does a constant other than 0, whose interval is a point.
        return self.low > 0 or self.high < 0


def mean_interval(values: F64, comparisons: int = 1) -> Interval:
    """Return the mean with its 95 % confidence interval, for about normal measurements. Shape (n,), n > 0.

    ``comparisons``: how many such intervals are looked at together; all of them contain their true means in 95 of 100
    cases. Source: Student's t; Bonferroni's correction.
    """
    size, mean = len(values), float(values.mean())
    # One value has no deviation, so it says nothing about how far it is from the mean.
    if size == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    # Each of several intervals is made wider, since one of many would miss its mean by chance too often.
    quantile = t_quantile(size - 1) if comparisons == 1 else t_quantile_of(size - 1, 1 - 0.05 / comparisons)
    half = quantile * float(values.std(ddof=1)) / math.sqrt(size)
    return Interval(mean, mean - half, mean + half, size)


def next_quantiles(values: F64, levels: Sequence[float]) -> F64:
    """Return quantiles of the next value, given some drawn from the same distribution. Shapes (n,) -> (levels,), n > 0.

    The next of n + 1 values has each rank with the same chance, so quantiles are interpolated between ranks as far as
    these reach: to 2.5 and 97.5 % from 39 values on, whatever the distribution. Beyond the least and the largest value
    they are those of about normal values, and hold less of heavy tails or several modes (of eight, 90 to 93 % for 95).
    Source: Weibull's plotting positions; the prediction interval of Student's t.
    """
    size, ordered = len(values), np.sort(values)
    found = np.quantile(ordered, levels, method="weibull")
    if size == 1:
        return found
    spread = float(values.std(ddof=1)) * math.sqrt(1 + 1 / size)
    for i, level in enumerate(levels):
        # Few values do not reach far: of eight, the least is above the 2.5 % quantile in four of five cases.
        if not 1 / (size + 1) <= level <= size / (size + 1):
            away = t_quantile_of(size - 1, abs(2 * level - 1)) * spread
            found[i] = float(values.mean()) + (away if level > 0.5 else -away)
    return np.maximum.accumulate(found)


def holm(differences: Sequence[F64 | None]) -> list[bool]:
    """Return for each of several comparisons whether its mean differs from 0, such that in 95 of 100 cases none says so
    wrongly. Shapes (n,); None, or a single measurement: unknown, and never significant.

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979; Student's t for each.
    """
    chances = [1.0 if values is None else _chance(values) for values in differences]
    known = sum(values is not None and len(values) > 1 for values in differences)
    found = [False] * len(differences)
    for rank, i in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        # The first that may be chance ends it: all after it are less certain still.
        if rank >= known or chances[i] > 0.05 / (known - rank):
            break
        found[i] = True
    return found


def _chance(values: F64) -> float:
    """Return how likely a mean is at least so far from 0 by chance."""
    if len(values) < 2:
        return 1.0
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    if deviation == 0:
        # A constant is 0, or no chance at all.
        return 1.0 if mean == 0 else 0.0
    return 1.0 - t_within(len(values) - 1, abs(mean) / deviation * math.sqrt(len(values)))


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, to a thousandth.

    Source: above ten degrees of freedom the expansion of Abramowitz, Stegun 26.7.5.
    """
    # The expansion is not exact enough for few degrees of freedom.
    if freedom <= len(_FEW):
        return _FEW[freedom - 1]
    z = _NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


@lru_cache(maxsize=1024)
def t_quantile_of(freedom: int, within: float) -> float:
    """Return t so that Student's t lies between -t and t with probability ``within``, to a millionth of it."""
    low, high = 0.0, 1.0
    while t_within(freedom, high) < within:
        low, high = high, 2 * high
    # By halving, as the finite sums below are exact and smooth, and no tail expansion is so for few degrees.
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_within(freedom, middle) < within else (low, middle)
    return high


def t_within(freedom: int, t: float) -> float:
    """Return the probability that Student's t with whole degrees of freedom lies between -t and t.

    Source: Abramowitz, Stegun 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    term = total = 1.0 if freedom % 2 == 0 else math.cos(angle)
    for k in range(2 if freedom % 2 == 0 else 3, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    if freedom % 2 == 0:
        return sine * total
    return 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
