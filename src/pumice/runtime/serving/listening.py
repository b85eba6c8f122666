"""An HTTP application on a port, with limits that no client can circumvent.

aiohttp bounds the size of a request's head and body, but not their time: a connection that sends nothing is kept for an
hour. Here every connection has a deadline for its next part (a head, a body, reading the answer), their number is
bounded, and when all are in use, a new one displaces the one that has been idle longest.
"""

from __future__ import annotations

import asyncio
import math
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import cast

from aiohttp import web
from aiohttp.streams import StreamReader
from msgspec import Struct

_SWEEP_S = 1.0
_HANDSHAKE_S = 10.0
_STOP_S = 1.0
_BACKLOG = 1024
_ACCEPTED_AT_ONCE = 16  # before surplus ones are closed, because file descriptors are few
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Place(Struct, frozen=True):
    """Where to listen. ``port`` 0: any free one. Without ``tls``: plain HTTP."""

    address: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None


class ConnectionLimits(Struct, frozen=True):
    """Limits of connections. Times are in seconds.

    * ``at_work``: connections with a request in progress. ``spare``: further ones that are accepted, so that health
      pages are answered when all others are in use.
    * ``head_s``: for the head of a request. ``body_s``: for its body. ``idle_s``: between requests.
    * ``stall_s``: in this time a client must read at least ``stall_bytes`` of what waits for it.
    """

    at_work: int = 1_000
    spare: int = 16
    head_s: float = 10.0
    body_s: float = 30.0
    idle_s: float = 60.0
    stall_s: float = 30.0
    stall_bytes: int = 16 << 10

    @property
    def open(self) -> int:
        """Number of connections, with a request or not."""
        return self.at_work + self.spare


