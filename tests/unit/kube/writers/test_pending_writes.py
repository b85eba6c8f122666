"""What was written is not written again until its echo, or until the echo must have been lost."""

from __future__ import annotations

import pytest

from pumice.kube.writers.pending_writes import PendingWrites, is_older, version_of


@pytest.mark.parametrize(
    ("version", "other", "older"),
    [
        pytest.param("9", "10", True, id="numbers, not texts"),
        pytest.param("10", "9", False, id="newer"),
        pytest.param("10", "10", False, id="same"),
        pytest.param("", "10", True, id="unknown"),
        pytest.param("x", "x", False, id="same text"),
    ],
)
def test_order_of_versions(version: str, other: str, older: bool) -> None:
    assert is_older(version, other) is older


@pytest.mark.parametrize(
    ("raw", "version"),
    [
        pytest.param(b'{"metadata":{"resourceVersion":"7"},"x":[1]}', "7", id="there"),
        pytest.param(b'{"kind":"Status"}', "", id="none"),
        pytest.param(b"<html>", "", id="no JSON"),
    ],
)
def test_version_of_an_answer(raw: bytes, version: str) -> None:
    assert version_of(raw) == version


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_until_the_echo() -> None:
    sent = PendingWrites(10.0, Clock())
    assert sent.begin("k", "A")
    assert not sent.begin("k", "A")
    assert sent.begin("other", "A")
    sent.done("k", "A", "5", known="3")
    assert not sent.observe("k", "4"), "an earlier change of somebody else's"
    assert not sent.begin("k", "A")
    assert sent.observe("k", "5"), "the echo"
    assert sent.begin("k", "A")


def test_something_else_is_not_held_up() -> None:
    sent = PendingWrites(10.0, Clock())
    assert sent.begin("k", "A")
    assert sent.begin("k", "B")
    sent.done("k", "A", "5", known="3")
    assert not sent.begin("k", "B"), "the end of the first says nothing of the second"


def test_a_later_change_of_somebody_elses_ends_it_too() -> None:
    sent = PendingWrites(10.0, Clock())
    sent.begin("k", "A")
    sent.done("k", "A", "5", known="3")
    assert not sent.observe("k", "6")
    assert sent.begin("k", "A")


def test_an_echo_that_was_faster_than_the_answer() -> None:
    sent = PendingWrites(10.0, Clock())
    sent.begin("k", "A")
    assert not sent.observe("k", "5")
    sent.done("k", "A", "5", known="5")
    assert sent.begin("k", "A")


def test_what_failed_may_be_written_again() -> None:
    sent = PendingWrites(10.0, Clock())
    sent.begin("k", "A")
    sent.failed("k", "A")
    assert sent.begin("k", "A")


def test_an_echo_that_never_comes() -> None:
    clock = Clock()
    sent = PendingWrites(10.0, clock)
    sent.begin("k", "A")
    sent.done("k", "A", "5", known="3")
    clock.now = 9.9
    assert not sent.begin("k", "A")
    clock.now = 10.0
    assert sent.begin("k", "A")
