"""How long the next try waits."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pumice.kube.api import rate_limit as pace_module
from pumice.kube.api.rate_limit import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_delays_double_to_the_last_for_each_key_alone() -> None:
    rate_limit = RateLimit(first_s=1.0, last_s=5.0, rate=0.0)
    assert [rate_limit.delay("a") for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert rate_limit.delay("b") == 1.0
    rate_limit.forget("a")
    assert rate_limit.delay("a") == 1.0


def test_what_is_left_of_a_delay() -> None:
    clock = Clock()
    rate_limit = RateLimit(first_s=1.0, last_s=8.0, rate=0.0, clock=clock)
    assert rate_limit.left_s("a") == 0.0
    rate_limit.delay("a")
    clock.now += 0.25
    assert rate_limit.left_s("a") == 0.75
    clock.now += 1.0
    assert rate_limit.left_s("a") == 0.0
    rate_limit.delay("a")
    assert rate_limit.left_s("a") == 2.0
    rate_limit.forget("a")
    assert rate_limit.left_s("a") == 0.0


def test_all_keys_together_are_held_to_a_rate() -> None:
    rate_limit = RateLimit(first_s=0.0, last_s=0.0, rate=0.001, burst=3.0)
    delays = [rate_limit.delay(str(number)) for number in range(6)]
    assert delays[:3] == [0.0, 0.0, 0.0]
    assert all(later > earlier > 900.0 for earlier, later in pairwise(delays[3:]))


def test_it_does_not_remember_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_module, "_KEYS_MAX", 2)
    rate_limit = RateLimit(first_s=1.0, last_s=8.0, rate=0.0)
    assert [rate_limit.delay(key) for key in "abcab"] == [1.0, 1.0, 1.0, 1.0, 1.0]
    assert rate_limit.delay("b") == 2.0
