"""predictor: quantiles of run times from ended jobs, with an age, censored ones, and bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.model.resources import EMPTY
from pumice.model.workloads.estimate import ESTIMATE_MAX_S
from pumice.model.workloads.past_job import PastJob, stem_of
from pumice.ours.predictor import Levels, Predictor, drawn_by_age


def job(ran_s: float | None, *, user: str = "u", name: str = "train-", pods: int = 4, estimate_s: float = 0) -> PastJob:
    return PastJob("ns/j", "q", user, name, pods, EMPTY, estimate_s, 0.0, ran_s)


def taught(*jobs: PastJob) -> Predictor:
    found = Predictor()
    for each in jobs:
        found.learn(each)
    return found


def test_quantiles_are_those_of_similar_jobs() -> None:
    found = taught(*(job(float(i)) for i in range(10, 110, 10)), *(job(9_000.0, user="v") for _ in range(10)))
    assert found.quantiles(job(None), (0.1, 0.5, 1.0)).tolist() == [10, 50, 100]
    assert found.quantiles(job(None, user="v"), (0.5,)).tolist() == [9_000]


def test_without_enough_of_the_same_script_those_of_the_user_count() -> None:
    found = taught(*(job(100.0, name="a") for _ in range(3)), *(job(7.0, name="b") for _ in range(20)))
    assert found.quantiles(job(None, name="a"), (0.5,)).tolist() == [7]


def test_with_an_estimate_its_ratio_is_learnt() -> None:
    found = taught(*(job(50.0, estimate_s=100.0) for _ in range(8)))
    assert found.quantiles(job(None, estimate_s=1_000.0), (0.5,)).tolist() == [500]
    assert np.isnan(found.quantiles(job(None), (0.5,))).all(), "run times without an estimate are another thing"


@pytest.mark.parametrize(("age_s", "wanted"), [(0.0, 50), (15.0, 60), (25.0, 60)])
def test_a_job_that_runs_ends_as_those_that_ran_longer(age_s: float, wanted: float) -> None:
    found = taught(*(job(float(i)) for i in range(10, 110, 10)))
    assert found.quantiles(job(None), (0.5,), age_s).tolist() == [wanted]


@pytest.mark.parametrize("age_s", [35.0, 1_000.0])
def test_an_age_beyond_almost_all_that_ended_says_nothing(age_s: float) -> None:
    """Nor do other jobs of the user, which are more."""
    found = taught(*(job(float(i)) for i in range(10, 110, 10)), *(job(40.0, name="b") for _ in range(20)))
    assert np.isnan(found.quantiles(job(None), (0.5,), age_s)).all()


def test_jobs_that_run_beyond_all_that_ended_make_a_tail() -> None:
    """Ten ended within 100 s and ten have been running for 1,000 s: half of all will have run for longer than that."""
    found = taught(*(job(float(i)) for i in range(10, 110, 10)))
    found.watch([(job(None), 1_000.0)] * 10)
    assert found.quantiles(job(None), (0.25, 0.5), 0.0).tolist() == [50, 100]
    longest = found.quantiles(job(None), (0.51, 0.75, 0.95), 0.0)
    assert longest[0] > 1_000 and longest[1] == pytest.approx(2_000, rel=0.1) and 8_000 < longest[2] < 13_000


def test_jobs_that_still_run_make_long_run_times_likelier() -> None:
    found = taught(*(job(float(i)) for i in range(10, 110, 10)))
    found.watch([(job(None), 55.0)] * 10)
    assert found.quantiles(job(None), (0.5,)).tolist() == [70], "ten more are beyond 55 s, as are five that ended"
    found.watch([])
    assert found.quantiles(job(None), (0.5,)).tolist() == [50]


def test_memory_is_bounded_and_old_jobs_are_forgotten() -> None:
    found = Predictor(most=100)
    for i in range(1_000):
        found.learn(job(float(i), user=f"u{i}", name=f"n{i}", pods=i))
    assert len(found) == 100
    assert sum(map(len, found._values.values())) <= 100 * 7
    assert found.quantiles(job(None, user=""), (0.0,)).tolist() == [900]


def test_draws_follow_their_dice() -> None:
    found = taught(*(job(float(i)) for i in range(10, 110, 10)))
    first, again = (
        [found.draw(job(None), Levels(np.random.Generator(np.random.PCG64(seed)))) for seed in range(20)]
        for _ in range(2)
    )
    assert first == again and len(set(first)) > 5
    assert Predictor().draw(job(None), Levels(np.random.Generator(np.random.PCG64(0)))) is None


def test_levels_are_spread_evenly_and_correlated_among_similar_jobs_alone() -> None:
    dice = np.random.Generator(np.random.PCG64(7))
    kinds = (job(None), job(None), job(None, name="other-"))
    drawn = np.array([[levels.of(each) for each in kinds] for levels in (Levels(dice) for _ in range(4_000))])
    assert np.histogram(drawn, 10, (0.0, 1.0))[0] / drawn.size == pytest.approx(0.1, abs=0.01)
    similar, other = np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1], np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1]
    assert 0.3 < similar < 0.5 and abs(other) < 0.05


def test_the_sum_of_run_times_of_a_batch_is_less_certain_than_that_of_jobs_apart() -> None:
    names = [f"n{i}-" for i in range(10)]
    found = taught(*(job(float(i), name=name) for i in range(10, 110, 10) for name in ("batch-", *names)))
    dice = np.random.Generator(np.random.PCG64(3))

    def spread(jobs: list[PastJob]) -> float:
        sums = [sum(found.draw(each, levels) or 0.0 for each in jobs) for levels in (Levels(dice) for _ in range(200))]
        return float(np.std(sums))

    assert spread([job(None, name="batch-")] * 10) > 1.5 * spread([job(None, name=name) for name in names])


@pytest.mark.parametrize(("name", "stem"), [("train-17", "train-"), ("x-0f3a9b2c1d-7", "x--"), ("plain", "plain")])
def test_runs_of_one_script_have_one_stem(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_of_jobs_of_an_age_half_run_for_twice_as_long() -> None:
    dice = np.random.Generator(np.random.PCG64(1))
    found = np.array([drawn_by_age(100.0, dice) for _ in range(4_000)])
    assert found.min() >= 100.0 and np.isfinite(found).all()
    for times in (2.0, 4.0, 10.0):
        assert np.mean(found >= 100.0 * times) == pytest.approx(1 / times, abs=0.02)
    assert all(1e9 < drawn_by_age(1e9, dice) <= 1e9 + ESTIMATE_MAX_S for _ in range(100))
