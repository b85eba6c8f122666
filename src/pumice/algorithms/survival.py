"""How long things last when some of them still last: the Kaplan-Meier estimate. Arrays in, arrays out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

#: Shares are products of fractions: two that differ by less are the same.
_SAME = 1e-9


class Survival(Struct, frozen=True):
    """``share[i]`` of all last longer than ``lengths[i]``, and so up to ``lengths[i + 1]``; before ``lengths[0]`` all
    do. Nothing is known beyond ``longest``. Shapes (ends,)."""

    lengths: F64
    share: F64
    longest: float

    def quantile(self, part: float) -> float | None:
        """The shortest length that ``part`` (0 to 1) do not outlast; None where too many were cut off to tell."""
        reached = self.share <= 1.0 - part + _SAME
        return float(self.lengths[reached.argmax()]) if reached.any() else None

    @property
    def mean(self) -> float:
        """The mean of the lengths up to ``longest``: where some were cut off at it, the mean is at least that.

        Source: the restricted mean survival time (Irwin 1949), the area under the curve.
        """
        edges = np.concatenate([[0.0], self.lengths, [self.longest]])
        heights = np.concatenate([[1.0], self.share])
        return float((np.diff(edges) * heights).sum())


def kaplan_meier(lengths: F64, cut_off: Bool) -> Survival:
    """The estimate from lengths, of which those ``cut_off`` had not ended when they were looked at. Shapes (n,).

    Where nothing is cut off, quantiles and mean are those of the sample. What ends and what is cut off at one length:
    the end counts first. Raises: ValueError for no lengths.

    Source: Kaplan, Meier, Nonparametric Estimation from Incomplete Observations, 1958.
    """
    if not len(lengths):
        raise ValueError("no lengths to estimate from")
    ends, counts = np.unique(lengths[~cut_off], return_counts=True)
    at_risk = len(lengths) - np.searchsorted(np.sort(lengths), ends, side="left")
    share = np.asarray(np.cumprod(1.0 - counts / at_risk), dtype=np.float64)
    return Survival(ends, share, float(lengths.max()))
