"""Jobs on a line of time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.answers.seen import HiddenNames
from pumice.web.expected_starts import ExpectedStarts, JobStart, SeenStarts
from pumice.web.feed import Feed
from pumice.web.gantt import KIND_MAX, gantt
from pumice.web.jobs_query import JobsIndex, JobsQuery, QueryError
from pumice.web.past_jobs import PAST_MAX, PastJob, PastJobs
from pumice.web.summary import STATES, CycleSummary
from tests.unit.web.worlds import expected, summary


@pytest.fixture(scope="module")
def shown() -> CycleSummary:
    return summary()


def rows(found: CycleSummary, past: PastJobs | None = None, query: JobsQuery | None = None) -> dict[str, str]:
    data = gantt(JobsIndex(found), past.jobs if past else (), query or JobsQuery())
    return {row["name"]: row["state"] for row in data["rows"]}


def test_jobs_that_run_and_wait_are_rows_in_the_order_of_their_start(shown: CycleSummary) -> None:
    states = {"ns/runs": "runs", "ns/starts": "starts", "ns/large": "waits", "ns/below": "waits"}
    assert rows(shown) == states and list(rows(shown)) == list(states)


def test_an_estimate_says_when_a_job_ends(shown: CycleSummary) -> None:
    place = list(shown.jobs.names).index("ns/runs")
    started, ends = shown.jobs.started.copy(), shown.jobs.ends.copy()
    started[place], ends[place] = 40.0, 160.0
    found = gantt(JobsIndex(replace(shown, jobs=replace(shown.jobs, started=started, ends=ends))), (), JobsQuery())
    row = next(each for each in found["rows"] if each["name"] == "ns/runs")
    assert (row["started"], row["ends"], found["now"]) == (40.0, 160.0, 100.0)
    assert all(each["ends"] is None for each in found["rows"] if each["name"] != "ns/runs")


def test_a_job_that_holds_nothing_any_more_has_ended(shown: CycleSummary) -> None:
    past = PastJobs()
    past.take(shown)
    later = replace(shown, at=130.0, jobs=replace(shown.jobs, running=np.zeros_like(shown.jobs.running)))
    past.take(later)
    past.take(replace(later, at=140.0))
    assert {each.name: each.ended for each in past.jobs} == {"ns/runs": 130.0, "ns/starts": 130.0}


def test_rows_are_those_of_the_query(shown: CycleSummary) -> None:
    past = PastJobs()
    past.jobs += [PastJob("ns/gone", "team", 1.0, 2.0, 3.0), PastJob("ns/other", "default", 1.0, math.nan, 3.0)]
    assert set(rows(shown, past, JobsQuery(queue="org"))) == {"ns/below", "ns/gone"}
    assert set(rows(shown, past, JobsQuery(text="other"))) == {"ns/other"}
    with pytest.raises(QueryError, match="does not exist"):
        rows(shown, past, JobsQuery(queue="nope"))


def test_rows_and_memory_are_bounded_and_what_is_left_out_is_counted(shown: CycleSummary) -> None:
    past = PastJobs()
    for number in range(PAST_MAX + 5):
        past.jobs.append(PastJob(f"ns/{number}", "team", 1.0, 2.0, float(number)))
    found = gantt(JobsIndex(shown), past.jobs, JobsQuery())
    ended = [row for row in found["rows"] if row["state"] == "ended"]
    assert len(ended) == KIND_MAX and max(row["ended"] for row in ended) == PAST_MAX + 4
    assert found["left_out"] == {"run": 0, "wait": 0, "ended": PAST_MAX - KIND_MAX}


async def test_jobs_that_wait_have_their_expected_start(shown: CycleSummary) -> None:
    starts = ExpectedStarts(expected, lambda: 0.0, changes=False)
    await starts.renew()
    found = gantt(JobsIndex(shown), (), JobsQuery(), SeenStarts(starts, HiddenNames(())))
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


def test_a_feed_compares_each_summary_with_the_one_before(shown: CycleSummary) -> None:
    feed = Feed()
    feed.publish(shown)
    feed.publish(replace(shown, at=200.0, jobs=replace(shown.jobs, running=np.zeros_like(shown.jobs.running))))
    assert len(feed.past.jobs) == 2


def test_states_of_rows_are_states(shown: CycleSummary) -> None:
    assert set(rows(shown).values()) <= set(STATES)
