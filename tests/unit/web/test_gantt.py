"""Jobs on a line of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.answers.seen import HiddenNames
from pumice.runtime.job_states import STATES
from pumice.runtime.job_times import JobStates, JobTimes
from pumice.web.expected_starts import ExpectedStarts, JobStart, SeenStarts
from pumice.web.gantt import KIND_MAX, Sees, gantt
from pumice.web.jobs_query import JobsIndex, JobsQuery, QueryError
from pumice.web.summary import CycleSummary
from tests.unit.web.worlds import expected, summary


@pytest.fixture(scope="module")
def shown() -> CycleSummary:
    return summary()


def shown_of(
    found: CycleSummary,
    times: JobTimes | None = None,
    query: JobsQuery | None = None,
    sees: Sees = lambda _: True,
    starts: SeenStarts | None = None,
) -> dict[str, Any]:
    return gantt(JobsIndex(found), times or JobTimes(), query or JobsQuery(), sees, starts)


def rows(found: CycleSummary, times: JobTimes | None = None, query: JobsQuery | None = None) -> dict[str, str]:
    return {row["name"]: row["state"] for row in shown_of(found, times, query)["rows"]}


def gone(*jobs: tuple[str, str], at: float = 30.0) -> JobTimes:
    """Return the times of jobs, by name and queue, that ran until they were gone."""
    times, queues = JobTimes(), ["default", "team"]
    for number, (name, queue) in enumerate(jobs):
        created, label = np.array([1.0]), np.array([STATES.index("runs")], dtype=np.int8)
        of = np.array([queues.index(queue)], dtype=np.int32)
        times.take(JobStates(at + number, [name], queues, of, created, label))
    nobody = np.zeros(0, dtype=np.int32)
    times.take(JobStates(at + len(jobs), [], queues, nobody, np.zeros(0), nobody.astype(np.int8)))
    return times


def test_jobs_that_run_and_wait_are_rows_in_the_order_of_their_start(shown: CycleSummary) -> None:
    states = {"ns/runs": "runs", "ns/starts": "starts", "ns/large": "waits", "ns/below": "waits"}
    assert rows(shown) == states and list(rows(shown)) == list(states)


def test_an_estimate_says_when_a_job_ends(shown: CycleSummary) -> None:
    place = list(shown.jobs.names).index("ns/runs")
    started, ends = shown.jobs.started.copy(), shown.jobs.ends.copy()
    started[place], ends[place] = 40.0, 160.0
    found = shown_of(replace(shown, jobs=replace(shown.jobs, started=started, ends=ends)))
    row = next(each for each in found["rows"] if each["name"] == "ns/runs")
    assert (row["started"], row["ends"], found["now"]) == (40.0, 160.0, 100.0)
    assert all(each["ends"] is None for each in found["rows"] if each["name"] != "ns/runs")


def test_jobs_that_are_gone_are_rows_with_the_time_at_which_they_were_missed(shown: CycleSummary) -> None:
    found = shown_of(shown, gone(("ns/old", "default"), ("ns/older", "team")), JobsQuery(text="old"))
    assert {row["name"]: row["ended"] for row in found["rows"]} == {"ns/old": 31.0, "ns/older": 32.0}
    assert all(row["state"] == "ended" and row["moments"][0][1] == "runs" for row in found["rows"])


def test_rows_are_those_of_the_query_and_of_the_viewer(shown: CycleSummary) -> None:
    times = gone(("ns/gone", "team"), ("other/gone", "default"))
    assert set(rows(shown, times, JobsQuery(queue="org"))) == {"ns/below", "ns/gone"}
    assert set(rows(shown, times, JobsQuery(text="other"))) == {"other/gone"}
    seen = shown_of(shown, times, JobsQuery(text="gone"), lambda name: name.startswith("ns/"))
    assert [row["name"] for row in seen["rows"]] == ["ns/gone"]
    with pytest.raises(QueryError, match="does not exist"):
        rows(shown, times, JobsQuery(queue="nope"))


def test_rows_are_bounded_and_what_is_left_out_is_counted(shown: CycleSummary) -> None:
    found = shown_of(shown, gone(*((f"ns/{number}", "team") for number in range(KIND_MAX + 5))))
    ended = [row for row in found["rows"] if row["state"] == "ended"]
    assert len(ended) == KIND_MAX and max(row["ended"] for row in ended) == 30.0 + KIND_MAX + 5
    assert found["left_out"] == {"run": 0, "wait": 0, "ended": 5}


async def test_jobs_that_wait_have_their_expected_start(shown: CycleSummary) -> None:
    starts = ExpectedStarts(expected, lambda: 0.0, changes=False)
    await starts.renew()
    found = shown_of(shown, starts=SeenStarts(starts, HiddenNames(())))
    assert found["basis"] == {"at": 100.0, "samples": 8, "until_s": 3600.0}
    rows = {row["name"]: row["start"] for row in found["rows"]}
    assert rows["ns/large"] == JobStart(220.0, 160.0, None)
    assert rows["ns/below"].why_not and rows["ns/runs"] is None and rows["ns/starts"] is None


async def test_why_no_start_is_expected_names_no_job_of_others(shown: CycleSummary) -> None:
    async def of_others() -> dict[str, Any]:
        waits = {"why_not": "without an estimate, so by age alone: 1 running (other/secret)"}
        return {"jobs": {"ns/large": waits}, "at": 100.0, "samples": 8, "until_s": 3600.0}

    starts = ExpectedStarts(of_others, lambda: 0.0, changes=False)
    await starts.renew()
    found = SeenStarts(starts, HiddenNames({"other"})).of("ns/large")
    assert "secret" not in found.why_not and "1 running" in found.why_not


def test_states_of_rows_are_states(shown: CycleSummary) -> None:
    assert set(rows(shown).values()) <= set(STATES)
