"""Leader election on a real server: never two, taken over when the leader is silent, given back when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from pumice.kube.api.client import Client
from pumice.kube.api.kinds import LEASES
from pumice.kube.scheduler.lease import Election
from tests.kube.proxy import FaultProxy, answer, lose_answer
from tests.kube.waiting import happens, until

LEASE = r"/leases"


class Stage:
    """Where leaders appear: ``order`` tells who came and went, in that order."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.on: set[str] = set()
        self.most = 0

    async def lead(self, name: str) -> None:
        self.order.append(f"{name} on")
        self.on.add(name)
        self.most = max(self.most, len(self.on))
        try:
            await asyncio.Event().wait()
        finally:
            self.on.discard(name)
            self.order.append(f"{name} off")


@asynccontextmanager
async def running(stage: Stage, election: Election) -> AsyncIterator[asyncio.Task[None]]:
    name = election.identity
    task = asyncio.create_task(election.run(lambda: stage.lead(name)))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def quick(client: Client, namespace: str, name: str) -> Election:
    return Election(client, namespace, "it", name, lease_s=3.0, renew_s=2.0, retry_s=0.2)


def patient(client: Client, namespace: str, name: str) -> Election:
    """A lease of this one that was not released does not expire within a test."""
    return Election(client, namespace, "it", name, lease_s=600.0, renew_s=400.0, retry_s=0.2)


async def record(client: Client, namespace: str) -> dict[str, Any]:
    found = await client.get(LEASES.path(f"{namespace}/it"))
    spec: dict[str, Any] = found["spec"]
    return spec


async def test_one_leads_and_the_others_wait(client: Client, namespace: str) -> None:
    stage = Stage()
    async with running(stage, patient(client, namespace, "a")):
        await until(lambda: stage.on == {"a"})
        b = patient(client, namespace, "b")
        async with running(stage, b):
            await until(lambda: b.leader == "a")
            seen: set[str] = set()
            async with asyncio.timeout(60):
                while len(seen) < 4:  # times at which the leader has renewed
                    seen.add((await record(client, namespace))["renewTime"])
            assert stage.order == ["a on"]


async def test_a_leader_that_stops_gives_its_place_up_at_once(client: Client, namespace: str) -> None:
    stage = Stage()
    a, b = patient(client, namespace, "a"), patient(client, namespace, "b")
    async with running(stage, a) as first:
        await until(lambda: stage.on == {"a"})
        async with running(stage, b):
            first.cancel()
            await until(lambda: stage.on == {"b"})
            assert stage.order == ["a on", "a off", "b on"]
            spec = await record(client, namespace)
            assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("b", 600)
    assert (await record(client, namespace))["holderIdentity"] == ""


async def test_a_leader_that_is_cut_off_stops_before_another_begins(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    stage = Stage()
    async with running(stage, quick(through, namespace, "a")) as first:
        await until(lambda: stage.on == {"a"})
        async with running(stage, quick(client, namespace, "b")):
            for method in ("GET", "PUT", "POST"):
                proxy.on(method, LEASE, answer(503), times=10**6)
            await until(lambda: stage.on == {"b"})
            assert stage.order == ["a on", "a off", "b on"]
            await asyncio.wait_for(first, 60)  # it returns, and its caller ends or runs it again
            assert (await record(client, namespace))["leaseTransitions"] == 1


async def test_what_keeps_a_candidate_out_is_reported_once(
    through: Client, proxy: FaultProxy, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    refused = proxy.on("GET", LEASE, answer(403, "Forbidden", "no right to leases"), times=10**6)
    async with running(stage, quick(through, namespace, "a")):
        await until(lambda: refused.hits > 5)
        refused.times = 0
        await until(lambda: stage.on == {"a"})
    reports = [
        record.getMessage() for record in caplog.records if "cannot compete for the Lease" in record.getMessage()
    ]
    assert len(reports) == 1
    assert "no right to leases" in reports[0]


async def test_a_killed_leader_is_replaced(client: Client, namespace: str) -> None:
    """No goodbye: the record is what a process that was killed leaves behind, with a clock that is years ahead."""
    await client.post(
        LEASES.namespace_path(namespace),
        {
            "metadata": {"namespace": namespace, "name": "it"},
            "spec": {
                "holderIdentity": "killed",
                "leaseDurationSeconds": 2,
                "acquireTime": "2090-01-01T00:00:00.000000Z",
                "renewTime": "2090-01-01T00:00:00.000000Z",
                "leaseTransitions": 4,
            },
        },
    )
    stage = Stage()
    async with running(stage, quick(client, namespace, "b")):
        await until(lambda: stage.on == {"b"})
        spec = await record(client, namespace)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 5)


@pytest.mark.parametrize(
    "fault", [pytest.param(lose_answer(), id="applied but lost"), pytest.param(answer(500), id="500")]
)
async def test_a_renewal_that_fails_once_costs_nothing(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, fault: Any
) -> None:
    stage = Stage()
    async with running(stage, patient(through, namespace, "a")):
        await until(lambda: stage.on == {"a"})
        rule = proxy.on("PUT", LEASE, fault)
        await until(lambda: rule.hits == 1)
        done = proxy.count("PUT", LEASE)
        await until(lambda: proxy.count("PUT", LEASE) > done + 1)
        assert stage.order == ["a on"]


async def test_a_leader_whose_place_was_taken_stops(client: Client, namespace: str) -> None:
    stage = Stage()
    async with running(stage, patient(client, namespace, "a")) as first:
        await until(lambda: stage.on == {"a"})
        await client.patch(LEASES.path(f"{namespace}/it"), {"spec": {"holderIdentity": "thief"}})
        await asyncio.wait_for(first, 60)
        assert stage.order == ["a on", "a off"]
    assert (await record(client, namespace))["holderIdentity"] == "thief", "what is not ours is not given back"


async def test_never_two(client: Client, namespace: str) -> None:
    """Many candidates of one Lease, each of which leads for a moment, all lead one after the other."""
    on, most, led = 0, 0, []

    async def lead(name: str) -> None:
        nonlocal on, most
        on += 1
        most = max(most, on)
        await record(client, namespace)
        led.append(name)
        on -= 1

    names = [f"c{i}" for i in range(8)]
    runs = (patient(client, namespace, name).run(lambda name=name: lead(name)) for name in names)  # type: ignore[misc]
    await asyncio.wait_for(asyncio.gather(*runs), 60)
    assert most == 1
    assert sorted(led) == names


async def test_work_that_fails_is_reported_and_the_place_given_back(client: Client, namespace: str) -> None:
    began = asyncio.Event()

    async def fail() -> None:
        began.set()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await patient(client, namespace, "a").run(fail)
    await happens(began)
    assert (await record(client, namespace))["holderIdentity"] == ""
