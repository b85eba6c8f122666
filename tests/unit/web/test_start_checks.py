"""Expected starts against those that happened."""

from __future__ import annotations

from typing import Any

from pumice.web.start_checks import compared
from tests.unit.runtime.test_job_times import ROOM, RUNS, STARTS, look, seen


def told(at: float, **starts: tuple[float, float, float | None]) -> dict[str, Any]:
    jobs = {
        job: {"middle_s": middle, "interval_80_s": [low, high], "why_not": ""}
        for job, (middle, low, high) in starts.items()
    }
    return {"at": at, "jobs": jobs}


def test_each_start_that_was_told_is_put_beside_the_one_that_happened() -> None:
    times = seen(look(0, a=ROOM, b=ROOM, c=ROOM), look(50, a=STARTS, b=ROOM, c=ROOM), look(90, a=RUNS, b=RUNS, c=ROOM))
    found = compared([told(10, a=(30, 20, 45), b=(20, 10, 30), c=(5, 1, None))], times)
    assert (found["expected"], found["started"], found["within"]) == (3, 2, 1)
    assert found["median_error_s"] == 35.0  # 10 for a, 60 for b
    assert [(row.job, row.started) for row in found["rows"]] == [("b", 90.0), ("a", 50.0), ("c", None)]


def test_what_could_not_be_told_is_left_out() -> None:
    times = seen(look(0, a=ROOM), look(50, a=RUNS))
    unknown = {"at": 0.0, "jobs": {"a": {"middle_s": None, "interval_80_s": [None, None], "why_not": "why"}}}
    assert compared([unknown, told(0, gone=(1, 1, 1))], times)["expected"] == 0


def test_a_job_that_started_before_it_was_told_is_not_counted_as_started() -> None:
    times = seen(look(0, a=RUNS), look(20, a=ROOM))
    assert compared([told(20, a=(5, 1, 9))], times)["started"] == 0
