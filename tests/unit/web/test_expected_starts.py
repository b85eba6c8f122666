"""Expected starts are worked out now and then, for all viewers together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pumice.cli.answers import starts
from pumice.web.expected_starts import NOT_LOOKED_AT, ExpectedStarts, JobStart
from pumice.web.shared_work import NoResult
from tests.unit.web.worlds import expected, world


class At:
    def __init__(self, *, changes: bool = True) -> None:
        self.now, self.takes_s, self.asked, self.trouble = 1000.0, 0.0, 0, ""
        self.starts = ExpectedStarts(self.ask, lambda: self.now, changes=changes)

    async def ask(self) -> dict[str, Any]:
        self.asked += 1
        await asyncio.sleep(0)
        self.now += self.takes_s
        if self.trouble:
            raise NoResult(self.trouble)
        return await expected()


async def test_viewers_who_ask_at_once_share_an_answer() -> None:
    at = At()
    await asyncio.gather(*(at.starts.renew() for _ in range(50)))
    assert at.asked == 1 and at.starts.of("ns/large") == JobStart(220.0, 160.0, None)


@pytest.mark.parametrize(("takes_s", "after_s"), [(0.0, 30.0), (10.0, 200.0)])
async def test_they_take_a_bounded_share_of_a_processor(takes_s: float, after_s: float) -> None:
    at = At()
    at.takes_s = takes_s
    counts = []
    for wait_s in (0.0, after_s - 1.0, 1.0):
        at.now += wait_s
        await at.starts.renew()
        counts.append(at.asked)
    assert counts == [1, 1, 2]


async def test_a_viewer_who_leaves_ends_nothing() -> None:
    at = At(changes=False)
    leaves = asyncio.create_task(at.starts.renew())
    await asyncio.sleep(0)
    leaves.cancel()
    await at.starts.renew()
    assert at.asked == 1 and at.starts.basis is not None


async def test_a_fault_is_said_and_ends_no_page() -> None:
    async def fails() -> dict[str, Any]:
        raise ZeroDivisionError

    starts = ExpectedStarts(fails, lambda: 0.0, changes=True)
    await starts.renew()
    assert "a fault of this program" in starts.of("ns/large").why_not


async def test_a_cluster_that_does_not_go_on_is_asked_once() -> None:
    at = At(changes=False)
    await at.starts.renew()
    at.now += 1e9
    await at.starts.renew()
    assert at.asked == 1


async def test_why_nothing_can_be_said_is_said() -> None:
    at = At()
    assert at.starts.basis is None and at.starts.of("ns/large").why_not == NOT_LOOKED_AT
    at.trouble = "found no answer within 30 s"
    await at.starts.renew()
    assert at.starts.basis is None and at.starts.of("ns/large").why_not == at.trouble
    at.now, at.trouble = at.now + 100.0, ""
    await at.starts.renew()
    assert at.starts.of("ns/below").why_not == "in 8 of 8 simulations it does not start"
    assert at.starts.of("ns/new").why_not == NOT_LOOKED_AT


@pytest.mark.parametrize(("jobs_in_all", "samples"), [(40, 8), (24, 6), (1, 4)])
def test_four_jobs_are_simulated_as_often_as_the_jobs_in_all_simulations_allow(
    monkeypatch: pytest.MonkeyPatch, jobs_in_all: int, samples: int
) -> None:
    monkeypatch.setattr(starts, "_PAGE_BUILT_MAX", jobs_in_all)
    assert starts.page_starts(world())["samples"] == samples


def test_for_too_many_jobs_no_start_is_worked_out_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "_PAGE_JOBS_MAX", 3)
    with pytest.raises(NoResult, match="4 jobs are more than the 3"):
        starts.page_starts(world())
