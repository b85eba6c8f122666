"""The server of pages: what it answers, to which clients, and how it announces a newer cycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from pumice.runtime.serving.listening import Place
from pumice.runtime.serving.this_machine import is_loopback
from pumice.web.assets import asset
from pumice.web.feed import Feed
from pumice.web.questions import Questions
from pumice.web.server import serving
from pumice.web.simulation import Results
from tests.unit.web.worlds import sample, summary, summary_of, world

SAMPLE = sample()


class At:
    def __init__(self, url: str, feed: Feed, http: aiohttp.ClientSession) -> None:
        self.url, self.feed, self.http = url, feed, http

    async def json(self, path: str) -> Any:
        async with self.http.get(self.url + path) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def refused(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.http.get(self.url + path, headers=headers) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def at() -> AsyncIterator[At]:
    feed, found = Feed(), world()
    feed.publish(summary_of(found))
    async with serving(feed, Place(), Questions(found, "d").explain) as url, aiohttp.ClientSession() as http:
        yield At(url, feed, http)


@pytest.mark.parametrize("path", ["/", "/queues", "/jobs", "/job", "/nodes", "/gantt", "/policy", "/cycles"])
async def test_pages_allow_their_own_script_and_nothing_else(at: At, path: str) -> None:
    async with at.http.get(at.url + path) as answer:
        text = await answer.text()
        policy = answer.headers["Content-Security-Policy"]
        assert answer.status == 200 and "/assets/pages.js" in text
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert "http://" not in text and "https://" not in text


async def test_assets_are_served_and_no_other_file(at: At) -> None:
    async with at.http.get(at.url + "/assets/pages.js") as answer:
        assert answer.content_type == "text/javascript" and "overviewPage" in await answer.text()
    assert (await at.refused("/assets/..%2Fserver.py"))[0] == 404
    assert (await at.refused("/assets/shell.html"))[0] == 404


async def test_documents_have_the_cycle_and_its_data(at: At) -> None:
    found = await at.json("/data/overview")
    assert found["number"] == 1 and found["head"]["language"] == "volcano" and found["data"]["jobs"] == 4
    assert (await at.json("/data/jobs?state=waits&sort=created"))["data"]["matching"] == 2
    assert (await at.refused("/data/jobs?sort=x"))[0] == 400


async def test_a_job_is_explained_when_asked_and_a_missing_one_is_refused(at: At) -> None:
    assert (await at.json("/data/job?name=ns/large"))["data"]["explanation"] is None
    found = (await at.json("/data/job?name=ns/large&explain=1"))["data"]
    assert found["explanation"]["verdict"] == "not now" and found["job"]["code"] == "Shortage"
    assert found["explanation"]["ways_out"]
    assert await at.refused("/data/job?name=ns/nope") == (404, "no such job in the newest cycle\n")
    assert (await at.refused("/data/job"))[0] == 400


async def test_curves_are_of_one_resource_that_there_is(at: At) -> None:
    at.feed.history.take(replace(SAMPLE, at=1.0))
    at.feed.history.take(replace(SAMPLE, at=2.0))
    found = (await at.json("/data/history?resource=cpu"))["data"]
    assert found["parts"] == 2 and [queue["name"] for queue in found["queues"]] == ["default", "org", "team"]
    assert (await at.refused("/data/history?resource=nope"))[0] == 400
    assert (await at.json("/data/cycles"))["data"]["counts"]["cycles"] == [1, 1]
    at.feed.history.take(replace(SAMPLE, at=3.0))
    assert (await at.json("/data/cycles"))["data"]["counts"]["cycles"] == [1, 1, 1], "a cycle without a new summary"


async def test_curves_name_the_newest_cycle(at: At) -> None:
    assert (await at.json("/data/cycles"))["number"] == 1
    at.feed.publish(replace(summary(), digest="next"))
    found = await at.json("/data/cycles")
    assert found["number"] == 2 and found["head"]["digest"] == "next"


async def test_what_is_noted_is_on_every_document(at: At) -> None:
    at.feed.note("the record ends early")
    for name in ("overview", "jobs", "cycles"):
        found = await at.json(f"/data/{name}")
        assert found["notes"] == ["the record ends early"] and found["number"] == 2


async def test_results_of_a_simulation_have_one_page(at: At) -> None:
    at.feed.show_simulation(Results({"jobs": 3}, ["queues is missing"]))
    async with at.http.get(at.url + "/") as answer:
        text = await answer.text()
    assert 'data-kind="simulation"' in text and "/queues" not in text
    found = await at.json("/data/overview")
    assert found["data"] == {"jobs": 3} and found["notes"] == ["queues is missing"]


async def test_before_the_first_cycle_documents_are_empty() -> None:
    async with serving(Feed(), Place()) as url, aiohttp.ClientSession() as http:
        at = At(url, Feed(), http)
        assert await at.json("/data/overview") == {"number": 0, "head": None, "notes": [], "data": None}
        assert (await at.json("/data/jobs"))["data"] is None
        assert (await at.refused("/data/job?name=ns/x"))[0] == 404


async def test_a_page_of_another_site_cannot_read_them(at: At) -> None:
    """Its name may resolve to this machine, but the browser sends the name along."""
    assert (await at.refused("/data/overview", Host="cluster.example"))[0] == 403
    assert (await at.refused("/data/overview", Host="localhost"))[0] == 200
    assert (await at.refused("/data/overview", Host="[::1]:80"))[0] == 200


async def test_nothing_can_be_written(at: At) -> None:
    async with at.http.post(at.url + "/data/overview") as answer:
        assert answer.status == 405


async def test_the_stream_says_when_there_is_a_newer_cycle(at: At) -> None:
    async with at.http.get(at.url + "/events") as answer:
        assert await answer.content.readline() == b"data: 1\n"
        await answer.content.readline()
        at.feed.publish(replace(summary(), digest="next"))
        assert await asyncio.wait_for(answer.content.readline(), 30) == b"data: 2\n"
    assert (await at.json("/data/overview"))["head"]["digest"] == "next"


def test_which_addresses_are_of_this_machine() -> None:
    own = ["127.0.0.1", "127.8.0.1", "::1", "localhost"]
    assert all(map(is_loopback, own))
    assert not any(map(is_loopback, ["", "0.0.0.0", "::", "10.0.0.1", "node", "localhost.example"]))


async def test_each_script_and_style_is_in_what_is_served() -> None:
    folder = files("pumice.web").joinpath("static")
    served = asset("pages.js") + asset("pages.css")
    left_out = [file.name for file in folder.iterdir() if file.name != "shell.html" and file.read_text() not in served]
    assert left_out == []


async def test_the_overview_comes_with_the_curves_of_a_resource_if_one_is_named() -> None:
    feed = Feed()
    feed.publish(summary())
    feed.history.take(sample())
    async with serving(feed, Place()) as url, aiohttp.ClientSession() as http:
        async with http.get(f"{url}/data/overview?resource=cpu") as answer:
            found = (await answer.json())["data"]
        async with http.get(f"{url}/data/history?resource=cpu") as answer:
            assert found["curves"] == (await answer.json())["data"]
        assert found["jobs"] == 4 and found["health"]["cycles"] == 1
        async with http.get(f"{url}/data/overview?resource=nope") as answer:
            assert "curves" not in (await answer.json())["data"]
