"""What happened to jobs over time: moments, seconds by state and reason, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.answers.codes import Code
from pumice.answers.world import Trials
from pumice.runtime.job_times import GONE, LABELS, JobStates, JobTimes, Moment, job_states
from tests.unit.web.worlds import world

ROOM, RUNS, STARTS, WAITS = Code.ROOM.value, "runs", "starts", "waits"


def look(at: float, created: float = 0.0, **labels: str) -> JobStates:
    names = list(labels)
    found = np.array([LABELS.index(labels[name]) for name in names], dtype=np.int8)
    queue = np.zeros(len(names), dtype=np.int32)
    return JobStates(at, names, ["q"], queue, np.full(len(names), created), found)


def seen(*looks: JobStates, jobs_max: int = 4, moments_max: int = 64) -> JobTimes:
    times = JobTimes(jobs_max, moments_max)
    for each in looks:
        times.take(each)
    return times


def test_labels_of_a_cycle_are_states_and_the_codes_of_reasons() -> None:
    found = job_states(Trials(world(), 1).base.outcome)
    labels = {name: LABELS[label] for name, label in zip(found.names, found.label.tolist(), strict=True)}
    assert labels == {"ns/runs": RUNS, "ns/starts": STARTS, "ns/large": ROOM, "ns/below": Code.QUEUE_LIMIT.value}


def test_a_job_has_a_moment_for_each_change_and_seconds_for_each_state() -> None:
    times = seen(look(10, a=WAITS), look(15, a=WAITS), look(20, a=ROOM), look(50, a=STARTS), look(51, a=RUNS), look(60))
    found = times.of("a")
    assert found is not None
    assert [(each.at, each.label) for each in found.moments] == [
        *((10.0, WAITS), (20.0, ROOM), (50.0, STARTS), (51.0, RUNS), (60.0, GONE)),
    ]
    assert found.seconds == {ROOM: 30.0, WAITS: 10.0, RUNS: 9.0, STARTS: 1.0} and found.is_whole
    assert (found.started, found.ended, found.started_after(50.0)) == (50.0, 60.0, 51.0)


def test_the_time_of_the_state_that_a_job_is_in_counts_up_to_the_last_look() -> None:
    found = seen(look(10, a=ROOM), look(25, a=ROOM)).of("a")
    assert found is not None and found.seconds == {ROOM: 15.0} and found.ended is None


def test_when_a_job_started_that_ran_when_it_was_first_seen_is_not_known() -> None:
    times = seen(look(10, a=RUNS, b=STARTS), look(20, a=RUNS, b=RUNS))
    assert [found.started for name in "ab" if (found := times.of(name)) is not None] == [None, 10.0]


def test_a_job_of_the_same_name_that_was_created_later_is_another_one() -> None:
    found = seen(look(10, a=RUNS), look(20, created=15.0, a=WAITS)).of("a")
    assert found is not None and found.moments == (Moment(20.0, WAITS),)


def test_a_job_that_comes_back_goes_on_and_is_not_gone() -> None:
    times = seen(look(10, a=RUNS), look(20), look(30, a=WAITS), look(40, a=WAITS))
    found = times.of("a")
    assert found is not None and found.seconds == {RUNS: 10.0, WAITS: 10.0} and list(times.gone()) == []


def test_places_of_jobs_that_are_gone_go_to_new_ones_and_no_others() -> None:
    times = seen(look(1, a=RUNS, b=RUNS), look(2, b=RUNS), look(3, b=RUNS, c=RUNS, d=RUNS), jobs_max=2)
    assert times.of("a") is None and times.of("c") is not None
    assert times.of("b") is not None and times.of("d") is None and times.left_out == 1


def test_the_place_of_a_job_that_comes_back_does_not_go_to_a_new_one() -> None:
    times = seen(look(1, a=RUNS, b=RUNS), look(2, b=RUNS), look(3, b=RUNS, a=WAITS, c=RUNS), jobs_max=2)
    found = times.of("a")
    assert found is not None and [each.label for each in found.moments] == [RUNS, GONE, WAITS]
    assert times.of("c") is None and times.left_out == 1


def test_the_place_of_a_job_that_is_another_one_now_goes_to_no_third() -> None:
    times = seen(look(1, a=RUNS, b=RUNS), look(2, b=RUNS), jobs_max=2)
    times.take(look(3, created=2.5, c=RUNS, a=WAITS))
    found = times.of("a")
    assert found is None or [each.label for each in found.moments] == [WAITS]
    assert times.left_out == (found is None)


def test_old_moments_are_dropped_and_the_job_says_so() -> None:
    looks = [look(float(at), a=WAITS if at % 2 else ROOM, b=RUNS) for at in range(10)]
    times = seen(*looks, moments_max=4)
    found, other = times.of("a"), times.of("b")
    assert found is not None and other is not None
    assert [each.at for each in found.moments] == [6.0, 7.0, 8.0, 9.0] and not found.is_whole
    assert other.moments == () and not other.is_whole
    assert found.seconds == {ROOM: 5.0, WAITS: 4.0}


def test_more_changes_at_once_than_there_is_room_for_are_survived() -> None:
    times = seen(look(1, a=RUNS, b=RUNS, c=RUNS), moments_max=2)
    assert [times.of(name) is not None for name in "abc"] == [True, True, True]


def test_a_time_before_the_last_look_counts_as_that_of_the_last_look() -> None:
    found = seen(look(10, a=WAITS), look(5, a=ROOM), look(12, a=ROOM)).of("a")
    assert found is not None and found.seconds == {ROOM: 2.0}


def test_jobs_that_are_gone_come_newest_first() -> None:
    times = seen(look(1, a=RUNS, b=RUNS), look(2, b=RUNS), look(3))
    assert list(times.gone()) == [("b", "q"), ("a", "q")]


@pytest.mark.parametrize("count", [1, 1000])
def test_memory_does_not_grow_with_what_happens(count: int) -> None:
    times = seen(jobs_max=50, moments_max=500)
    before = times.nbytes
    for at in range(count):
        times.take(look(float(at), **{f"j{at}": RUNS, f"k{at % 7}": WAITS}))
    assert times.nbytes == before and JobTimes().nbytes < 6 << 20
