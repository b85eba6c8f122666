"""The Kaplan-Meier estimate of durations of which some had not ended. Arrays in, arrays out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

#: Shares are products of fractions, with rounding errors: two that differ by less are equal.
_SAME = 1e-9


class Survival(Struct, frozen=True):
    """The estimated distribution of durations.

    ``share[i]`` is the part of all that last longer than ``lengths[i]``. All last at least ``lengths[0]``. Nothing is
    known beyond ``longest``. Shapes (ends,).
    """

    lengths: F64
    share: F64
    longest: float

    def quantile(self, part: float) -> float | None:
        """Return the duration within which ``part`` (0 to 1) of all end, None if too many were cut off to know it."""
        reached = self.share <= 1.0 - part + _SAME
        return float(self.lengths[reached.argmax()]) if reached.any() else None

    @property
    def mean(self) -> float:
        """The mean of the durations, each counted up to ``longest``: a lower bound if some were cut off there.

        Source: the restricted mean survival time (Irwin 1949), the area under the curve.
        """
        # The curve is a staircase, so its area is a sum of rectangles; beyond ``longest`` nothing is known.
        edges = np.concatenate([[0.0], self.lengths, [self.longest]])
        heights = np.concatenate([[1.0], self.share])
        return float((np.diff(edges) * heights).sum())


def kaplan_meier(lengths: F64, cut_off: Bool) -> Survival:
    """Return the estimate from durations, of which those in ``cut_off`` had not ended when observed. Shapes (n,).

    If nothing is cut off, quantiles and mean are those of the sample.
    Raises: ValueError if there are no durations.
    Source: Kaplan, Meier, Nonparametric Estimation from Incomplete Observations, 1958.
    """
    if not len(lengths):
        raise ValueError("no lengths to estimate from")
    ends, counts = np.unique(lengths[~cut_off], return_counts=True)
    # ``left``: what is cut off at the moment at which something else ends was still at risk of ending.
    at_risk = len(lengths) - np.searchsorted(np.sort(lengths), ends, side="left")
    share = np.asarray(np.cumprod(1.0 - counts / at_risk), dtype=np.float64)
    return Survival(ends, share, float(lengths.max()))
