"""How to reach an API server: its address, trusted certificates, and credentials."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakSet

import aiohttp
from msgspec import Struct

Headers = dict[str, str]


async def _no_headers(renew: bool) -> Headers:
    return {}


class Connector(aiohttp.TCPConnector):
    """Connections whose ``close`` waits until they are closed. TLS then ends properly even for cancelled requests."""

    _GOODBYE_S = 1.0

    def __init__(self, **options: Any) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        super().__init__(socket_factory=self._made, **options)

    def _made(self, address: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made

    async def close(self, *, abort_ssl: bool = False) -> None:
        await super().close(abort_ssl=abort_ssl)
        deadline = time.monotonic() + self._GOODBYE_S
        while any(each.fileno() >= 0 for each in self._sockets) and time.monotonic() < deadline:
            await asyncio.sleep(0.001)


class Access(Struct, frozen=True):
    """Access to an API server. ``headers(renew)`` returns the present Authorization; with ``renew``, after a 401, a new
    one."""

    url: str
    ssl_context: ssl.SSLContext | None = None
    headers: Callable[[bool], Awaitable[Headers]] = _no_headers
    proxy: str | None = None
    server_name: str | None = None  # in the server's certificate, if it differs from the address
    whence: str = ""  # source, for messages: the path of a kubeconfig

    def session(self, connections_max: int = 64) -> aiohttp.ClientSession:
        """Return a session with its own connections. It belongs to the event loop on which it is made."""
        connector = Connector(
            limit=connections_max, ssl=self.ssl_context if self.ssl_context is not None else True, ttl_dns_cache=60
        )
        return aiohttp.ClientSession(
            connector=connector,
            read_bufsize=1 << 18,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            proxy=self.proxy,
        )


def bearer(url: str, token: str, ssl_context: ssl.SSLContext | None = None) -> Access:
    """Return access with one token that never changes."""

    async def headers(renew: bool) -> Headers:
        return {"Authorization": f"Bearer {token}"}

    return Access(url, ssl_context, headers)
