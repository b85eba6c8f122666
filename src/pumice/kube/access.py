"""The way to an API server: its address, whom to trust, and the credentials of the moment."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp

Headers = dict[str, str]


async def _no_headers(renew: bool) -> Headers:
    return {}


@dataclass(frozen=True, slots=True)
class Access:
    """``headers(renew)`` gives the Authorization of the moment; with ``renew`` it asks for a new one, after a 401."""

    url: str
    ssl_context: ssl.SSLContext | None = None
    headers: Callable[[bool], Awaitable[Headers]] = _no_headers
    proxy: str | None = None
    server_name: str | None = None  # in the server's certificate, where it is not that of the address
    whence: str = ""  # what said so, for messages: a kubeconfig's path

    def session(self, connections_max: int = 64) -> aiohttp.ClientSession:
        """A session with connections of its own. Belongs to the event loop that it is made on."""
        connector = aiohttp.TCPConnector(
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
    """With one token that stays."""

    async def headers(renew: bool) -> Headers:
        return {"Authorization": f"Bearer {token}"}

    return Access(url, ssl_context, headers)
