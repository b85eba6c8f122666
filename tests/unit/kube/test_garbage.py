"""A server may send anything: each malformed answer is reported as such, and none raises an internal error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from pumice.kube.api.access import Access
from pumice.kube.api.client import ONCE, Client
from pumice.kube.api.codec import BadObject, Codec, read_bookmark, read_event
from pumice.kube.api.errors import ApiError, Garbage
from pumice.kube.api.kinds import FOLLOWED, PODS
from pumice.kube.writers.pending_writes import is_older, version_of
from pumice.model.manifest import Decoder
from pumice.runtime.serving.listening import ConnectionLimits, Connections, Place, listening

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
HALF = b'{"metadata":{"name":"\\ud800"}}'
WRONG = [
    pytest.param(DEEP, id="100,000 levels"),
    pytest.param(b"[" * 100_000, id="100,000 brackets"),
    pytest.param(b'{"metadata":' + DEEP + b"}", id="levels of metadata"),
    pytest.param(b'{"items":[' + DEEP + b"]}", id="levels in an item"),
    pytest.param(HALF, id="half a character"),
    pytest.param(b"\xff\xfe", id="no text"),
    pytest.param(b"9" * 10_000, id="a number of 10,000 digits"),
    pytest.param(b'{"metadata":{"resourceVersion":' + b"9" * 500 + b"}}", id="a number of 500 digits"),
    pytest.param(b"", id="nothing"),
]
Serve = Callable[[bytes, int], Awaitable[Client]]


@pytest.fixture
async def answering() -> AsyncIterator[Callable[[bytes, int], Client]]:
    """A client of a server that answers everything with this."""
    said: dict[str, bytes | int] = {}

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=said["body"], status=said["code"], content_type="application/json")  # type: ignore[arg-type]

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with listening(app, Place(), Connections(ConnectionLimits())) as url, Client(Access(url)) as client:

        def serve(body: bytes, code: int = 200) -> Client:
            said.update(body=body, code=code)
            return client

        yield serve


@pytest.mark.parametrize("body", [case for case in WRONG if case.id != "a number of 500 digits"])
async def test_an_object_that_is_none(answering: Callable[..., Client], body: bytes) -> None:
    with pytest.raises(Garbage):
        await answering(body).get("/api/v1/pods/x", retries=ONCE)


@pytest.mark.parametrize("body", [case for case in WRONG if case.id != "levels in an item"])
async def test_a_list_that_is_none(answering: Callable[..., Client], body: bytes) -> None:
    with pytest.raises(Garbage):
        async for _ in answering(body).pages("/api/v1/pods"):
            pass


@pytest.mark.parametrize("body", WRONG)
async def test_a_refusal_that_says_nothing(answering: Callable[..., Client], body: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        await answering(body, 403).get("/api/v1/pods/x", retries=ONCE)
    assert refused.value.status == 403
    assert refused.value.message.isprintable()


@pytest.mark.parametrize("body", WRONG)
def test_an_event_that_is_none(body: bytes) -> None:
    with pytest.raises(Garbage):
        read_event(body, "WATCH pods")
    for kind in (b"ADDED", b"ERROR"):
        try:
            event = read_event(b'{"type":"%s","object":%s}' % (kind, body), "WATCH pods")
        except (Garbage, ApiError):
            continue
        with pytest.raises((Garbage, BadObject)):
            read_bookmark(event.object, "WATCH pods")
            Codec(PODS, Decoder()).read(event.object)


@pytest.mark.parametrize("body", WRONG)
@pytest.mark.parametrize("kind", FOLLOWED, ids=lambda kind: kind.plural)
def test_an_object_of_a_kind_that_is_none(body: bytes, kind: object) -> None:
    with pytest.raises(BadObject):
        Codec(kind, Decoder()).read(body)  # type: ignore[arg-type]


def test_a_fault_of_a_reader_is_an_object_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(Decoder, "read_as", faulty)
    with pytest.raises(BadObject) as refused:
        Codec(PODS, Decoder()).read(b'{"metadata":{"namespace":"a","name":"b","resourceVersion":"7"}}')
    assert (refused.value.key, refused.value.version) == ("a/b", "7")
    assert "unexpected error: ZeroDivisionError: a fault" in refused.value.why


@pytest.mark.parametrize("body", WRONG)
def test_the_version_of_an_answer_that_is_none(body: bytes) -> None:
    assert version_of(body) == ""


def test_versions_of_any_length_are_compared() -> None:
    assert is_older("9" * 5000, "1" + "0" * 5000)
    assert not is_older("9" * 5000, "9" * 5000)
    assert is_older("9", "10")
