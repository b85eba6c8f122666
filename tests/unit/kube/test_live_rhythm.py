"""When the next cycle is due: each period, at once on news, and later and later after failures."""

from __future__ import annotations

import pytest

from pumice.kube.rhythm import Rhythm


def test_the_first_cycle_waits_for_nothing() -> None:
    assert Rhythm(1.0).due(news=False) < 0


def test_without_news_there_is_one_a_period() -> None:
    rhythm = Rhythm(1.0)
    rhythm.begin(10.0, news=False)
    assert rhythm.due(news=False) == 11.0


def test_news_do_not_wait_for_the_period() -> None:
    rhythm = Rhythm(1.0)
    rhythm.begin(10.0, news=False)
    assert rhythm.due(news=True) < 10.0


def test_news_wake_once_a_period() -> None:
    rhythm = Rhythm(1.0)
    rhythm.begin(10.0, news=True)
    assert rhythm.due(news=True) == 11.0
    rhythm.begin(11.0, news=False)
    assert rhythm.due(news=True) == 11.0, "a cycle that time alone began does not count"


@pytest.mark.parametrize(
    ("failures", "delay"),
    [pytest.param(1, 2.0, id="one"), pytest.param(3, 8.0, id="three"), pytest.param(50, 30.0, id="bounded")],
)
def test_failures_are_followed_by_rest(failures: int, delay: float) -> None:
    rhythm = Rhythm(1.0)
    for _ in range(failures):
        rhythm.begin(10.0, news=True)
        rhythm.end(failed=True)
    assert rhythm.due(news=True) == 10.0 + delay
    rhythm.end(failed=False)
    assert rhythm.due(news=False) == 11.0


def test_a_long_period_is_not_cut_short_by_a_failure() -> None:
    rhythm = Rhythm(100.0)
    rhythm.begin(0.0, news=True)
    rhythm.end(failed=True)
    assert rhythm.due(news=True) == 100.0
