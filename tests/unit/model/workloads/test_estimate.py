"""Estimates of run time: where they are read from, their bounds, and when an overdue job is expected to end."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.pod import Pod, PodSpec
from pumice.model.quantity import DurationError, parse_days
from pumice.model.resources import EMPTY
from pumice.model.workloads.estimate import (
    ESTIMATE_ANNOTATION,
    ESTIMATE_MAX_S,
    KUEUE_SECONDS,
    SLINKY_MINUTES,
    estimate_problems,
    estimate_text,
    expected_end_s,
    job_estimate_s,
)
from pumice.model.workloads.podgroup import PodGroup

GROUP = PodGroup("ns", "g", "g")
POD = Pod("ns", "p", "p", PodSpec(EMPTY))
DAY = 86_400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2d", 2 * DAY), ("1d12h", 1.5 * DAY), ("1h30m", 5400.0), ("90s", 90.0), ("0d", 0.0), ("1d0", DAY)],
)
def test_durations_may_begin_with_days(text: str, seconds: float) -> None:
    assert parse_days(text) == seconds


@pytest.mark.parametrize("text", ["2 d", "d", "1.5d", "1d2d", "-2d", "1d-3h", "1h2d", "9999999d", ""])
def test_other_forms_of_days_are_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_days(text)


@pytest.mark.parametrize(
    ("group", "pods", "seconds"),
    [
        ({}, [{}], 0.0),
        ({"annotations": {ESTIMATE_ANNOTATION: "2h", KUEUE_SECONDS: "60"}}, [{"active_deadline_s": 60.0}], 7200.0),
        ({"labels": {KUEUE_SECONDS: "600"}}, [{"active_deadline_s": 60.0}, {"active_deadline_s": 90.0}], 90.0),
        ({"labels": {KUEUE_SECONDS: "600"}, "annotations": {SLINKY_MINUTES: "5"}}, [{}], 600.0),
        ({"annotations": {SLINKY_MINUTES: "5"}}, [{}], 300.0),
        ({}, [{"annotations": {ESTIMATE_ANNOTATION: "1m"}}, {"annotations": {ESTIMATE_ANNOTATION: "2m"}}], 120.0),
        ({"annotations": {ESTIMATE_ANNOTATION: "soon"}}, [{"active_deadline_s": 60.0}], 60.0),
        ({}, [{"active_deadline_s": 2.0**31}], ESTIMATE_MAX_S),
    ],
)
def test_the_first_readable_source_counts(group: dict[str, Any], pods: list[dict[str, Any]], seconds: float) -> None:
    assert job_estimate_s(replace(GROUP, **group), [replace(POD, **each) for each in pods]) == seconds


@pytest.mark.parametrize("text", ["0s", "-1h", "400d", "1e9s", "NaN", "", "9" * 70 + "s"])
def test_an_unusable_estimate_is_named_and_counts_as_none(text: str) -> None:
    group = replace(GROUP, annotations={ESTIMATE_ANNOTATION: text})
    assert job_estimate_s(group, []) == 0.0
    (problem,) = estimate_problems(group)
    assert problem.startswith(f"{ESTIMATE_ANNOTATION}: ") and problem.endswith("(ignored)")


def test_a_label_with_a_bad_number_is_named() -> None:
    (problem,) = estimate_problems(replace(GROUP, labels={KUEUE_SECONDS: "1.5"}))
    assert problem == f"{KUEUE_SECONDS}: found '1.5', wanted a whole number of seconds (ignored)"


def test_seconds_are_written_within_the_bounds() -> None:
    assert [estimate_text(each) for each in (0.0, 90.4, 1e12)] == ["1s", "90s", f"{ESTIMATE_MAX_S:.0f}s"]


@pytest.mark.parametrize(
    ("now", "end"),
    [(50.0, 100.0), (100.0, 160.0), (110.0, 160.0), (160.0, 220.0), (500.0, 580.0), (1e9, 100 + 60 * 2**24)],
)
def test_the_end_of_an_overdue_job_is_expected_in_steps_that_double(now: float, end: float) -> None:
    assert expected_end_s(40.0, 60.0, now) == end
