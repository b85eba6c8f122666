"""Sources of usage, asked over HTTP on loopback: each protocol, and invalid answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from pumice.model.events import Event, Gone, Seen
from pumice.model.node import Node
from pumice.model.usage import NodeUsage
from pumice.runtime.usage.asking import HttpAsk, SourceError
from pumice.runtime.usage.feed import UsageFeed, of_nodes
from pumice.runtime.usage.settings import SourceSettings, source_problems
from pumice.runtime.usage.sources import source_of
from pumice.testing.build import node

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
NODES = [node("a", 4, "8Gi"), node("b", 4, "8Gi"), node("c", 4, "8Gi")]


@asynccontextmanager
async def answering(handler: Handler, **settings: Any) -> AsyncIterator[SourceSettings]:
    """A server on loopback that answers everything in one way, and the settings that name it."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(application, host="127.0.0.1") as server:
        yield SourceSettings(**{"type": "prometheus", "address": str(server.make_url("")), **settings})


async def measured(settings: SourceSettings, **limits: Any) -> dict[str, tuple[float, float]]:
    async with HttpAsk(settings, **limits) as ask:
        return dict(await source_of(settings)(ask, NODES))


def vector(**values: str) -> dict[str, Any]:
    found = [{"metric": {"instance": name.replace("__", ":")}, "value": [1.5, text]} for name, text in values.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": found}}


# -- each protocol


async def test_prometheus_is_asked_twice_for_all_nodes() -> None:
    queries = []

    async def handler(request: web.Request) -> web.Response:
        assert (request.method, request.path) == ("GET", "/prefix/api/v1/query")
        queries.append(request.query["query"])
        is_cpu = "node_cpu_seconds_total" in queries[-1]
        values = {"a": "30.5", "b__9100": "60", "stranger": "1"} if is_cpu else {"a": "50", "b__9100": "NaN"}
        return web.json_response(vector(**values))

    async with answering(handler) as settings:
        settings = replace(settings, address=settings.address.rstrip("/") + "/prefix/")
        assert await measured(settings) == {"a": (30.5, 50.0)}
    assert len(queries) == 2


async def test_elasticsearch_is_asked_once_with_the_password() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert (request.method, request.path) == ("POST", "/beats-*/_search")
        assert request.headers["Authorization"] == "Basic dTpw"
        body = await request.json()
        assert body["aggs"]["by_node"]["terms"]["field"] == "node.name"
        buckets = [
            {"key": "a", "doc_count": 9, "cpu": {"value": 0.25}, "memory": {"value": 0.5}},
            {"key": "b", "doc_count": 9, "cpu": {"value": None}, "memory": {"value": 0.5}},
        ]
        return web.json_response({"took": 1, "aggregations": {"by_node": {"buckets": buckets}}})

    more = {"index": "beats-*", "host_field": "node.name", "username": "u", "password": "p"}
    async with answering(handler, type="elasticsearch", **more) as settings:
        assert await measured(settings) == {"a": (25.0, 50.0)}


async def test_metrics_of_the_api_server() -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.path == "/apis/metrics.k8s.io/v1beta1/nodes":
            items = [{"metadata": {"name": "a"}, "window": "20s", "usage": {"cpu": "500000000n", "memory": "2Gi"}}]
            return web.json_response({"kind": "NodeMetricsList", "items": items})
        value = "250m" if request.path.endswith("node_cpu_usage_avg") else "500m"
        assert request.path.startswith("/apis/custom.metrics.k8s.io/v1beta1/nodes/*/")
        return web.json_response({"items": [{"describedObject": {"kind": "Node", "name": "a"}, "value": value}]})

    async with answering(handler) as settings:
        assert await measured(replace(settings, type="metrics_server")) == {"a": (12.5, 25.0)}
        assert await measured(replace(settings, type="prometheus_adaptor")) == {"a": (25.0, 50.0)}


# -- invalid answers


def body_of(content: bytes, status: int = 200, **headers: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=content, status=status, headers=headers)

    return handler


REFUSED = b'{"status":"error","data":{"resultType":"vector","result":[]}}'


async def without_end(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    while True:
        await answer.write(b" " * (1 << 16))


async def says_five_gigabytes(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Length": str(5 << 30)})
    await answer.prepare(request)
    while True:
        await answer.write(b"x" * (1 << 16))


async def hangs(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        pytest.param(without_end, "more than 200,000 bytes", id="bytes without end"),
        pytest.param(says_five_gigabytes, "more than 200,000 bytes", id="five gigabytes"),
        pytest.param(hangs, "no answer within 0.05 s", id="hangs"),
        pytest.param(body_of(b"<html>"), "cannot be read", id="no JSON"),
        pytest.param(body_of(b"[" * 100_000), "cannot be read", id="brackets without end"),
        pytest.param(body_of(b"{}"), "cannot be read", id="another object"),
        pytest.param(
            body_of(b'{"status":"error","data":{"resultType":"vector","result":[]}}'), "answered 'error'", id="an error"
        ),
        pytest.param(body_of(b"\xff\xfe"), "cannot be read", id="no text"),
        pytest.param(body_of(b"no", 503), "answered 503", id="unavailable"),
        pytest.param(body_of(b"", 302, Location="http://127.0.0.1:1/"), "answered 302", id="sends elsewhere"),
        pytest.param(body_of(b"\x1f\x8b" + b"\0" * 40, **{"Content-Encoding": "gzip"}), "cannot be read", id="packed"),
    ],
)
async def test_an_answer_is_bounded_and_nonsense_is_an_error(handler: Handler, said: str) -> None:
    async with answering(handler) as settings:
        with pytest.raises(SourceError, match=said):
            await measured(settings, bytes_max=200_000, within_s=0.05 if handler is hangs else 10.0)


async def test_numbers_that_cannot_be_leave_a_node_out() -> None:
    values = {"a": "Infinity", "b": "-1", "c": "five"}
    async with answering(body_of(json.dumps(vector(**values)).encode())) as settings:
        assert await measured(settings) == {}


# -- round after round


class World:
    """The nodes, a clock, and what was reported."""

    def __init__(self) -> None:
        self.nodes: list[Node] = [*NODES]
        self.now, self.reports, self.answers = 100.0, list[Event](), dict[str, Any]()

    def feed(self, **more: Any) -> UsageFeed:
        return UsageFeed(
            of_nodes(dict), lambda: self.nodes, self.reports.extend, lambda: self.now, of_api_server=self.ask, **more
        )

    async def ask(self, path: str, body: Any = None) -> bytes:
        answer: bytes | Exception = self.answers["now"]
        if isinstance(answer, Exception):
            raise answer
        return answer


SETTINGS = SourceSettings("metrics_server")
GOOD = b'{"items":[{"metadata":{"name":"a"},"usage":{"cpu":"1","memory":"4Gi"}}]}'


async def test_what_was_measured_last_stays_when_a_round_fails() -> None:
    world, took = World(), list[float]()
    feed = world.feed(timed=took.append)
    world.answers["now"] = GOOD
    await feed.round(SETTINGS)
    assert world.reports == [Seen(NodeUsage("a", 25.0, 50.0, 100.0))]
    for wrong in (b"nonsense", SourceError("no answer"), RuntimeError("a fault")):
        world.answers["now"], world.now = wrong, world.now + 30
        await feed.round(SETTINGS)
        assert feed.trouble
    assert (len(world.reports), feed.measured_at, len(took)) == (1, 100.0, 4)
    world.answers["now"] = GOOD
    await feed.round(SETTINGS)
    assert (world.reports[-1], feed.trouble) == (Seen(NodeUsage("a", 25.0, 50.0, 190.0)), "")


async def test_a_node_that_is_gone_is_forgotten() -> None:
    world = World()
    feed = world.feed()
    world.answers["now"] = GOOD
    await feed.round(SETTINGS)
    world.nodes = world.nodes[1:]
    await feed.round(SETTINGS)
    assert world.reports[-1] == Gone(NodeUsage, "a")


async def test_without_an_api_server_it_says_so() -> None:
    world = World()
    feed = UsageFeed(of_nodes(dict), lambda: world.nodes, world.reports.extend, lambda: 0.0)
    await feed.round(SETTINGS)
    assert (feed.trouble, world.reports) == ("there is no API server to ask", [])


@pytest.mark.parametrize(
    "metrics",
    [
        {"type": "prometeus", "address": "http://x"},
        {"type": "prometheus"},
        {"type": "prometheus", "address": "file:///etc/passwd"},
        {"type": "prometheus", "address": "http://user:pw@x"},
        {"type": "prometheus", "address": "http://x?query=1"},
        {"type": "prometheus", "address": "http://[x"},
        {"type": "prometheus", "address": 5},
        {"type": "elasticsearch", "address": "http://x", "elasticsearch.index": "../_all/_delete"},
        {"type": "prometheus", "address": "http://x", "interval": "often"},
        {"type": ["prometheus"]},
    ],
)
def test_an_unusable_section_asks_no_source_and_is_reported(metrics: dict[str, Any]) -> None:
    (problem,) = source_problems(metrics)
    assert problem.partition(":")[0] in ("type", "address", "elasticsearch.index", "interval")
    assert "pw" not in problem
    assert SourceSettings.read(metrics) == SourceSettings()


def test_a_section_as_volcano_has_it() -> None:
    metrics = {"type": "prometheus", "address": "https://p:9090", "interval": "15s", "tls.insecureSkipVerify": "true"}
    assert SourceSettings.read(metrics) == SourceSettings("prometheus", "https://p:9090", 15.0, verify=False)
    assert SourceSettings.read({"type": "prometheus", "address": "http://p", "interval": "1ns"}).interval_s == 1.0
