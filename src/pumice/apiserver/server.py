"""The server as a whole: it listens, answers until it is told to stop, and ends its watches then."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from pumice.apiserver.http import Api
from pumice.apiserver.journal import Journal

_GOODBYE_S = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen. ``port`` 0: any that is free. Without ``tls`` it is plain HTTP."""

    address: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None


@asynccontextmanager
async def serving(api: Api, place: Place, journal: Journal | None = None) -> AsyncIterator[str]:
    """A server at work; the value is its URL. Raises: OSError where the address or the port cannot be had."""
    limits = api.limits
    runner = web.AppRunner(
        api.application(),
        access_log=None,
        handler_cancellation=True,  # a watch ends with its client
        shutdown_timeout=_GOODBYE_S,
        max_line_size=limits.header_bytes,
        max_field_size=limits.header_bytes,
    )
    await runner.setup()
    syncing = asyncio.create_task(journal.run()) if journal else None
    try:
        site = web.TCPSite(runner, place.address, place.port, ssl_context=place.tls)
        await site.start()
        async with api.cluster.running():
            yield _url(place, runner)
    finally:
        await runner.cleanup()
        if journal and syncing:
            syncing.cancel()
            await asyncio.gather(syncing, return_exceptions=True)
            journal.close()


def _url(place: Place, runner: web.AppRunner) -> str:
    port = runner.addresses[0][1]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(place.address, place.address)
    return f"{'https' if place.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
