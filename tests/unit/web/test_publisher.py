"""When a running scheduler makes summaries."""

from __future__ import annotations

import asyncio

import pytest

from pumice.answers.world import Trial, Trials, World
from pumice.cycle import run_cycle
from pumice.model.events import Seen, key_of
from pumice.runtime.cycle_end import CycleEnd
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import node
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
        self.cycles = 0

    async def cycle(self) -> int:
        """Return the number of summaries after one more cycle."""
        self.cycles += 1
        self.publisher.take(CycleEnd(self.cycles, self.trial.outcome, self.trial.decisions, "d"))
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
    at.clock.now += 5
    at.feed.asked(at.clock())
    assert await at.cycle() == 1
    at.clock.now += 3
    at.feed.asked(at.clock())
    assert await at.cycle() == 2


async def test_the_first_changes_are_shown_one_by_one_and_many_once_a_second() -> None:
    at = At()
    at.feed.asked(at.clock())
    shown = []
    for _ in range(60):
        at.clock.step = 0.02  # each summary takes 20 ms
        at.clock.now += 0.1
        shown.append(await at.cycle())
    assert shown[:3] == [1, 2, 3]
    assert shown[-1] <= at.clock.now - 1000.0 + 2.0 + 1, "on average one a second"


async def test_a_cycle_that_wrote_nothing_is_not_summarized_again() -> None:
    at = At()
    at.feed.asked(at.clock())
    at.trial = Trial(at.trial.outcome, ())
    assert [await at.cycle(), await at.cycle()] == [1, 1]


async def test_a_cycle_that_decided_nothing_is_shown_if_something_else_changed() -> None:
    """Such as a job that came and waits. Each cycle is on the snapshot of one store."""
    at, store, found = At(), Store(scheduler_names=("volcano",)), world()
    at.feed.asked(at.clock())
    at.publisher = Publisher(at.feed, asyncio.get_running_loop(), at.clock, always=True)
    for obj in found.objects.values():
        if not key_of(obj).startswith("ns/starts"):  # all others wait
            store.apply(Seen(obj))
    shown = []
    for more in (node("first", 1), node("second", 1)):
        store.apply(Seen(more))
        outcome = run_cycle(store.snapshot(100.0), found.policy, 100.0, ListPlanner())
        at.trial = Trial(outcome, ())
        shown.append(await at.cycle())
    assert shown == [1, 2]
    assert at.feed.history.curves("cpu")["cluster"]["offers"] == [14.0]


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


async def test_each_cycle_is_counted_while_no_page_is_open() -> None:
    at = At()
    for _ in range(3):
        assert await at.cycle() == 0
    assert at.feed.history.taken == 3
    assert sum(at.feed.history.times()["counts"]["bound"]) == 3 * len(at.trial.decisions)


async def test_sums_take_a_bounded_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, amounts_of = [], publisher.amounts_of
    monkeypatch.setattr(publisher, "amounts_of", lambda outcome: made.append(1) or amounts_of(outcome))
    at = At()
    at.clock.step = 0.1  # each look at the clock: sums take a tenth of a second
    for at.trial in map(_larger, range(3)):
        await at.cycle()
    assert len(made) == 1 and at.feed.history.taken == 3
    at.clock.now += 20
    at.trial = _larger(3)
    await at.cycle()
    assert len(made) == 2


def _larger(count: int) -> Trial:
    """Return a cycle on a world with so many more nodes."""
    found = world()
    more = [node(f"more{i}", 4) for i in range(count)]
    return Trials(World([*found.objects.values(), *more], found.policy, found.now, found.scheduler_names), 1).base
