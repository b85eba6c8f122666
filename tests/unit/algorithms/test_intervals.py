"""Means with their intervals: against published tables, and against many draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pumice.algorithms import intervals
from pumice.algorithms.intervals import Interval, holm, mean_interval, next_quantiles, t_quantile, t_quantile_of


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706), (4, 2.776), (10, 2.228), (11, 2.201), (15, 2.131), (30, 2.042), (120, 1.980), (10**6, 1.960)],
)
def test_quantiles_of_the_tables(freedom: int, expected: float) -> None:
    assert t_quantile(freedom) == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(
    ("freedom", "within", "expected"),
    [(1, 0.99, 63.657), (2, 0.99, 9.925), (4, 0.99, 4.604), (5, 0.95, 2.571), (10, 0.99, 3.169), (30, 0.999, 3.646)],
)
def test_other_quantiles_of_the_tables(freedom: int, within: float, expected: float) -> None:
    assert t_quantile_of(freedom, within) == pytest.approx(expected, abs=6e-4)


def test_an_interval_among_several_is_wider() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean_interval(values, 5).high == pytest.approx(3 + 4.604 * math.sqrt(2.5) / math.sqrt(5), abs=1e-3)


def test_an_interval_by_hand() -> None:
    found = mean_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    half = 2.776 * math.sqrt(2.5) / math.sqrt(5)
    assert found == (3.0, pytest.approx(3 - half), pytest.approx(3 + half), 5)
    assert found.excludes_zero


def test_one_measurement_says_nothing_about_others() -> None:
    assert mean_interval(np.array([7.0])) == Interval(7.0, -math.inf, math.inf, 1)
    assert not mean_interval(np.array([7.0])).excludes_zero


def test_no_scatter() -> None:
    assert mean_interval(np.array([2.0, 2.0, 2.0])).excludes_zero
    assert not mean_interval(np.zeros(3)).excludes_zero


def test_ninety_five_of_a_hundred() -> None:
    rng = np.random.default_rng(5)
    found = [mean_interval(rng.normal(10.0, 3.0, 5)) for _ in range(4000)]
    assert np.mean([each.low <= 10.0 <= each.high for each in found]) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(
    ("chances", "significant"),
    [
        ((0.001, 0.02, 0.04), [True, True, True]),
        ((0.04, 0.001, 0.03), [False, True, False]),
        ((0.02, 0.03, 0.04), [False, False, False]),
    ],
)
def test_holm_goes_on_while_the_next_is_sure_enough(
    chances: tuple[float, ...], significant: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "_chance", lambda values: float(values[0]))
    assert holm([np.array([each, each]) for each in chances]) == significant


def test_what_is_unknown_or_measured_once_is_never_significant() -> None:
    same = np.array([3.0, 3.0, 3.0])
    assert holm([None, np.array([9.0]), same, np.zeros(3)]) == [False, False, True, False]


def test_without_a_difference_few_tables_name_any() -> None:
    dice = np.random.default_rng(7)
    tables = sum(any(holm(list(dice.normal(size=(25, 5))))) for _ in range(400))
    assert tables / 400 <= 0.07  # 0.05 is expected; two standard errors


@pytest.mark.parametrize("size", [4, 8, 20, 60])
@pytest.mark.parametrize("kind", ["lognormal", "exponential", "uniform"])
def test_quantiles_of_the_next_value_hold_it_as_often_as_they_say(size: int, kind: str) -> None:
    dice, levels = np.random.default_rng(size), (0.025, 0.1, 0.5, 0.9, 0.975)
    inside = []
    for _ in range(1_000):
        draws = getattr(dice, kind)(size=size + 1) + 0.1
        low_95, low_80, _, high_80, high_95 = next_quantiles(np.log(draws[:-1]), levels)
        inside.append((low_80 <= np.log(draws[-1]) <= high_80, low_95 <= np.log(draws[-1]) <= high_95))
    within_80, within_95 = np.mean(inside, axis=0)
    assert 0.76 <= within_80 <= 0.86 and 0.925 <= within_95 <= 0.975


@pytest.mark.parametrize("kind", ["two modes", "heavy tails"])
def test_from_39_values_on_no_shape_is_assumed(kind: str) -> None:
    dice = np.random.default_rng(7)

    def within_95(size: int) -> float:
        inside = []
        for _ in range(1_500):
            draws = dice.standard_t(3, size + 1)
            if kind == "two modes":
                draws = 0.02 * draws + 4.0 * (dice.random(size + 1) < 0.1)
            low, high = next_quantiles(draws[:-1], (0.025, 0.975))
            inside.append(low <= draws[-1] <= high)
        return float(np.mean(inside))

    assert within_95(8) < 0.94, "eight values reach less far than about normal ones would"
    assert 0.94 <= within_95(39) <= 0.97


def test_quantiles_of_the_next_value_ascend_and_are_exact_for_equal_ones() -> None:
    assert next_quantiles(np.array([3.0]), (0.1, 0.5, 0.9)).tolist() == [3.0, 3.0, 3.0]
    assert next_quantiles(np.full(8, 3.0), (0.1, 0.5, 0.9)).tolist() == [3.0, 3.0, 3.0]
    found = next_quantiles(np.array([1.0, 1.0, 1.0, 9.0]), (0.025, 0.1, 0.5, 0.9, 0.975))
    assert (np.diff(found) >= 0).all() and found[2] == 1.0
