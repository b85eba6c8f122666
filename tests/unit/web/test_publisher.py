"""When a running scheduler makes summaries."""

from __future__ import annotations

import asyncio

import pytest

from pumice.answers.world import Trial, Trials
from pumice.web import publisher
from pumice.web.feed import Feed
from pumice.web.publisher import Publisher
from tests.unit.web.worlds import world


class Clock:
    """Time that goes on by ``step`` with each look."""

    def __init__(self) -> None:
        self.now, self.step = 1000.0, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class At:
    def __init__(self) -> None:
        self.feed, self.clock = Feed(), Clock()
        self.publisher = Publisher(self.feed, asyncio.get_running_loop(), self.clock)
        self.trial: Trial = Trials(world(), 1).base

    async def cycle(self) -> int:
        """Return the number of summaries after one more cycle."""
        self.publisher.take(self.trial.outcome, self.trial.decisions, "d")
        await asyncio.sleep(0)
        return self.feed.number


async def test_no_summary_is_made_while_no_page_is_open() -> None:
    at = At()
    assert await at.cycle() == 0
    at.feed.asked(at.clock())
    assert await at.cycle() == 1
    at.clock.now += 31
    assert await at.cycle() == 1


async def test_summaries_take_a_bounded_share_of_the_time() -> None:
    at = At()
    at.feed.asked(at.clock())
    at.clock.step = 0.5  # each summary takes half a second
    assert await at.cycle() == 1
    at.clock.now += 8
    at.feed.asked(at.clock())
    assert await at.cycle() == 1
    at.clock.now += 3
    at.feed.asked(at.clock())
    assert await at.cycle() == 2


async def test_a_cycle_that_wrote_nothing_is_not_summarized_again() -> None:
    at = At()
    at.feed.asked(at.clock())
    at.trial = Trial(at.trial.outcome, ())
    assert [await at.cycle(), await at.cycle()] == [1, 1]


async def test_a_summary_that_fails_leaves_the_cycle_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise ValueError("x")

    monkeypatch.setattr(publisher, "summarize", failing)
    at = At()
    at.feed.asked(at.clock())
    assert await at.cycle() == 0
    assert "a cycle could not be summarized" in caplog.text