def connections_here(wanted: int) -> int:
    """Return the wanted number of connections, or half of this process's file descriptors if that is less."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft // 2)


class Connections:
    """All connections of one listener. ``always``: paths that are answered however many requests are in progress.

    ``busy``: the answer to a surplus request. ``clock``: seconds; by default the event loop's.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        always: Collection[str] = (),
        busy: Callable[[], web.Response] = lambda: web.Response(status=503, text="busy\n"),
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.limits = limits
        self.clock = clock or asyncio.get_running_loop().time
        self._always, self._busy = always, busy
        self._open: dict[asyncio.BaseTransport, _Guarded] = {}
        self._idle: dict[_Guarded, None] = {}  # the longest idle first
        self._at_work = 0
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def guarded(self, inner: asyncio.Protocol) -> asyncio.Protocol:
        """Return the protocol for a new connection, which delegates to ``inner``."""
        return _Guarded(inner, self)

    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A middleware that tracks which connections have a request in progress."""
        found = self._open.get(request.transport) if request.transport is not None else None
        if found is None:  # gone already
            return await handler(request)
        if self._at_work >= self.limits.at_work and request.path not in self._always:
            answer = self._busy()
            answer.force_close()
            return answer
        self._at_work += 1
        self._idle.pop(found, None)
        found.begin(request.content)
        try:
            return await handler(request)
        finally:
            self._at_work -= 1
            if found.end():
                self._idle[found] = None

    def sweep(self) -> None:
        """End every connection whose time is over."""
        now = self.clock()
        for connection in list(self._open.values()):
            connection.check(now)

    # -- called by connections

    def opened(self, connection: _Guarded, transport: asyncio.BaseTransport) -> None:
        """Add a connection. If there are too many, the one that has been idle longest is ended."""
        self._open[transport] = connection
        self._idle[connection] = None
        while len(self._open) > self.limits.open:
            next(iter(self._idle)).abort()  # it is removed at once, however long its end takes
        if self._sweeping is None:
            self._sweep_later()

    def closed(self, connection: _Guarded, transport: asyncio.BaseTransport) -> None:
        self._open.pop(transport, None)
        self._idle.pop(connection, None)

    def _sweep_later(self) -> None:
        """Schedule a sweep per second while there are connections."""

        def sweep() -> None:
            self._sweeping = None
            self.sweep()
            if self._open:
                self._sweep_later()

        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_S, sweep)


class _Guarded(asyncio.Protocol):
    """A connection: everything is passed on, and ``check`` ends it when it takes too long."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner, self._all = inner, connections
        self._transport: asyncio.Transport | None = None
        self._owed_by = math.inf  # deadline for its next part
        self._body: StreamReader | None = None  # while a request is being answered
        self._in_head = False
        self._stalled: tuple[float, int] | None = None  # when the client should have read, and how much waited then

    # -- requests

    def begin(self, body: StreamReader) -> None:
        """A head is complete."""
        self._body, self._in_head = body, False
        self._owed_by = math.inf if body.is_eof() else self._all.clock() + self._all.limits.body_s

    def end(self) -> bool:
        """A request was answered. Return True if the connection still exists."""
        self._body = None
        self._owed_by = self._all.clock() + self._all.limits.idle_s
        return self._transport is not None

    def check(self, now: float) -> None:
        """End the connection if its time is over."""
        if now >= self._owed_by:
            if self._body is None or not self._body.is_eof():
                self.abort()
            else:
                self._owed_by = math.inf
        if self._stalled is not None and self._transport is not None:
            since, waited = self._stalled
            if now >= since + self._all.limits.stall_s:
                waiting = self._transport.get_write_buffer_size()
                if waited - waiting < self._all.limits.stall_bytes:
                    self.abort()
                else:
                    self._stalled = now, waiting

    def abort(self) -> None:
        if self._transport is not None:
            self._all.closed(self, self._transport)
            self._transport.abort()

    # -- asyncio's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._owed_by = self._all.clock() + self._all.limits.head_s
        self._inner.connection_made(transport)
        self._all.opened(self, transport)

    def data_received(self, data: bytes) -> None:
        if self._body is None and not self._in_head:
            self._in_head = True
            self._owed_by = min(self._owed_by, self._all.clock() + self._all.limits.head_s)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        assert self._transport is not None
        self._stalled = self._all.clock(), self._transport.get_write_buffer_size()
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._stalled = None
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            self._all.closed(self, transport)
        self._inner.connection_lost(exc)


@asynccontextmanager
async def listening(
    app: web.Application,
    place: Place,
    connections: Connections,
    *,
    header_bytes: int = 8 << 10,
) -> AsyncIterator[str]:
    """Serve an application. Yields its URL. Requests in progress get a second at the end.

    A handler is cancelled when its client leaves. Bodies are taken as they are: a compressed one is not unpacked.
    Raises: OSError if the address or the port is not available.
    """

    @web.middleware
    async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await connections.admit(request, handler)

    app.middlewares.insert(0, admit)
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=_STOP_S,
        max_line_size=header_bytes,
        max_field_size=header_bytes,
        auto_decompress=False,
    )
    await runner.setup()
    server = None
    try:
        talk = runner.server
        assert talk is not None
        server = await asyncio.get_running_loop().create_server(
            lambda: connections.guarded(talk()),
            place.address or None,
            place.port,
            ssl=place.tls,
            backlog=_ACCEPTED_AT_ONCE,
            ssl_handshake_timeout=_HANDSHAKE_S if place.tls else None,
        )
        for sock in server.sockets:  # asyncio has one number for what it accepts at once and what the kernel keeps
            with socket.socket(fileno=os.dup(sock.fileno())) as same:
                same.listen(_BACKLOG)
        yield _url(place, server.sockets[0].getsockname())
    finally:
        if server is not None:
            server.close()
        await runner.cleanup()


def _url(place: Place, taken: tuple[str, int]) -> str:
    """Return a URL that can be opened from this machine. ``taken``: the actual address and port."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(taken[0], taken[0])
    return f"{'https' if place.tls else 'http'}://{f'[{address}]' if ':' in address else address}:{taken[1]}"
