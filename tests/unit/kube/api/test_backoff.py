"""Delays grow, are spread, and end at a cap; tokens come back at their rate."""

from __future__ import annotations

import pytest

from pumice.kube.api.backoff import Backoff, TokenBucket


def test_delays_double_to_a_cap_and_are_spread() -> None:
    for _ in range(200):
        delays = Backoff(1.0, 8.0)
        for whole in (1, 2, 4, 8, 8, 8):
            assert whole / 2 <= delays.next() <= whole


def test_two_do_not_come_back_at_the_same_time() -> None:
    assert len({Backoff(1.0, 8.0).next() for _ in range(100)}) > 50


def test_reset_begins_anew() -> None:
    delays = Backoff(1.0, 8.0)
    for _ in range(5):
        delays.next()
    delays.reset()
    assert delays.next() <= 1.0


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        pytest.param(3.0, 3.0, 3.0, id="what the server asks for"),
        pytest.param(0.01, 0.5, 1.0, id="less than the own delay"),
        pytest.param(10_000.0, 80.0, 80.0, id="capped"),
    ],
)
def test_retry_after(asked: float, least: float, most: float) -> None:
    assert least <= Backoff(1.0, 8.0).next(asked) <= most


def test_tokens() -> None:
    now = 100.0
    bucket = TokenBucket(rate=2.0, burst=3.0, clock=lambda: now)
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]
    assert bucket.wait_s() == 0.5
    assert bucket.wait_s() == 1.0
    now += 10.0
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]


def test_no_rate_is_no_limit() -> None:
    bucket = TokenBucket(rate=0.0, burst=1.0)
    assert [bucket.wait_s() for _ in range(3)] == [0.0, 0.0, 0.0]
