"""Prices: what is scarce costs, gaps are cut as is best; and what comes in bounds neither work nor answers."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.algorithms.fragments import Ask, Room, Shape
from pumice.algorithms.scarcity import PARTS, Demand, gap_prices, model_prices, prices_of


def demand(*rows: tuple[float, float, float, tuple[bool, bool]]) -> Demand:
    cores, gpus, pods, may = zip(*rows, strict=True)
    return Demand(np.array(cores), np.array(gpus), np.array(pods), np.array(may))


def test_a_model_that_only_some_may_use_and_all_want_costs() -> None:
    """100 GPUs of each model. 80 pods may use the first only, 120 any: who may choose should leave the first alone."""
    plenty = demand((1000.0, 1000.0, 20.0, (True, False)), (1000.0, 1000.0, 180.0, (True, True)))
    scarce = demand((1000.0, 1000.0, 150.0, (True, False)), (1000.0, 1000.0, 50.0, (True, True)))
    cores, gpus = np.array([1e9, 1e9]), np.array([100_000.0, 100_000.0])
    even, _ = model_prices(plenty, cores, gpus)
    uneven, _ = model_prices(scarce, cores, gpus)
    assert abs(even[0] - even[1]) < 0.1
    assert uneven[0] > 0.9 and uneven[1] < 0.1


def test_cores_cost_where_they_run_out_first() -> None:
    asks = demand((20_000.0, 1000.0, 100.0, (True, True)))
    _, cores = model_prices(asks, np.array([500_000.0, 5_000_000.0]), np.array([50_000.0, 50_000.0]))
    assert cores[0] > 10 * cores[1]


def test_gaps_are_worth_what_fits_them_best() -> None:
    """Devices are best cut into 60 and 40, for there are as many of each: 50 and 40 leave 10 that nobody can use."""
    pods = np.zeros(PARTS + 1)
    pods[[60, 40, 50]] = (100.0, 100.0, 20.0)
    prices = gap_prices(pods, 100.0)
    free = np.array([1000.0, 600.0, 500.0, 400.0, 0.0])
    assert prices.loss(free, 600.0)[:2] == pytest.approx([0.0, 0.0], abs=60.0)
    assert prices.gaps[100] == pytest.approx(1000.0, abs=60.0)
    assert (np.diff(prices.gaps) >= 0).all() and (prices.loss(free, 500.0) >= 0).all()
    assert prices.gaps[39] == 0.0, "nothing fits"


def test_a_gain_is_lower_on_scarce_models_and_in_gaps_that_are_cut_badly() -> None:
    shapes = [
        Shape(Ask(1000.0, 1, 600.0), (True, True), 40.0),
        Shape(Ask(1000.0, 1, 400.0), (True, True), 40.0),
        Shape(Ask(1000.0, 1, 1000.0), (True, False), 100.0),
    ]
    prices = prices_of(shapes, np.array([1e6, 1e6]), np.array([60_000.0, 60_000.0]))
    room = Room(np.full(2, 1e5), np.array([[1000.0, 400.0], [1000.0, 600.0]]), np.array([0, 1]))
    whole = prices.gain(room, Ask(1000.0, 1, 1000.0), np.zeros((2, 1)))
    assert whole[0, 0] < whole[1, 0]
    part = prices.gain(room, Ask(1000.0, 1, 400.0), np.zeros((2, 2)))
    assert part.shape == (2, 2) and part[0, 1] >= part[0, 0]


def test_nothing_asked_for_and_nothing_there_have_prices_too() -> None:
    none = prices_of([], np.zeros(1), np.zeros(1))
    assert np.isfinite(none.gpus).all() and np.isfinite(none.gaps.gaps).all()
    cores_only = prices_of([Shape(Ask(1000.0, 0, 0.0), (True,), 5.0)], np.array([4000.0]), np.array([0.0]))
    assert np.isfinite(cores_only.cores).all()
    assert gap_prices(np.zeros(PARTS + 1), -5.0).gaps.tolist() == [0.0] * (PARTS + 1)
