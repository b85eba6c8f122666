"""How long a candidate waits for a leader: by its own clock, whatever the record says the time is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from pumice.kube.api.errors import ApiError, NotAllowed
from pumice.kube.scheduler.lease import Election, LeaseObservation
from tests.kube.waiting import PATIENCE_S
from tests.unit.kube.silence import SILENT


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def lease(holder: str, renewed: str = "2026-01-01T00:00:00Z", seconds: Any = 15) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": seconds}}


def test_it_counts_from_when_the_record_was_seen_to_change() -> None:
    clock = Clock()
    seen = LeaseObservation(clock)
    seen.see(lease("a", "1970-01-01T00:00:00Z"))
    assert seen.left_s(15.0) == 15.0, "a time long gone says nothing"
    clock.now += 10
    seen.see(lease("a", "1970-01-01T00:00:00Z"))
    assert seen.left_s(15.0) == 5.0
    seen.see(lease("a", "1969-12-31T23:59:59Z"))
    assert seen.left_s(15.0) == 15.0, "a clock that goes backwards is a sign of life too"
    clock.now += 15
    assert seen.left_s(15.0) == 0.0


def test_a_time_in_the_future_does_not_hold_the_place() -> None:
    clock = Clock()
    seen = LeaseObservation(clock)
    seen.see(lease("a", "2099-01-01T00:00:00Z"))
    clock.now += 15
    assert seen.left_s(15.0) == 0.0


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        pytest.param(40, 40.0, id="the leader's own"),
        pytest.param(0, 15.0, id="nothing"),
        pytest.param(10**9, 15.0, id="for ever"),
        pytest.param("soon", 15.0, id="nonsense"),
        pytest.param(None, 15.0, id="not said"),
    ],
)
def test_how_long_a_record_is_believed(seconds: Any, left: float) -> None:
    seen = LeaseObservation(Clock())
    seen.see(lease("a", seconds=seconds))
    assert seen.left_s(15.0) == left


@pytest.mark.parametrize(
    "found",
    [
        pytest.param({}, id="none"),
        pytest.param(lease(""), id="given back"),
        pytest.param({"spec": None}, id="empty"),
        pytest.param({"spec": {"holderIdentity": None}}, id="null"),
    ],
)
def test_a_place_that_is_free(found: dict[str, Any]) -> None:
    seen = LeaseObservation(Clock())
    seen.see(found)
    assert (seen.holder, seen.left_s(15.0)) == ("", 0.0)


@pytest.mark.parametrize("times", [(15.0, 15.0, 2.0), (15.0, 2.0, 10.0), (15.0, 10.0, 0.0)])
def test_times_that_could_make_two_leaders_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="wanted 0 < retry < renew < lease"):
        Election(SILENT, "ns", "it", "a", *times)


class Leases:
    """A client of a server that has one Lease."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] = {}

    async def get(self, path: str, **_: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        if not self.lease:
            raise ApiError(404, "NotFound", "no such Lease", f"GET {path}")
        return deepcopy(self.lease)

    async def put(self, path: str, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        self.lease = deepcopy(body)
        return body

    async def post(self, path: str, body: dict[str, Any], **_: Any) -> bytes:
        await asyncio.sleep(0)
        self.lease = deepcopy(body)
        return msgspec.json.encode(body)


class Term:
    """Work that ends only when it may, however often it is cancelled, as requests without an answer make it."""

    def __init__(self) -> None:
        self.at_once, self.at_most, self.begun = 0, 0, asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self) -> None:
        self.at_once += 1
        self.at_most = max(self.at_most, self.at_once)
        self.begun.set()
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                continue
        self.at_once -= 1


async def turns(count: int = 200) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
async def term() -> AsyncIterator[Term]:
    found = Term()
    yield found
    # Else the work, which ignores that it is cancelled, would outlive a test that fails.
    found.may_end.set()
    await turns()


def elected(clock: Clock) -> Election:
    return Election(Leases(), "ns", "it", "a", 15.0, 10.0, 1e-6, clock)  # type: ignore[arg-type]


async def test_after_a_jump_of_the_clock_a_leader_holds_nothing_before_anything_else_happens(term: Term) -> None:
    clock = Clock()
    election = elected(clock)
    running = asyncio.create_task(election.run(term))
    await term.begun.wait()
    assert election.holds
    clock.now += 60.0
    assert election.leads
    assert not election.holds, "its Lease is over, and another may lead"
    term.may_end.set()
    await running


async def test_two_terms_never_work_at_once(term: Term, caplog: pytest.LogCaptureFixture) -> None:
    """A clock that jumps ends a term whose work does not end: the next begins after it."""
    caplog.set_level(logging.ERROR)
    clock = Clock()
    election = elected(clock)

    async def terms() -> None:
        for _ in range(2):
            await election.run(term)

    running = asyncio.create_task(terms())
    await term.begun.wait()
    clock.now += 60.0
    async with asyncio.timeout(PATIENCE_S):
        while election.leads:
            await asyncio.sleep(0)
    await turns()
    assert (term.at_once, term.at_most, election.holds) == (1, 1, False)
    assert not running.done()
    term.may_end.set()
    await running
    assert term.at_most == 1
    said = [record.message for record in caplog.records]
    assert "a: its work has not ended although its Lease has expired: it writes nothing more" in said
    assert "a has lost leadership: not renewed in time" in said, "and not to itself"


async def test_nothing_is_held_once_another_leads(term: Term) -> None:
    clock = Clock()
    election = elected(clock)
    running = asyncio.create_task(election.run(term))
    await term.begun.wait()
    election._seen.see(lease("thief"))
    assert not election.holds
    term.may_end.set()
    await running


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_client_that_may_not_write_sends_no_write(method: str) -> None:
    with pytest.raises(NotAllowed, match=f"{method} /api: not sent: leadership is lost"):
        await SILENT.fenced(lambda: False).request(method, "/api")
