"""How long a reflector waits: short where a server has just come up, long where an operator has to act."""

from __future__ import annotations

from pumice.kube.api.retry_policy import RetryDelays, RetryPolicy


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_server_that_is_down_is_asked_every_few_seconds() -> None:
    retrying = RetryDelays(RetryPolicy())
    delays = [retrying.unreachable() for _ in range(30)]
    assert delays[0] <= 0.2
    assert all(1.5 <= delay <= 3.0 for delay in delays[10:])


def test_rights_that_are_refused_just_after_a_start_are_asked_for_again_soon() -> None:
    """Roles come up last: a scheduler that waits half a minute for them is blind for so long."""
    clock = Clock()
    retrying = RetryDelays(RetryPolicy(), clock)
    for _ in range(100):
        clock.now += (delay := retrying.refused(lasting=True))
        assert delay <= 2.0
        if retrying.refused_s > 59:
            break
    clock.now += 2.0
    assert 15.0 <= retrying.refused(lasting=True) <= 45.0, "by then somebody has to give the right"


def test_an_outage_begins_the_minute_anew() -> None:
    clock = Clock()
    retrying = RetryDelays(RetryPolicy(), clock)
    retrying.refused(lasting=True)
    clock.now += 3600.0
    assert retrying.refused(lasting=True) >= 15.0
    retrying.unreachable()
    assert retrying.refused(lasting=True) <= 0.2


def test_what_an_outage_waited_for_is_not_waited_for_again() -> None:
    """A 410 comes from a server that lives: the list is read anew at once, and not after the outage's last delay."""
    retrying = RetryDelays(RetryPolicy())
    for _ in range(20):
        retrying.unreachable()
    assert retrying.relist() == 0.0


def test_reading_anew_that_does_not_help_waits_longer_and_longer() -> None:
    retrying = RetryDelays(RetryPolicy())
    delays = [retrying.relist() for _ in range(12)]
    assert delays[0] == 0.0
    assert 0.1 <= delays[1] <= 0.2
    assert 15.0 <= delays[-1] <= 30.0
    retrying.succeeded()
    assert retrying.relist() == 0.0


def test_a_refusal_is_believed_when_it_has_lasted() -> None:
    clock = Clock()
    retrying = RetryDelays(RetryPolicy(believed_s=3.0), clock)
    assert not retrying.believed
    retrying.refused(lasting=True)
    assert not retrying.believed
    clock.now += 3.0
    assert retrying.believed
    retrying.succeeded()
    assert not retrying.believed


def test_what_the_server_asks_for_is_waited() -> None:
    assert RetryDelays(RetryPolicy()).refused(lasting=False, at_least_s=1.5) == 1.5
