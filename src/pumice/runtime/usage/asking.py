"""Ask an untrusted program over HTTP, bounded in time, and in how much of the answer is read."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any, Self

import aiohttp

from pumice.runtime.usage.settings import SourceSettings
from pumice.runtime.usage.sources import SourceError

ANSWER_BYTES_MAX = 16 << 20
ANSWER_S = 10.0
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}  # no compression, which would hide the size


def _password(settings: SourceSettings) -> dict[str, str]:
    """Return the password header. It is sent only to the address, since redirects are not followed."""
    if not settings.username:
        return {}
    pair = f"{settings.username}:{settings.password}".encode()
    return {"Authorization": f"Basic {b64encode(pair).decode()}"}


class HttpAsk:
    """Asks one address. An async context manager. ``bytes_max``, ``within_s``: of one answer."""

    def __init__(
        self, settings: SourceSettings, *, bytes_max: int = ANSWER_BYTES_MAX, within_s: float = ANSWER_S
    ) -> None:
        self._settings, self._bytes_max, self._within_s = settings, bytes_max, within_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=4, ssl=self._settings.verify)
        headers = {**_HEADERS, **_password(self._settings)}
        self._session = aiohttp.ClientSession(connector=connector, headers=headers, auto_decompress=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def __call__(self, path: str, body: Any = None) -> bytes:
        """Return the answer to a GET, or to a POST of ``body`` as JSON. Redirects are not followed. Raises:
        SourceError."""
        assert self._session is not None
        url = self._settings.address.rstrip("/") + path
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        headers = {} if data is None else {"Content-Type": "application/json"}
        try:
            async with (
                asyncio.timeout(self._within_s),
                self._session.request(method, url, data=data, headers=headers, allow_redirects=False) as answer,
            ):
                return await self._taken(answer)
        except TimeoutError:
            raise SourceError(f"no answer within {self._within_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SourceError(f"{type(error).__name__}: {str(error)[:200]}") from None

    async def _taken(self, answer: aiohttp.ClientResponse) -> bytes:
        """Return the body if it is not too large. Raises: SourceError."""
        if answer.status != 200:
            raise SourceError(f"answered {answer.status}")
        parts, size = [], 0
        async for part in answer.content.iter_chunked(1 << 16):
            size += len(part)
            if size > self._bytes_max:
                raise SourceError(f"answered more than {self._bytes_max:,} bytes")
            parts.append(part)
        return b"".join(parts)
