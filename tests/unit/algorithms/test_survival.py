"""Waits of which some are not over: percentiles and means by Kaplan-Meier."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.algorithms.survival import kaplan_meier


def estimate(*lengths: str):  # type: ignore[no-untyped-def]
    """``6 6 6 6+``: a plus marks what was cut off."""
    found = [(float(text.rstrip("+")), text.endswith("+")) for each in lengths for text in each.split()]
    return kaplan_meier(np.array([f for f, _ in found]), np.array([c for _, c in found]))


def test_the_example_of_the_textbooks() -> None:
    """Remission under 6-MP (Freireich et al. 1963; Cox and Oakes 1984): the published estimate."""
    found = estimate("6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+")
    assert found.lengths.tolist() == [6, 7, 10, 13, 16, 22, 23]
    assert found.share == pytest.approx([0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], abs=5e-4)
    assert found.quantile(0.5) == 23.0
    assert found.quantile(0.9) is None


def test_nothing_cut_off_is_the_sample() -> None:
    rng = np.random.default_rng(3)
    lengths = rng.exponential(100.0, 999)
    found = kaplan_meier(lengths, np.zeros(999, dtype=bool))
    assert found.mean == pytest.approx(lengths.mean())
    for part in (0.01, 0.5, 0.9, 0.99, 1.0):
        assert found.quantile(part) == np.percentile(lengths, 100 * part, method="inverted_cdf")


def test_those_that_still_wait_push_the_percentiles_up() -> None:
    assert estimate("1 2 3 4").quantile(0.5) == 2.0
    assert estimate("1 2 3 4 9+ 9+").quantile(0.5) == 3.0
    assert estimate("1 2 3 4 9+ 9+").mean == pytest.approx((1 + 2 + 3 + 4 + 9 + 9) / 6)


def test_all_cut_off() -> None:
    found = estimate("5+ 7+")
    assert (found.quantile(0.5), found.mean, found.longest) == (None, 7.0, 7.0)


def test_nothing_to_estimate_from() -> None:
    with pytest.raises(ValueError, match="no lengths"):
        kaplan_meier(np.array([]), np.array([], dtype=bool))
