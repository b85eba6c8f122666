"""Bounded series: coarser with time, but their means are those of every value that was set."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.sim.measures.series import HeatMap, StepSeries


def test_a_step_series_holds_its_value_until_the_next() -> None:
    series = StepSeries(10.0)
    series.set(12, 4)
    series.set(12, 5)
    series.set(16, 5)
    series.set(20, 1)
    times, values = series.arrays()
    assert (times.tolist(), values.tolist()) == ([10, 12, 20], [0, 5, 1])
    assert series.area(30) == 5 * 8 + 1 * 10
    assert series.mean(30) == 2.5
    assert series.peak == 5


@pytest.mark.parametrize("seed", range(5))
def test_thinning_keeps_the_integral_and_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    series = StepSeries(0.0, points_max=16)
    changes = np.cumsum(rng.integers(1, 9, 500)).astype(float)
    values = rng.integers(0, 50, 500).astype(float)
    for time, value in zip(changes.tolist(), values.tolist(), strict=True):
        series.set(time, value)
        assert len(series) <= 16
    end = float(changes[-1]) + 10
    exact = float((values * np.diff(np.append(changes, end))).sum())
    times, kept = series.arrays()
    assert series.area(end) == pytest.approx(exact)
    assert float((kept * np.diff(np.append(times, end))).sum()) == pytest.approx(exact)
    assert kept[-1] == values[-1]
    assert np.all(np.diff(times) > 0)


@pytest.mark.parametrize("seed", range(5))
def test_a_heat_map_holds_the_means_of_each_bucket(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heat = HeatMap(2, 0.0, width_s=1.0, buckets=8)
    times = np.sort(rng.uniform(0, 100, 60))
    value = np.zeros((2, 1001))
    fine = np.arange(1001) / 10
    for time in times.tolist():
        row, delta = int(rng.integers(2)), float(rng.normal())
        time = round(time, 1)
        heat.add(time, [(row, delta)])
        value[row, np.round(fine, 1) >= time] += delta
    grid = heat.grid(100.0)
    assert heat.width_s == 16.0
    assert grid.shape == (2, 7)
    for bucket in range(7):
        inside = slice(bucket * 160, min((bucket + 1) * 160, 1000))
        assert grid[:, bucket] == pytest.approx(value[:, inside].mean(axis=1))


def test_an_empty_heat_map_has_no_columns() -> None:
    assert HeatMap(3, 5.0).grid(5.0).shape == (3, 0)
