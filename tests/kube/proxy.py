"""A proxy on loopback between a client and the API server that fails on purpose.

``proxy.on("POST", r"/binding$", answer(409), times=1)`` fails the next binding; anything else passes. Plain HTTP in
front, whatever the server speaks behind; the client's Authorization header is passed on.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from pumice.kube.api.access import Connector

_HOP = {"host", "connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive"}


@dataclass(slots=True)
class Exchange:
    """One request on its way: what a fault can do with it."""

    proxy: FaultProxy
    request: web.Request
    body: bytes

    async def forward(self) -> tuple[int, bytes]:
        """Have the server carry it out."""
        async with self.proxy.send(self.request, self.body) as answer:
            return answer.status, await answer.read()

    def hang_up(self) -> None:
        """Close the connection without an answer."""
        if self.request.transport is not None:
            self.request.transport.abort()


Fault = Callable[[Exchange], Awaitable[web.StreamResponse | None]]


@dataclass(slots=True)
class Rule:
    method: str
    path: re.Pattern[str]
    fault: Fault
    times: int
    hits: int = 0


def answer(status: int, reason: str = "", message: str = "made by the proxy", **headers: str) -> Fault:
    """A Status of the API server's kind, without asking it."""

    async def fault(exchange: Exchange) -> web.StreamResponse:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": reason,
            "message": message,
            "code": status,
        }
        return web.json_response(body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return fault


def lose_answer() -> Fault:
    """Applied by the server, but the client never hears of it."""

    async def fault(exchange: Exchange) -> None:
        await exchange.forward()
        exchange.hang_up()

    return fault


def lose_request() -> Fault:
    """The connection ends before the server hears of it."""

    async def fault(exchange: Exchange) -> None:
        exchange.hang_up()

    return fault


def hang(seconds: float, applied: bool = False) -> Fault:
    """No answer for so long, or until the proxy closes; then the connection ends."""

    async def fault(exchange: Exchange) -> None:
        if applied:
            await exchange.forward()
        await exchange.proxy.closing(seconds)
        exchange.hang_up()

    return fault


def meanwhile(do: Callable[[], Awaitable[object]]) -> Fault:
    """Something else happens before the server hears of it; then its own answer."""

    async def fault(exchange: Exchange) -> web.StreamResponse:
        await do()
        status, body = await exchange.forward()
        return web.Response(status=status, body=body, content_type="application/json")

    return fault


def send_first(*chunks: bytes, then_pass: bool = False) -> Fault:
    """A 200 that streams these bytes, as on a watch; then the end, or the server's own stream."""

    async def fault(exchange: Exchange) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(exchange.request)
        for chunk in chunks:
            await response.write(chunk)
        if then_pass:
            await exchange.proxy.stream(exchange.request, exchange.body, response)
        return response

    return fault


def endless(chunk: bytes = b"x" * 65_536, chunks: int = 80_000) -> Fault:
    """A line that does not end, 5 GB long as it is; stops when the client hangs up."""

    async def fault(exchange: Exchange) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(exchange.request)
        for _ in range(chunks):
            exchange.proxy.bytes_sent += len(chunk)
            await response.write(chunk)
        return response

    return fault


def watch_event(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


GONE = watch_event(
    "ERROR",
    {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410},
)


class FaultProxy:
    """``requests`` lists (method, path with query) of all that came by."""

    def __init__(self, url: str, ssl_context: Any) -> None:
        self.upstream = url
        self.ssl_context = ssl_context
        self.rules: list[Rule] = []
        self.requests: list[tuple[str, str]] = []
        self.bytes_sent = 0
        self.port = 0
        self._closing = asyncio.Event()
        self._open: list[web.Request] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def on(self, method: str, path: str, fault: Fault, times: int = 1) -> Rule:
        """Have ``fault`` deal with the next so many requests whose path and query match."""
        rule = Rule(method, re.compile(path), fault, times)
        self.rules.append(rule)
        return rule

    def cut(self, path: str = "") -> int:
        """Cut the open exchanges whose path and query match, as a broken network does. Returns how many there were."""
        found = [r for r in self._open if re.search(path, r.raw_path) and r.transport is not None]
        for request in found:
            if request.transport is not None:
                request.transport.abort()
        return len(found)

    async def closing(self, seconds: float) -> None:
        """Wait until the proxy closes, at most so long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    def count(self, method: str, path: str) -> int:
        return sum(m == method and re.search(path, p) is not None for m, p in self.requests)

    def send(self, request: web.Request, body: bytes) -> Any:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        return self._session.request(
            request.method,
            self.upstream + request.raw_path,
            data=body or None,
            headers=headers,
            ssl=self.ssl_context,
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def stream(
        self, request: web.Request, body: bytes, response: web.StreamResponse | None = None
    ) -> web.StreamResponse:
        async with self.send(request, body) as found:
            if response is None:
                headers = {k: v for k, v in found.headers.items() if k.lower() not in _HOP}
                response = web.StreamResponse(status=found.status, headers=headers)
                await response.prepare(request)
            async for chunk in found.content.iter_any():
                await response.write(chunk)
        return response

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.raw_path))
        self._open.append(request)
        try:
            for rule in self.rules:
                if rule.hits < rule.times and rule.method == request.method and rule.path.search(request.raw_path):
                    rule.hits += 1
                    made = await rule.fault(Exchange(self, request, body))
                    return made if made is not None else web.Response()
            return await self.stream(request, body)
        except (aiohttp.ClientError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        finally:
            self._open.remove(request)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[FaultProxy]:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        async with aiohttp.ClientSession(auto_decompress=True, connector=Connector(limit=0)) as self._session:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.port = runner.addresses[0][1]
            try:
                yield self
            finally:
                self._closing.set()
                await runner.cleanup()
