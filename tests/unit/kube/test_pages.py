"""The pages of a scheduler that runs: they are answered however many others are connected."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.scheduler.http import serving
from pumice.kube.scheduler.languages import KAI
from pumice.kube.scheduler.live import Live
from pumice.kube.scheduler.reload import ConfFile
from pumice.kube.scheduler.settings import Settings
from pumice.runtime.files.snapshot_file import from_bytes
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.serving.listening import Place
from pumice.runtime.telemetry.metrics import Metrics
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.unit.kai.cluster import job, queue, store


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"], ids=["silent", "half a head"])
async def test_health_is_answered_beside_300_half_open_connections(said: bytes) -> None:
    client = Client(Access("http://127.0.0.1:1"))
    live = Live(client, ConfFile(None, volcano_registry(), DEFAULT_CONF), Settings(), Metrics())
    held = []
    async with serving(live, [Place(), Place()]) as urls:
        for i in range(300):
            host, _, port = urls[i % 2].rpartition("/")[2].partition(":")
            held.append(await asyncio.open_connection(host, int(port)))
            held[-1][1].write(said)
        for url in urls:
            async with aiohttp.request("GET", f"{url}/healthz") as answer:
                assert (answer.status, await answer.text()) == (200, "ok\n")
        for reader, _ in held[:100]:  # who has said nothing for longest went
            await asyncio.wait_for(ended(reader), 30)
        for _, writer in held:
            writer.close()


async def ended(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        assert await reader.read() == b""


async def test_plugins_of_the_policy_say_which_pages_there_are() -> None:
    conf = "dialect: kai\ntiers: [{plugins: [{name: priority}, {name: reflectjoborder}, {name: snapshot}]}]"
    live = Live(
        Client(Access("http://127.0.0.1:1")),
        ConfFile(None, builtin_registry(), conf),
        Settings(language=KAI),
        Metrics(),
    )
    live.loop.store = store(queue("q"), job("low", "q", [""], priority=1), job("high", "q", [""], priority=2))
    async with serving(live, [Place()]) as (url,):
        async with aiohttp.request("GET", f"{url}/get-job-order") as answer:
            order = await answer.json()
        async with aiohttp.request("GET", f"{url}/get-snapshot") as answer:
            cycle = from_bytes(await answer.read())
        live.conf = ConfFile(None, builtin_registry(), "dialect: kai\ntiers: []")
        async with aiohttp.request("GET", f"{url}/get-snapshot") as answer:
            assert answer.status == 501 and "lacks the plugin snapshot" in await answer.text()
    assert [each["id"] for each in order["global_order"]] == ["high", "low"]
    assert [each["name"] for each in order["queue_order"]["q"]] == ["ns/high", "ns/low"]
    assert list(cycle.snapshot.tables.jobs.uids)[:2] == ["ns/low", "ns/high"]
