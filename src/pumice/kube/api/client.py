"""A small client of the Kubernetes API: bytes in, bytes out, with limits of size and time, and retries."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from time import time
from types import TracebackType
from typing import Any, NoReturn

import aiohttp
import msgspec
from msgspec import Struct

from pumice.kube.api.access import Access
from pumice.kube.api.backoff import Backoff, TokenBucket
from pumice.kube.api.errors import NO_JSON, AccessError, ApiError, Garbage, KubeError, NotAllowed, TooLarge, Unreachable
from pumice.kube.api.kinds import Kind
from pumice.kube.api.lines import LineSplitter

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

NO_ANSWER = "none"

#: Failures before anything was sent, so that nothing can have been applied.
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class Caps(Struct, frozen=True):
    """Limits of one read. A page has at most ``page_items`` objects. ``idle_s``: silence of a watch."""

    answer_bytes: int = 256 << 20
    line_bytes: int = 16 << 20
    connect_s: float = 10.0
    request_s: float = 60.0
    idle_s: float = 180.0
    page_items: int = 500


class Retries(Struct, frozen=True):
    """How often to retry. ``unsure``: also if the request may have been carried out."""

    count: int = 0
    unsure: bool = False
    first_s: float = 0.1
    last_s: float = 5.0


ONCE = Retries()
FOR_READS = Retries(4, unsure=True)
#: For requests that can safely be repeated: a merge patch, a delete with a UID.
FOR_REPEATABLE = Retries(4, unsure=True)
#: For requests that cannot: only if the server said that it did nothing, or never received them.
FOR_CREATES = Retries(4)


class Page(msgspec.Struct, gc=False):
    """A page of a list, with undecoded objects."""

    class Meta(msgspec.Struct, rename="camel", gc=False):
        resource_version: str | None = None
        continue_: str | None = msgspec.field(default=None, name="continue")

    metadata: Meta = msgspec.field(default_factory=Meta)
    items: list[msgspec.Raw] | None = None


class _Cause(msgspec.Struct, gc=False):
    reason: str | None = None


class _Details(msgspec.Struct, gc=False):
    kind: str | None = None
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct, gc=False):
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


@dataclass(slots=True)
class Counts:
    """Results of requests by method and status code (``none``: no answer), and events that were lost."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    events_lost: int = 0


_page_decoder = msgspec.json.Decoder(Page)
_status_decoder = msgspec.json.Decoder(_Status)
_encode = msgspec.json.Encoder().encode


