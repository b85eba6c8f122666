"""start_scores: intervals that were wrong become right, by what became of earlier predictions."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.ours.start_scores import StartScores, correction_in


def dice(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


RAW = np.array([3000.0, 3300.0, 3600.0, 3900.0, 4200.0])


def predict(scores: StartScores, count: int, seed: int, *, late: float) -> None:
    """Predict ``count`` starts one after the other; they are ``late`` times as late as predicted, with some noise."""
    random = dice(seed)
    for i in range(count):
        scores.add(f"ns/{i}", i * 10_000.0, RAW)
        scores.started(f"ns/{i}", i * 10_000.0 + 3600.0 * late * float(random.lognormal(0.0, 0.5)))


@pytest.mark.parametrize("late", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_coverage_becomes_what_was_promised(late: float, seed: int) -> None:
    scores = StartScores(most=400)
    predict(scores, 700, seed, late=late)
    record = scores.record()
    assert record.known == 400
    assert 0.73 <= record.within_80 / 400 <= 0.87
    assert 0.91 <= record.within_95 / 400 <= 0.98


def test_without_a_past_the_simulated_quantiles_stay() -> None:
    assert StartScores().add("ns/a", 0.0, RAW).quantiles_s.tolist() == RAW.tolist()


def test_jobs_that_still_wait_count_as_late() -> None:
    """Half have started as predicted, half still wait: the middle is no longer what the started ones say."""
    scores, now = StartScores(), 100_000.0
    for i in range(100):
        scores.add(f"ns/{i}", 0.0, RAW)
        if i % 2:
            scores.started(f"ns/{i}", 3_000.0 + 12 * i)
    started = StartScores()
    for i in range(1, 100, 2):
        started.add(f"ns/{i}", 0.0, RAW)
        started.started(f"ns/{i}", 3_000.0 + 12 * i)
    assert scores.corrected(RAW, now)[2] > started.corrected(RAW, now)[2]


def test_a_deleted_job_counts_for_nothing() -> None:
    scores = StartScores()
    scores.add("ns/a", 0.0, RAW)
    scores.gone("ns/a")
    scores.started("ns/a", 10.0)
    assert scores.record().known == 0


def test_memory_is_bounded() -> None:
    scores = StartScores(most=50)
    for i in range(500):
        scores.add(f"ns/{i}", 0.0, RAW)
    assert len(scores._open) <= 50


def test_quantiles_ascend() -> None:
    scores = StartScores()
    random = dice(3)
    for i in range(200):
        raw = np.sort(random.uniform(0, 1e5, 5))
        found = scores.add(f"ns/{i}", float(i), raw).quantiles_s
        assert (np.diff(found) >= 0).all() and (found >= 0).all()
        scores.started(f"ns/{i}", i + float(random.uniform(0, 1e5)))


def test_corrections_go_through_the_notes_of_a_snapshot() -> None:
    scores = StartScores()
    predict(scores, 100, 1, late=3.0)
    correction = scores.correction(1e7)
    again = correction_in(correction.to_notes())
    assert again == correction
    assert again.corrected(RAW).tolist() == scores.corrected(RAW, 1e7).tolist() != RAW.tolist()


@pytest.mark.parametrize(
    "wrong",
    [{}, {"starts.known": -1.0}, {"starts.known": float("nan")}, {"starts.within_80": 0.5}, {"starts.known": 1e9}],
)
def test_notes_that_say_anything_are_no_correction(wrong: dict[str, float]) -> None:
    notes = StartScores().correction(0.0).to_notes() | wrong if wrong else {}
    assert correction_in(notes) is None


def test_moves_that_are_absurd_move_nothing() -> None:
    notes = StartScores().correction(0.0).to_notes() | {f"starts.moved.0.{i}": 1e9 for i in range(5)}
    found = correction_in(notes)
    assert found is not None and found.corrected(RAW).tolist() == RAW.tolist()
