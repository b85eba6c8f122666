"""Jobs that come later in a simulation: as they came within the same few days of the past."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pumice.model.workloads.past_job import PastJob
from pumice.ours.predictor import Predictor
from pumice.sim.starts.samples import BLOCK_S, later_jobs
from pumice.sim.workloads.work import SimJob
from pumice.testing.build import resource

HOUR, DAY = 3_600.0, 86_400.0


def hourly(hours: int) -> list[PastJob]:
    """One job an hour, whose user is the hour."""
    asks = resource(1, "1Gi")
    return [PastJob(f"ns/p{i}", "default", str(i), "p", 1, asks, HOUR, i * HOUR, HOUR) for i in range(hours)]


def drawn(past: list[PastJob], now: float, until_s: float, seed: int) -> list[tuple[int, float]]:
    """Return the hour at which each job came before, and when it comes again."""
    dice = np.random.Generator(np.random.PCG64([seed, 0]))
    found = later_jobs(past, now, until_s, Predictor(), dice)
    return [(int(work.user), work.arrival_s) for work in found if isinstance(work, SimJob)]


@pytest.mark.parametrize("seed", range(8))
def test_all_jobs_of_a_sample_come_from_within_the_same_days(seed: int) -> None:
    hours = [hour for hour, _ in drawn(hourly(14 * 24), 14 * DAY, 2 * DAY, seed)]
    assert max(hours) - min(hours) <= 72 and len(set(hours)) > 24


def test_samples_come_from_the_whole_past() -> None:
    hours = [hour for seed in range(60) for hour, _ in drawn(hourly(14 * 24), 14 * DAY, DAY, seed)]
    assert min(hours) < 24 and max(hours) > 13 * 24 and len({hour // 24 for hour in hours}) == 14


@pytest.mark.parametrize("hours", [7, 30, 14 * 24])
def test_as_many_jobs_come_as_came_before_in_their_order_within_a_block(hours: int) -> None:
    found = drawn(hourly(hours), hours * HOUR, 2 * DAY, 3)
    assert len(found) == pytest.approx(48, abs=8)
    for (hour, at), (after, then) in pairwise(found):
        if at // BLOCK_S == then // BLOCK_S:
            assert after - hour == 1
            assert then - at == pytest.approx(HOUR)


def test_of_a_past_shorter_than_a_block_nothing_is_drawn() -> None:
    assert drawn(hourly(5), 5 * HOUR, DAY, 0) == []
