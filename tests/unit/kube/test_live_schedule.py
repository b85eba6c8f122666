"""When the next cycle is due: each period, soon after a change, and later and later after failures."""

from __future__ import annotations

import pytest

from pumice.kube.scheduler.schedule import CycleSchedule


def cycled(schedule: CycleSchedule, began: float, took: float = 0.0) -> CycleSchedule:
    schedule.begin(began)
    schedule.end(began + took)
    return schedule


def test_the_first_cycle_waits_for_nothing() -> None:
    assert CycleSchedule(1.0).due() < 0


def test_without_a_change_there_is_one_a_period() -> None:
    assert cycled(CycleSchedule(1.0), 10.0).due() == 11.0


def test_a_gang_does_not_wait_for_the_period() -> None:
    """Neither does what follows at once: its PodGroup wakes a cycle, and so do its pods a moment later."""
    schedule = cycled(CycleSchedule(1.0, settle_s=0.05), 10.0)
    schedule.change(10.2)
    assert schedule.due() == pytest.approx(10.25)
    cycled(schedule, 10.25)
    schedule.change(10.26)
    assert schedule.due() == pytest.approx(10.31)


def test_pods_that_come_one_by_one_are_decided_on_together() -> None:
    schedule = cycled(CycleSchedule(1.0, settle_s=0.05), 10.0)
    for number in range(10):
        schedule.change(10.2 + 0.03 * number)
    assert schedule.due() == pytest.approx(10.52)


def test_changes_that_pour_in_wait_a_period_at_most() -> None:
    schedule = cycled(CycleSchedule(1.0), 10.0)
    for number in range(200):
        schedule.change(10.0 + 0.01 * number)
    assert schedule.due() == 11.0


def test_long_cycles_are_followed_by_rest() -> None:
    schedule = cycled(CycleSchedule(1.0), 10.0, took=0.2)
    schedule.change(10.2)
    assert schedule.due() == pytest.approx(10.8)
    cycled(schedule, 10.8, took=0.9)
    schedule.change(11.7)
    assert schedule.due() == pytest.approx(11.8), "but never for more than the period"


def test_a_cycle_sees_what_happened_before_it_began() -> None:
    schedule = CycleSchedule(1.0)
    schedule.change(9.0)
    assert schedule.changed
    cycled(schedule, 10.0)
    assert not schedule.changed
    assert schedule.due() == 11.0


def test_volcanos_schedule_counts_from_the_end_and_nothing_wakes_it() -> None:
    schedule = cycled(CycleSchedule(1.0, on_change=False), 10.0, took=0.5)
    schedule.change(10.6)
    assert schedule.due() == 11.5


@pytest.mark.parametrize(
    ("failures", "delay"),
    [pytest.param(1, 2.0, id="one"), pytest.param(3, 8.0, id="three"), pytest.param(50, 30.0, id="bounded")],
)
def test_failures_are_followed_by_rest(failures: int, delay: float) -> None:
    schedule = CycleSchedule(1.0)
    for _ in range(failures):
        schedule.begin(10.0)
        schedule.end(10.0, failed=True)
    schedule.change(10.0)
    assert schedule.due() == 10.0 + delay
    cycled(schedule, 20.0)
    assert schedule.due() == 21.0


def test_a_long_period_is_not_cut_short_by_a_failure() -> None:
    schedule = CycleSchedule(100.0)
    schedule.begin(0.0)
    schedule.end(0.0, failed=True)
    assert schedule.due() == 100.0
