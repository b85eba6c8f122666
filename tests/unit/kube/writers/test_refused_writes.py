"""Writes that are refused: later and later, object by object, and said once."""

from __future__ import annotations

import logging

import pytest

from pumice.kube.writers.refused_writes import RefusedWrites


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "pumice")
    return caplog


def test_each_object_is_tried_later_and_later() -> None:
    clock = Clock()
    refusals = RefusedWrites("status of PodGroup", clock)
    tries = 0
    for _ in range(36_000):  # ten times a second, for an hour
        clock.now += 0.1
        if not refusals.holds_back("ns/a"):
            tries += 1
            refusals.refused("ns/a", "HTTP 422")
        assert not refusals.holds_back("ns/b")
    assert tries < 70


def test_a_refusal_is_said_once_and_so_is_its_end(said: pytest.LogCaptureFixture) -> None:
    refusals = RefusedWrites("status of PodGroup", Clock())
    for number in range(3):
        refusals.refused("ns/a", f"HTTP 422 {number}")
    refusals.refused("ns/b", "HTTP 422")
    refusals.written("ns/a")
    refusals.written("ns/a")
    refusals.gone("ns/b")
    refusals.written("ns/b")
    assert said.messages == [
        "status of PodGroup ns/a not written: HTTP 422 0; retried at longer and longer intervals",
        "status of PodGroup ns/b not written: HTTP 422; retried at longer and longer intervals",
        "status of PodGroup ns/a written",
    ]


def test_what_went_well_is_tried_at_once_again() -> None:
    refusals = RefusedWrites("status of PodGroup", Clock())
    refusals.refused("ns/a", "HTTP 422")
    assert refusals.holds_back("ns/a")
    refusals.written("ns/a")
    assert not refusals.holds_back("ns/a")