class Client:
    """An async context manager, on one event loop. ``rate`` and ``burst``: requests per second, 0: no limit.

    ``counts``: results of requests so far.
    """

    def __init__(
        self,
        access: Access,
        *,
        caps: Caps | None = None,
        rate: float = 0.0,
        burst: float = 1.0,
        connections_max: int = 64,
    ) -> None:
        self.access = access
        self.caps = caps or Caps()
        self.counts = Counts()
        self._bucket = TokenBucket(rate, burst)
        self._connections_max = connections_max
        self._may_write: Callable[[], bool] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._unknown = False  # the server refused the credentials; the next request asks for new ones

    async def __aenter__(self) -> Client:
        self._session = self.access.session(self._connections_max)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def fenced(self, may_write: Callable[[], bool]) -> Client:
        """Return a client on the same connections that sends nothing but reads while ``may_write()`` is False.

        To be called when this client is open.
        """
        made = copy(self)
        made._may_write = may_write
        return made

    # -- requests ----------------------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = JSON,
        retries: Retries = ONCE,
        timeout_s: float | None = None,
        urgent: bool = False,
    ) -> bytes:
        """Send a request, retried as ``retries`` says. Waits for the time in Retry-After.

        ``urgent`` requests do not wait for the rate limit. Raises: ApiError, Unreachable, TooLarge, NotAllowed.
        """
        backoff = Backoff(retries.first_s, retries.last_s)
        data = None if body is None else _encode(body)
        left = retries.count
        renewed = False
        while True:
            if not urgent:
                await self._bucket.take()
            # Right before each attempt: a process may have been stopped for longer than its leadership lasts.
            if self._may_write is not None and method != "GET" and not self._may_write():
                raise NotAllowed(f"{method} {path}")
            try:
                return await self._once(method, path, data, params, content_type, timeout_s or self.caps.request_s)
            except ApiError as error:
                if error.status == 401 and not renewed:
                    renewed = True
                    continue
                safe = error.status == 429 or retries.unsure  # 429: the server did nothing
                if left <= 0 or not (error.may_pass and safe):
                    raise
                delay = backoff.next(error.retry_after_s)
            except Unreachable as error:
                if left <= 0 or (error.maybe_applied and not retries.unsure):
                    raise
                delay = backoff.next()
            left -= 1
            await asyncio.sleep(delay)

    async def get(self, path: str, *, retries: Retries = FOR_READS, **options: Any) -> Any:
        """Return the decoded object."""
        return decoded(await self.request("GET", path, retries=retries, **options), f"GET {path}")

    async def post(self, path: str, body: object, *, retries: Retries = FOR_CREATES, **options: Any) -> bytes:
        return await self.request("POST", path, body, retries=retries, **options)

    async def put(self, path: str, body: object, *, retries: Retries = ONCE, **options: Any) -> Any:
        return decoded(await self.request("PUT", path, body, retries=retries, **options), f"PUT {path}")

    async def patch(
        self,
        path: str,
        body: object,
        *,
        content_type: str = MERGE_PATCH,
        retries: Retries = FOR_REPEATABLE,
        **options: Any,
    ) -> bytes:
        return await self.request("PATCH", path, body, content_type=content_type, retries=retries, **options)

    async def delete(self, path: str, *, uid: str = "", retries: Retries = FOR_REPEATABLE, **options: Any) -> bytes:
        """Delete the object, only if it still has this UID."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}} if uid else None
        return await self.request("DELETE", path, body, retries=retries, **options)

    # -- lists and watches -------------------------------------------------------------------------------------------

    async def pages(self, path: str, params: Mapping[str, str] | None = None) -> AsyncGenerator[Page, None]:
        """Yield a list page by page. Raises: as ``request``; ApiError 410 if it took too long."""
        query = {**(params or {}), "limit": str(self.caps.page_items)}
        while True:
            raw = await self.request("GET", path, params=query, retries=FOR_READS)
            try:
                page = _page_decoder.decode(raw)
            except NO_JSON as error:
                raise Garbage(f"GET {path}", str(error)) from None
            yield page
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[list[bytes], None]:
        """Yield the lines of a watch in batches as they arrive, first an empty one, until the server ends it.

        Raises: as ``request``.
        """
        what = f"WATCH {path}"
        splitter = LineSplitter(what, self.caps.line_bytes)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.caps.connect_s, sock_read=self.caps.idle_s)
        await self._bucket.take()
        try:
            async with self._exchange("GET", path, None, {**params, "watch": "1"}, JSON, timeout) as answer:
                self.counts.answers["WATCH", str(answer.status)] += 1
                if answer.status != 200:
                    await self._refuse(answer, what)
                yield []
                async for chunk in answer.content.iter_any():
                    lines = splitter.feed(chunk)
                    if lines:
                        yield lines
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.counts.answers["WATCH", NO_ANSWER] += 1
            raise Unreachable(what, _why(error), True) from None

    async def version(self) -> str:
        """Return the server's version, such as ``v1.36.3``. This should be the first request.

        Raises: AccessError, which says in one line what is wrong with the access.
        """
        server = f"the API server {self.access.url}" + (f" (from {self.access.whence})" if self.access.whence else "")
        try:
            found = await self.get("/version", retries=ONCE)
        except Unreachable as error:
            raise AccessError(f"{server} does not answer: {error.why}") from None
        except ApiError as error:
            if error.status == 401:
                why = f"{server} does not accept these credentials, perhaps they have expired: {error.message}"
                raise AccessError(why) from None
            raise AccessError(f"{server}: {error}") from None
        except KubeError as error:
            raise AccessError(f"{server}: {error}") from None
        return str(found.get("gitVersion", "")) if isinstance(found, dict) else ""

    async def served(self, kind: Kind, subresource: str = "") -> bool:
        """Return True if the server has this kind, or this subresource of it, now. Source: discovery."""
        name = f"{kind.plural}/{subresource}" if subresource else kind.plural
        try:
            found = await self.get(kind.version_path)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        resources = found.get("resources") if isinstance(found, dict) else None
        return any(isinstance(each, dict) and each.get("name") == name for each in resources or ())

    async def versions(self, group: str) -> list[str]:
        """Return the versions of an API group that the server has now, none if it has no such group. Source:
        discovery."""
        try:
            found = await self.get(f"/apis/{group}")
        except ApiError as error:
            if error.status == 404:
                return []
            raise
        listed = found.get("versions") if isinstance(found, dict) else None
        names = [each.get("version") for each in listed or () if isinstance(each, dict)]
        return [name for name in names if isinstance(name, str)]

    # -- pieces ------------------------------------------------------------------------------------------------------

    async def _once(
        self,
        method: str,
        path: str,
        data: bytes | None,
        params: Mapping[str, str] | None,
        content_type: str,
        timeout_s: float,
    ) -> bytes:
        what = f"{method} {path}"
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=self.caps.connect_s)
        try:
            async with self._exchange(method, path, data, params, content_type, timeout) as answer:
                self.counts.answers[method, str(answer.status)] += 1
                if answer.status >= 300:
                    await self._refuse(answer, what)
                return await self._read(answer, what, self.caps.answer_bytes)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.counts.answers[method, NO_ANSWER] += 1
            raise Unreachable(what, _why(error), not isinstance(error, _NEVER_SENT)) from None

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        path: str,
        data: bytes | None,
        params: Mapping[str, str] | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        assert self._session is not None, "use the client as an async context manager"
        renew, self._unknown = self._unknown, False
        headers = {
            "Accept": JSON,
            "Accept-Encoding": "identity",
            "User-Agent": "pumice",
            **await self.access.headers(renew),
        }
        if data is not None:
            headers["Content-Type"] = content_type
        answer = await self._session.request(
            method,
            self.access.url + path,
            data=data,
            params=params,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            server_hostname=self.access.server_name,
        )
        try:
            self._unknown |= answer.status == 401
            yield answer
        finally:
            if answer.connection is not None and answer.connection.transport is not None:
                answer.connection.transport.abort()  # not read to its end; TLS would wait for the peer's goodbye
            answer.release()

    async def _read(self, answer: aiohttp.ClientResponse, what: str, bytes_max: int) -> bytes:
        length = answer.content_length
        if length is not None and length > bytes_max:
            raise TooLarge(what, bytes_max)
        parts, size = [], 0
        async for chunk in answer.content.iter_any():
            size += len(chunk)
            if size > bytes_max:
                raise TooLarge(what, bytes_max)
            parts.append(chunk)
        return b"".join(parts)

    async def _refuse(self, answer: aiohttp.ClientResponse, what: str) -> NoReturn:
        raw = await self._read(answer, what, 1 << 20)
        try:
            said = _status_decoder.decode(raw)
        except NO_JSON:
            said = _Status(None, raw[:200].decode(errors="replace"))
        details = said.details or _Details()
        raise ApiError(
            answer.status,
            said.reason or "",
            said.message or "",
            what,
            _retry_after(answer.headers.get("Retry-After")),
            causes=tuple(cause.reason or "" for cause in details.causes or ()),
            kind=details.kind or "",
        )


def decoded(raw: bytes, what: str) -> Any:
    """Return decoded JSON. Raises: Garbage."""
    try:
        return msgspec.json.decode(raw)
    except NO_JSON as error:
        raise Garbage(what, str(error)) from None


def _retry_after(text: str | None) -> float | None:
    """Return seconds, from a number or a date, or None."""
    if not text:
        return None
    if text.isdecimal():
        return float(text) if len(text) < 6 else None
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except ValueError:
        return None


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return str(error) or type(error).__name__
