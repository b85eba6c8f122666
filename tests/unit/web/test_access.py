"""Pages for viewers who may see the jobs of some namespaces only."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace

from pumice.runtime.serving.listening import ConnectionLimits, Connections, Place, listening
from pumice.runtime.serving.viewers import EVERYTHING, Scope, Viewer, guard_of, this_machine
from pumice.web.feed import Feed
from pumice.web.seen import SeenJobs
from pumice.web.server import POST_HEADER, Pages
from tests.unit.web.test_gantt import gone
from tests.unit.web.worlds import sample, summary

SCOPES = {"admin": EVERYTHING, "anna": Scope(frozenset({"ns"}), nodes=False), "guest": Scope(frozenset(), nodes=False)}


class Named(Viewer):
    def __init__(self, name: str) -> None:
        self.name = name

    async def scope(self, namespaces: Iterable[str]) -> Scope:
        return SCOPES[self.name]


async def by_header(request: web.Request) -> Viewer:
    if request.headers.get("X-User") not in SCOPES:
        raise web.HTTPUnauthorized(text="wanted a token\n")
    return Named(request.headers["X-User"])


class At:
    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url, self.http = url, http

    async def got(self, path: str, user: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        given = {"X-User": user, **headers}
        async with self.http.request(method, self.url + path, headers=given) as answer:
            return answer.status, await answer.text()

    async def data(self, path: str, user: str) -> Any:
        async with self.http.get(self.url + path, headers={"X-User": user}) as answer:
            assert answer.status == 200, await answer.text()
            return (await answer.json())["data"]


def two_tenants() -> Any:
    """The usual summary, in which the job large belongs to another tenant, who is named in a sentence."""
    found = summary()
    names = [name.replace("ns/large", "ml/large") for name in found.jobs.names]
    sentences = [text and f"{text}, ml/large is ahead" for text in found.jobs.sentences]
    return replace(found, jobs=replace(found.jobs, names=names, sentences=sentences))


@pytest.fixture
async def at() -> AsyncIterator[At]:
    feed = Feed()
    feed.publish(two_tenants())
    feed.history.take(sample())
    feed.job_times = gone(("ml/old", "default"))
    pages = Pages(feed, guard=by_header)
    async with (
        listening(pages.application(), Place(), Connections(ConnectionLimits())) as url,
        aiohttp.ClientSession() as http,
    ):
        yield At(url, http)


async def test_a_viewer_sees_the_jobs_of_their_namespaces(at: At) -> None:
    everything = await at.data("/data/jobs", "admin")
    names = [row["name"] for row in everything["rows"]]
    assert "ml/large" in names
    rows = (await at.data("/data/jobs", "anna"))["rows"]
    assert [row["name"] for row in rows] == [name for name in names if name != "ml/large"]
    assert any(row["sentence"].endswith("a job of another namespace is ahead") for row in rows)
    assert (await at.data("/data/jobs", "guest"))["total"] == 0
    assert (await at.got("/data/job?name=ml/large", "anna"))[0] == 404
    assert (await at.data("/data/job?name=ml/large", "admin"))["job"]["name"] == "ml/large"


@pytest.mark.parametrize("path", ["/data/overview", "/data/queues", "/data/jobs", "/data/gantt", "/data/choices"])
async def test_no_document_names_a_job_of_others(at: At, path: str) -> None:
    for user in ("anna", "guest"):
        status, text = await at.got(path, user)
        assert status == 200 and "ml/" not in text


async def test_sums_are_of_all_jobs(at: At) -> None:
    assert await at.data("/data/queues", "guest") == await at.data("/data/queues", "admin")
    mine, whole = await at.data("/data/overview", "anna"), await at.data("/data/overview", "admin")
    assert mine["used"] == whole["used"] and mine["nodes"] == whole["nodes"]
    assert sum(kind["jobs"] for kind in mine["waiting"]) == sum(kind["jobs"] for kind in whole["waiting"]) - 1


@pytest.mark.parametrize(
    ("path", "method", "said"),
    [
        ("/data/nodes", "GET", "you may not get nodes"),
        ("/data/cycles", "GET", "you may not get pods in all namespaces"),
    ],
)
async def test_what_names_jobs_or_nodes_of_all_is_refused(at: At, path: str, method: str, said: str) -> None:
    status, text = await at.got(path, "anna", method)
    assert status == 403 and said in text
    assert (await at.got(path, "admin", method))[0] == 200


@pytest.mark.parametrize("path", ["/", "/data/jobs", "/assets/pages.js", "/events"])
async def test_nothing_is_served_to_those_whom_the_guard_refuses(at: At, path: str) -> None:
    assert await at.got(path, "stranger") == (401, "wanted a token\n")


async def test_what_is_posted_needs_the_header_of_pages_whoever_asks(at: At) -> None:
    assert (await at.got("/data/policy/try", "admin", "POST"))[0] == 403
    assert (await at.got("/data/policy/try", "admin", "POST", **{POST_HEADER: "1"}))[0] == 404


def test_summaries_for_viewers_are_kept_for_one_cycle_and_bounded_in_number() -> None:
    feed, seen, anna = Feed(), SeenJobs(), SCOPES["anna"]
    feed.publish(two_tenants())
    first = seen.index(feed.index, anna)
    assert seen.index(feed.index, anna) is first and seen.index(feed.index, EVERYTHING) is feed.index
    for number in range(40):
        seen.index(feed.index, Scope(frozenset({f"n{number}"})))
    assert len(seen._kept) == 16
    feed.publish(two_tenants())
    assert seen.index(feed.index, anna) is not first and len(seen._kept) == 1
    assert seen.index(None, anna) is None


def test_a_token_is_asked_for_over_tls_and_beyond_loopback_alone() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert guard_of(Place("0.0.0.0", 0, tls), by_header) is by_header
    assert guard_of(Place("", 0, tls), by_header) is by_header
    assert guard_of(Place("127.0.0.1", 0, tls), by_header) is this_machine
    assert guard_of(Place("0.0.0.0", 0), by_header) is this_machine
