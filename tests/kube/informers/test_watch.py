"""The reflector against a real server: streams and lists, cuts, 410, garbage, kinds that come and go."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Caps, Client
from pumice.kube.api.kinds import HYPER_NODES, PODS, QUEUES
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.topology import HyperNode
from tests.kube.objects import crd, create, hypernode, install_crd, pod, remove_crd
from tests.kube.proxy import GONE, Fault, FaultProxy, answer, endless, send_first, watch_event
from tests.kube.reflecting import FAST, reflecting
from tests.kube.server import ApiServer
from tests.kube.waiting import happens, until


@pytest.mark.parametrize("streaming", [True, False])
async def test_list_then_changes(client: Client, namespace: str, streaming: bool) -> None:
    await create(client, pod(namespace, "a"), pod(namespace, "b"))
    async with reflecting(client, streaming=streaming) as (reflector, mirror):
        await happens(reflector.synced)
        assert reflector.streaming is streaming
        assert mirror.names(namespace) == {"a", "b"}
        await create(client, pod(namespace, "c"))
        await client.patch(PODS.path(f"{namespace}/a"), {"metadata": {"labels": {"x": "y"}}})
        await client.delete(PODS.path(f"{namespace}/b"))
        await until(lambda: mirror.names(namespace) == {"a", "c"})
        await until(lambda: mirror.objects[f"{namespace}/a"].labels.get("x") == "y")  # type: ignore[union-attr]


async def test_a_list_is_read_page_by_page(server: ApiServer, client: Client, namespace: str) -> None:
    await create(client, *(pod(namespace, f"p{i}") for i in range(7)))
    async with Client(bearer(server.url, server.token(), server.ssl_context()), caps=Caps(page_items=3)) as small:
        pages = [page async for page in small.pages(PODS.namespace_path(namespace))]
        assert [len(page.items or ()) for page in pages] == [3, 3, 1]
        async with reflecting(small, streaming=False) as (reflector, mirror):
            await happens(reflector.synced)
            assert len(mirror.names(namespace)) == 7


async def test_a_server_without_initial_events_is_listed(through: Client, proxy: FaultProxy, namespace: str) -> None:
    proxy.on("GET", "sendInitialEvents", answer(422, "Invalid", "sendInitialEvents is forbidden"), times=9)
    async with reflecting(through) as (reflector, _):
        await happens(reflector.synced)
        assert not reflector.streaming
        assert proxy.count("GET", "limit=500") >= 1


async def test_a_cut_watch_goes_on_where_it_was(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "a"))
    async with reflecting(through) as (reflector, mirror):
        await happens(reflector.synced)
        reports = len(mirror.events)
        for name in ("b", "c", "d"):
            assert proxy.cut("watch=1") == 1
            await create(client, pod(namespace, name))
            await until(lambda name=name: name in mirror.names(namespace))  # type: ignore[misc]
        assert reflector.lists == 1
        assert len([e for e in mirror.events[reports:] if isinstance(e, Seen) and e.obj.name == "a"]) == 0


@pytest.mark.parametrize("streaming", [True, False])
async def test_after_410_the_difference_is_reported(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, streaming: bool
) -> None:
    await create(client, *(pod(namespace, name) for name in ("stays", "goes", "changes", "reborn")))
    async with reflecting(through, streaming=streaming) as (reflector, mirror):
        await happens(reflector.synced)
        before = mirror.objects[f"{namespace}/reborn"]
        blocked = proxy.on("GET", "watch=1.*resourceVersion=|resourceVersion=.*watch=1", answer(503), times=10**6)
        listing = proxy.on("GET", "limit=500|sendInitialEvents", answer(503), times=10**6)
        proxy.cut("watch=1")
        await client.delete(PODS.path(f"{namespace}/goes"))
        await client.delete(PODS.path(f"{namespace}/reborn"))
        await create(client, pod(namespace, "reborn"), pod(namespace, "new"))
        await client.patch(PODS.path(f"{namespace}/changes"), {"metadata": {"labels": {"x": "y"}}})
        reports = len(mirror.events)
        blocked.fault, blocked.times = send_first(GONE), blocked.hits + 1
        listing.times = 0
        await until(lambda: reflector.lists == 2)
        await until(lambda: mirror.names(namespace) == {"stays", "changes", "reborn", "new"})
        news = [e for e in mirror.events[reports:] if f"{namespace}/" in (e.key if isinstance(e, Gone) else e.obj.key)]  # type: ignore[union-attr]
        assert [e for e in news if isinstance(e, Gone) and e.key.endswith("/goes")] == [Gone(Pod, f"{namespace}/goes")]
        reborn = [e for e in news if (e.key if isinstance(e, Gone) else e.obj.key).endswith("/reborn")]  # type: ignore[union-attr]
        assert [type(e) for e in reborn] == [Gone, Seen]
        assert mirror.objects[f"{namespace}/reborn"].uid != before.uid  # type: ignore[union-attr]
        assert not [e for e in news if isinstance(e, Seen) and e.obj.name == "stays"]


async def test_410_of_the_real_server(assets_server: ApiServer) -> None:
    """A version that the server has forgotten, by compaction and a restart, is listed anew."""
    server = assets_server
    async with (
        Client(bearer(server.url, server.token(), server.ssl_context())) as client,
        FaultProxy(server.url, server.ssl_context()).serving() as proxy,
        Client(bearer(proxy.url, server.token())) as through,
    ):
        await client.post("/api/v1/namespaces", {"metadata": {"name": "it"}})
        await create(client, pod("it", "a"), pod("it", "goes"))
        async with reflecting(through) as (reflector, mirror):
            await happens(reflector.synced)
            blocked = proxy.on("GET", "watch=1", answer(503), times=10**6)
            assert proxy.cut("watch=1") == 1
            await client.delete(PODS.path("it/goes"))
            await create(client, pod("it", "b"))
            server.compact()
            server.stop_api(kill=True)
            await asyncio.to_thread(server.start_api)
            asked = proxy.count("GET", r"[?&]resourceVersion=\d")
            blocked.times = 0
            await until(lambda: mirror.names("it") == {"a", "b"})
            assert proxy.count("GET", r"[?&]resourceVersion=\d") > asked
            assert reflector.lists == 2


@pytest.mark.parametrize(
    "chunk",
    [
        b"<html>gateway</html>\n",
        b"\x00\xff\xfe\n",
        b'{"type":"SURPRISE","object":{}}\n',
        b'{"type":"DELETED","object":{}}\n',
    ],
)
async def test_garbage_on_a_watch_is_reported_and_listed_over(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, chunk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await create(client, pod(namespace, "a"))
    async with reflecting(through) as (reflector, mirror):
        await happens(reflector.synced)
        proxy.on("GET", r"[?&]resourceVersion=\d", send_first(chunk))
        proxy.cut("watch=1")
        await until(lambda: reflector.lists == 2)
        await create(client, pod(namespace, "b"))
        await until(lambda: mirror.names(namespace) == {"a", "b"})
    assert len([r for r in caplog.records if "not what an API server sends" in r.getMessage()]) == 1


async def test_a_line_without_end_is_cut_off(
    server: ApiServer, client: Client, proxy: FaultProxy, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caps = Caps(line_bytes=1 << 20)
    async with Client(bearer(proxy.url, server.token()), caps=caps) as through, reflecting(through) as (reflector, _):
        await happens(reflector.synced)
        proxy.on("GET", r"[?&]resourceVersion=\d", endless())
        proxy.cut("watch=1")
        await until(lambda: reflector.lists == 2)
        assert proxy.bytes_sent < 32 << 20
    assert len([r for r in caplog.records if "cut off" in r.getMessage()]) == 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param(send_first(b'{"items": 5}'), "not what an API server sends", id="another shape"),
        pytest.param(send_first(b"{}"), "a list without resourceVersion", id="no version"),
        pytest.param(endless(), "more than 1 MB, cut off", id="without end"),
    ],
)
async def test_a_page_that_is_no_page_is_reported_and_asked_for_again(
    server: ApiServer, client: Client, proxy: FaultProxy, namespace: str, fault: Fault, why: str
) -> None:
    await create(client, pod(namespace, "a"))
    bad = proxy.on("GET", "limit=500", fault, times=10**6)
    caps = Caps(answer_bytes=1 << 20)
    async with (
        Client(bearer(proxy.url, server.token()), caps=caps) as through,
        reflecting(through, streaming=False) as (reflector, mirror),
    ):
        await until(lambda: bad.hits >= 2)
        assert why in reflector.trouble
        assert not reflector.synced.is_set()
        bad.times = 0
        await happens(reflector.synced)
        await until(lambda: reflector.trouble == "")
        assert mirror.names(namespace) == {"a"}


async def test_one_bad_object_does_not_stop_the_rest(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    await create(client, pod(namespace, "a"))
    async with reflecting(through) as (reflector, mirror):
        await happens(reflector.synced)
        bad = {"metadata": {"namespace": namespace, "name": "newer", "resourceVersion": reflector._version}, "spec": []}
        good = {**pod(namespace, "good")}
        good["metadata"] |= {"resourceVersion": reflector._version, "uid": "u"}
        chunks = send_first(watch_event("ADDED", bad), watch_event("ADDED", good))
        proxy.on("GET", r"[?&]resourceVersion=\d", chunks)
        proxy.cut("watch=1")
        await until(lambda: "good" in mirror.names(namespace))
        assert reflector.unparsable.count == 1
    assert any("spec: found a list of 0, wanted an object" in r.getMessage() for r in caplog.records)


async def test_a_kind_that_is_not_installed_is_off_until_it_appears(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kind = HYPER_NODES
    await remove_crd(client, kind.full_name)  # another test may have left it
    definition = crd(kind.group, kind.version, kind.kind, kind.plural, namespaced=False)
    async with reflecting(client, kind, HyperNode) as (reflector, mirror):
        await happens(reflector.synced)
        assert "not installed" in reflector.trouble
        await install_crd(client, definition)
        await client.post(kind.list_path, hypernode("h"))
        await until(lambda: mirror.names() == {"h"})
        await remove_crd(client, kind.full_name)
        await until(lambda: not mirror.objects)
        await until(lambda: "not installed" in reflector.trouble)
    reports = [r.getMessage() for r in caplog.records if "installed" in r.getMessage()]
    assert [("not installed" in line) for line in reports] == [True, False, True]


async def test_a_missing_right_is_reported_once_and_delays_no_other_watch(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        Client(bearer(server.url, server.token("nobody"), server.ssl_context())) as nobody,
        reflecting(nobody, QUEUES, Queue) as (reflector, _),
    ):
        await happens(reflector.synced)
        await until(lambda: reflector.watches >= 3)
    reports = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(reports) == 1
    assert "no right to list and watch queues.scheduling.volcano.sh" in reports[0]


async def test_a_wrong_token_is_reported_once(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        Client(bearer(server.url, "expired", server.ssl_context())) as nobody,
        reflecting(nobody) as (reflector, _),
    ):
        await until(lambda: reflector.watches >= 3)
        assert not reflector.synced.is_set()
    reports = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(reports) == 1
    assert "does not accept these credentials" in reports[0]


async def test_server_gone_and_back(assets_server: ApiServer) -> None:
    server = assets_server
    async with Client(bearer(server.url, server.token(), server.ssl_context())) as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "it"}})
        await create(client, pod("it", "a"))
        async with reflecting(client, retry_policy=FAST) as (reflector, mirror):
            await happens(reflector.synced)
            server.stop_api(kill=True)
            await until(lambda: reflector.trouble != "")
            await asyncio.to_thread(server.start_api)
            await create(client, pod("it", "b"))
            await until(lambda: mirror.names("it") == {"a", "b"})
