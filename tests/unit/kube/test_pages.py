"""The pages of a scheduler that runs: they are answered whoever else is connected."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from pumice.kube.access import Access
from pumice.kube.client import Client
from pumice.kube.http import serving
from pumice.kube.live import Live, Settings
from pumice.kube.reload import ConfFile
from pumice.runtime.listening import Place
from pumice.runtime.metrics import Metrics
from pumice.volcano.table import DEFAULT_CONF, volcano_registry


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
