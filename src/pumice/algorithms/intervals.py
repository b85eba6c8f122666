"""Confidence intervals of means of a few measurements. Arrays in, numbers out."""

from __future__ import annotations

import math
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


def mean_interval(values: F64) -> Interval:
    """Return the mean with its 95 % confidence interval, for about normal measurements. Shape (n,), n > 0.

    Source: Student's t.
    """
    size, mean = len(values), float(values.mean())
    if size == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    half = t_quantile(size - 1) * float(values.std(ddof=1)) / math.sqrt(size)
    return Interval(mean, mean - half, mean + half, size)


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
