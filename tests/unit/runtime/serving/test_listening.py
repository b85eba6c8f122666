"""Connections: however many there are and however slow, there is an end to each, and room for the next."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web

from pumice.runtime.serving.listening import ConnectionLimits, Connections, Place, connections_here, listening

LIMITS = ConnectionLimits(at_work=3, spare=2)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
Half = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class World:
    """A server whose clock does not move, and its clients."""

    now: float = 0.0
    entered: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    connections: Connections = field(init=False)
    opened: list[Half] = field(default_factory=list)

    async def say(self, text: bytes = b"") -> Half:
        """A connection of one's own, which says this and then nothing."""
        _, _, address = self.url.rpartition("/")
        host, _, port = address.partition(":")
        found = await asyncio.open_connection(host, int(port))
        self.opened.append(found)
        if text:
            found[1].write(text)
            await found[1].drain()
        return found

    async def pass_(self, seconds: float) -> None:
        """What can happen by now happens; then it is so much later."""
        for _ in range(20):
            await asyncio.sleep(0)
        self.now += seconds
        self.connections.sweep()
        await asyncio.sleep(0)


def app(world: World) -> web.Application:
    async def ok(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def wait(request: web.Request) -> web.Response:
        world.entered.release()
        await world.let_go.wait()
        return web.Response(text="done")

    async def take(request: web.Request) -> web.Response:
        world.entered.release()
        return web.Response(text=str(len(await request.read())))

    async def large(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        world.entered.release()
        for _ in range(1000):
            await answer.write(b"x" * 65_536)
        return answer

    made = web.Application()
    for path, handler in (("/healthz", ok), ("/", ok), ("/wait", wait), ("/take", take), ("/large", large)):
        made.router.add_route("*", path, handler)
    return made


@asynccontextmanager
async def serving(limits: ConnectionLimits = LIMITS) -> AsyncIterator[World]:
    world = World()
    world.connections = Connections(limits, ("/healthz",), clock=lambda: world.now)
    async with listening(app(world), Place(), world.connections) as world.url:
        yield world
        world.let_go.set()
        for _, writer in world.opened:
            writer.close()


async def until(holds: Callable[[], bool]) -> None:
    """Bytes are on their way through the kernel: looks again until it is so."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0)


async def ended(half: Half) -> bytes:
    """What came before the server closed."""
    async with asyncio.timeout(30):
        try:
            return await half[0].read()
        except ConnectionError:
            return b""


@pytest.mark.parametrize("said", [b"", b"G", HEALTH[:-2]], ids=["nothing", "a letter", "all but the last line"])
async def test_a_head_that_does_not_come_ends_the_connection(said: bytes) -> None:
    async with serving() as world:
        half = await world.say(said)
        await until(lambda: len(world.connections) == 1)
        await world.pass_(LIMITS.head_s - 1)
        assert len(world.connections) == 1
        await world.pass_(1)
        assert await ended(half) == b""
        await until(lambda: not world.connections)


async def test_a_letter_now_and_then_is_no_head() -> None:
    async with serving() as world:
        half = await world.say()
        await until(lambda: len(world.connections) == 1)
        for letter in (b"G", b"E", b"T"):
            half[1].write(letter)
            await half[1].drain()
            await world.pass_(LIMITS.head_s / 3)
        assert await ended(half) == b""


async def test_a_body_that_does_not_come_ends_the_connection() -> None:
    async with serving() as world:
        half = await world.say(b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
        await world.entered.acquire()
        await world.pass_(LIMITS.body_s - 1)
        assert len(world.connections) == 1
        await world.pass_(1)
        assert await ended(half) == b""


async def test_a_request_that_is_complete_may_take_its_time() -> None:
    async with serving() as world:
        half = await world.say(b"POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
        await world.entered.acquire()
        for _ in range(5):
            await world.pass_(1000.0)
        world.let_go.set()
        assert (await ended(half)).endswith(b"done")


async def test_a_connection_between_requests_ends_after_a_while() -> None:
    async with serving() as world:
        half = await world.say(HEALTH)
        assert await half[0].readuntil(b"ok")
        await until(lambda: world.connections._idle != {})
        await world.pass_(LIMITS.idle_s - 1)
        half[1].write(HEALTH)
        assert await half[0].readuntil(b"ok")
        await until(lambda: world.connections._idle != {})
        await world.pass_(LIMITS.idle_s)
        assert await ended(half) == b""


async def test_who_does_not_read_is_not_waited_for() -> None:
    async with serving() as world:
        await world.say(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await world.entered.acquire()
        (connection,) = world.connections._open.values()
        await until(lambda: connection._stalled is not None)
        await world.pass_(LIMITS.stall_s - 1)
        assert len(world.connections) == 1
        await world.pass_(1)
        assert not world.connections


async def test_who_reads_slowly_is_waited_for() -> None:
    async with serving() as world:
        half = await world.say(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await world.entered.acquire()
        size = 0
        while part := await half[0].read(1 << 20):
            size += len(part)
            await world.pass_(LIMITS.stall_s / 20)  # in the end, many times what a silent one gets
        assert size > 65_536_000


async def test_a_newcomer_takes_the_place_of_who_has_been_idle_longest() -> None:
    async with serving() as world:
        halves = []
        for i in range(LIMITS.open):
            halves.append(await world.say(b"GET"))
            await until(lambda wanted=i + 1: len(world.connections) == wanted)
        for i in range(3):
            late = await world.say(HEALTH)
            assert await late[0].readuntil(b"ok")
            assert await ended(halves[i]) == b""
        assert len(world.connections) == LIMITS.open


async def test_health_is_answered_when_all_are_at_work() -> None:
    async with serving() as world:
        for _ in range(LIMITS.at_work):
            await world.say(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
            await world.entered.acquire()
        async with aiohttp.ClientSession(world.url) as client:
            async with client.get("/") as answer:
                assert (answer.status, await answer.text()) == (503, "busy\n")
                assert answer.headers["Connection"] == "close"
            async with client.get("/healthz") as answer:
                assert answer.status == 200
        world.let_go.set()
        await until(lambda: world.connections._at_work == 0)
        async with aiohttp.ClientSession(world.url) as client, client.get("/") as answer:
            assert answer.status == 200


async def test_more_connections_at_once_than_are_taken() -> None:
    async with serving() as world:
        waiting: list[Awaitable[Half]] = [world.say(b"GET") for _ in range(200)]
        await asyncio.gather(*waiting)
        async with aiohttp.ClientSession(world.url) as client, client.get("/healthz") as answer:
            assert answer.status == 200
        assert len(world.connections) <= LIMITS.open


async def test_a_compressed_body_is_not_unpacked() -> None:
    how = {"data": b"x" * 100, "headers": {"Content-Encoding": "gzip"}}
    async with serving() as world, aiohttp.request("POST", f"{world.url}/take", **how) as answer:
        assert (answer.status, await answer.text()) == (200, "100")


def test_connections_leave_descriptors_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    assert connections_here(1000) == 128
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert connections_here(1000) == 1000
