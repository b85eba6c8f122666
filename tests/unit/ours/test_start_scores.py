"""start_scores: quantiles of simulated waits, and how often predictions were right."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.ours.start_scores import Record, StartScores, record_in, simulated_quantiles

RAW = np.array([3000.0, 3300.0, 3600.0, 3900.0, 4200.0])


def test_starts_within_the_intervals_are_counted() -> None:
    scores = StartScores()
    for name, waited_s in [("a", 3_600.0), ("b", 3_100.0), ("c", 9_000.0), ("d", 4_200.0)]:
        scores.add(f"ns/{name}", 100.0, RAW)
        scores.started(f"ns/{name}", 100.0 + waited_s)
    scores.add("ns/waits", 100.0, RAW)
    assert scores.record() == Record(known=4, within_80=1, within_95=3)
    assert scores.waiting == ["ns/waits"]


def test_each_prediction_of_a_job_is_judged_by_its_own_time() -> None:
    scores = StartScores()
    scores.add("ns/a", 0.0, RAW)
    scores.add("ns/a", 3_500.0, RAW)
    scores.started("ns/a", 3_600.0)
    scores.started("ns/a", 7_100.0)
    assert scores.record() == Record(known=2, within_80=1, within_95=1), "the first start counts"


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


def test_equal_waits_have_that_wait_as_quantiles_and_others_ascend() -> None:
    assert simulated_quantiles(np.full(8, 60.0)).tolist() == [60.0] * 5
    found = simulated_quantiles(np.array([0.0, 10.0, 3_600.0, 7_200.0, 90_000.0]))
    assert (np.diff(found) >= 0).all() and found[0] == 0.0 and 600.0 < found[2] < 7_200.0


def test_a_record_goes_through_the_notes_of_a_snapshot() -> None:
    record = Record(known=40, within_80=31, within_95=38)
    assert record_in(record.to_notes()) == record


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"starts.known": -1.0},
        {"starts.known": float("nan")},
        {"starts.known": float("inf")},
        {"starts.within_80": 0.5},
        {"starts.within_95": 41.0},
    ],
)
def test_notes_that_say_anything_are_no_record(wrong: dict[str, float]) -> None:
    notes = Record(known=40, within_80=31, within_95=38).to_notes() | wrong if wrong else {}
    assert record_in(notes) is None
