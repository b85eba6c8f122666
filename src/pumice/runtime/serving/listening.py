"""An HTTP application on a port, behind limits that no client can talk its way around.

aiohttp bounds how large a request's head and body are, not how long a client takes over them: a connection that says
nothing is kept for an hour. Here every connection has a deadline for what it owes next (a head, a body, reading what
it asked for), there are only so many, and who comes when all are taken displaces the one that has been idle longest.
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
_ACCEPTED_AT_ONCE = 16  # before those that are too many are closed: file descriptors are few
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Place(Struct, frozen=True):
    """Where to listen. ``port`` 0: any that is free. Without ``tls`` it is plain HTTP."""

    address: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None


class ConnectionLimits(Struct, frozen=True):
    """How many connections there may be, and how long each may take, in seconds.

    * ``at_work``: connections with a request that is being answered. ``spare``: further ones that are accepted, so that
      health pages are answered when all others are taken.
    * ``head_s``: for the head of a request. ``body_s``: for its body. ``idle_s``: between requests.
    * ``stall_s``: in this time a client reads at least ``stall_bytes`` of what waits for it.
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
        """Connections, at work or not."""
        return self.at_work + self.spare


def connections_here(wanted: int) -> int:
    """As many connections as are wanted, or as leave half of this process's file descriptors for everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft // 2)


class Connections:
    """All connections of one listener. ``always``: paths that are answered however many are at work.

    ``busy``: the answer to a request that is one too many. ``clock``: seconds; the event loop's where none is given.
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
        self._idle: dict[_Guarded, None] = {}  # longest first
        self._at_work = 0
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def guarded(self, inner: asyncio.Protocol) -> asyncio.Protocol:
        """The protocol for a new connection: ``inner`` does the talking."""
        return _Guarded(inner, self)

    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A middleware: it knows when a connection is at work."""
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

    # -- what connections tell

    def opened(self, connection: _Guarded, transport: asyncio.BaseTransport) -> None:
        """One more. Of those that do nothing the one that has been idle longest goes where there are too many."""
        self._open[transport] = connection
        self._idle[connection] = None
        while len(self._open) > self.limits.open:
            next(iter(self._idle)).abort()  # it is forgotten at once, however long its end takes
        if self._sweeping is None:
            self._sweep_later()

    def closed(self, connection: _Guarded, transport: asyncio.BaseTransport) -> None:
        self._open.pop(transport, None)
        self._idle.pop(connection, None)

    def _sweep_later(self) -> None:
        """Once a second while there are connections."""

        def sweep() -> None:
            self._sweeping = None
            self.sweep()
            if self._open:
                self._sweep_later()

        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_S, sweep)


class _Guarded(asyncio.Protocol):
    """One connection: all that happens to it is handed on, and ``check`` ends it when it takes too long."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner, self._all = inner, connections
        self._transport: asyncio.Transport | None = None
        self._owed_by = math.inf  # when it must have sent what it owes
        self._body: StreamReader | None = None  # while a request is being answered
        self._in_head = False
        self._stalled: tuple[float, int] | None = None  # since when it has to read, and how much waited then

    # -- requests

    def begin(self, body: StreamReader) -> None:
        """A head is complete."""
        self._body, self._in_head = body, False
        self._owed_by = math.inf if body.is_eof() else self._all.clock() + self._all.limits.body_s

    def end(self) -> bool:
        """A request was answered; whether the connection is still there."""
        self._body = None
        self._owed_by = self._all.clock() + self._all.limits.idle_s
        return self._transport is not None

    def check(self, now: float) -> None:
        """End it where its time is over."""
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
    stop_s: float = _STOP_S,
    header_bytes: int = 8 << 10,
) -> AsyncIterator[str]:
    """The application at a place; the value is its URL. Requests under way get a second at the end.

    A handler is cancelled where its client goes. Bodies are taken as they come: a compressed one is not unpacked.
    Raises: OSError where the address or the port cannot be had.
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
    """As it can be opened from here. ``taken``: the address and port that were had."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(taken[0], taken[0])
    return f"{'https' if place.tls else 'http'}://{f'[{address}]' if ':' in address else address}:{taken[1]}"
