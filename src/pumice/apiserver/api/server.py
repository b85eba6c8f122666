"""The whole server: it listens, answers until it is stopped, and then ends its watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from pumice.apiserver.api.http import HEALTH, Api, refused
from pumice.apiserver.journal import Journal
from pumice.apiserver.refusals import too_many
from pumice.runtime.serving.listening import ConnectionLimits, Connections, Place, listening


@asynccontextmanager
async def serving(api: Api, place: Place, journal: Journal | None = None) -> AsyncIterator[str]:
    """Run a server. Yields its URL. Raises: OSError if the address or the port is not available."""
    limits = api.limits
    connections = Connections(ConnectionLimits(limits.connections), HEALTH, _busy)
    syncing = asyncio.create_task(journal.run()) if journal else None
    try:
        async with (
            listening(api.application(), place, connections, header_bytes=limits.header_bytes) as url,
            api.cluster.running(),
        ):
            yield url
    finally:
        if journal and syncing:
            syncing.cancel()
            await asyncio.gather(syncing, return_exceptions=True)
            journal.close()


def _busy() -> web.Response:
    return refused(too_many("there are as many requests under way as are taken"))
