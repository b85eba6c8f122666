"""What prevents a watch is logged once, and so is its end."""

from __future__ import annotations

import logging

import pytest

from pumice.kube.api.kinds import NODES, PODS, QUEUES
from pumice.kube.informers.watch_failures import Cause, WatchFailures


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "pumice")
    return caplog


def test_an_outage_is_said_once_however_its_words_change(said: pytest.LogCaptureFixture) -> None:
    troubles = WatchFailures()
    for why in ("refused", "reset", "timed out", "refused"):
        for kind in (PODS, NODES):
            troubles.note(kind, Cause.UNREACHABLE, f"the API server does not answer: {why}")
    troubles.note(PODS, Cause.FAILS, "pods: HTTP 503", log=False)
    troubles.note(PODS, Cause.UNREACHABLE, "the API server does not answer: again")
    assert said.messages == ["the API server does not answer: refused"]
    troubles.over(PODS)
    assert said.messages[1:] == [], "nodes are still waited for"
    troubles.over(NODES)
    troubles.over(NODES)
    assert said.messages[1:] == ["the API server responds again"]
    troubles.note(PODS, Cause.UNREACHABLE, "the API server does not answer: refused")
    assert len(said.messages) == 3, "the next outage is another one"


def test_a_right_that_is_missing_is_said_for_each_kind_and_so_is_that_it_came(said: pytest.LogCaptureFixture) -> None:
    troubles = WatchFailures()
    for kind in (PODS, QUEUES, PODS):
        troubles.note(kind, Cause.FORBIDDEN, f"no right to list {kind.plural}")
    troubles.over(PODS)
    assert said.messages == ["no right to list pods", "no right to list queues", "pods: watched again"]


def test_what_passes_at_once_is_not_said_and_known_all_the_same(said: pytest.LogCaptureFixture) -> None:
    troubles = WatchFailures()
    troubles.note(PODS, Cause.FORBIDDEN, "no right to list pods", log=False)
    assert troubles.texts() == [troubles.of(PODS)] == ["no right to list pods"]
    troubles.over(PODS)
    assert troubles.texts() == []
    assert said.messages == []


def test_who_follows_the_same_kinds_beside_says_nothing_again(said: pytest.LogCaptureFixture) -> None:
    first = WatchFailures()
    second = WatchFailures(first)
    for troubles in (first, second):
        troubles.note(PODS, Cause.MISSING, "pods are not installed")
    first.over(PODS, "pods are installed now")
    assert second.of(PODS) == "pods are not installed"
    second.over(PODS, "pods are installed now")
    assert said.messages == ["pods are not installed", "pods are installed now"]


def test_obstacles_of_other_kinds_are_known_until_they_end() -> None:
    own = WatchFailures()
    beside = WatchFailures(own)
    own.note(PODS, Cause.FORBIDDEN, "no right to list pods")
    beside.note(PODS, Cause.FORBIDDEN, "no right to list pods")
    beside.note(QUEUES, Cause.MISSING, "queues are not installed")
    assert own.texts() == ["no right to list pods", "queues are not installed"]
    assert own.of(QUEUES) == "", "it does not follow these itself"
    beside.forget()
    assert own.texts() == ["no right to list pods"]
