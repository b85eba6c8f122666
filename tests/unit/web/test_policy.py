"""What another policy would do, tried by pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from pumice.cli.answers.world import WorldOptions
from pumice.cli.main import main
from pumice.cli.pages.source import source_of
from pumice.runtime.serving.listening import Place
from pumice.web import policy_trials
from pumice.web.feed import Feed
from pumice.web.server import POST_HEADER, serving

EXAMPLES = Path(__file__).parents[3] / "examples"
OPTIONS = WorldOptions(None, True, "", None, ())
#: Nothing is admitted, and so nothing is placed.
IDLE = 'actions: "backfill"\ntiers:\n- plugins: [{name: gang}]\n'
FROM_PAGE = {POST_HEADER: "1"}


class At:
    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url, self.http = url, http

    async def shown(self) -> Any:
        async with self.http.get(f"{self.url}/data/policy") as answer:
            return (await answer.json())["data"]

    async def tried(self, **asked: object) -> Any:
        async with self.http.post(f"{self.url}/data/policy/try", json=asked, headers=FROM_PAGE) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()


async def serve(path: Path) -> AsyncIterator[At]:
    feed, source = Feed(), source_of([str(path)], OPTIONS)
    await source.fill(feed)
    async with (
        serving(feed, Place(), source.explain, source.policies) as url,
        aiohttp.ClientSession() as http,
    ):
        yield At(url, http)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy") / "record"
    found = CliRunner().invoke(main, ["simulate", str(EXAMPLES / "demo"), "--until", "40m", "--record", str(folder)])
    assert found.exit_code == 0, found.stderr
    return folder


@pytest.fixture
async def at(record: Path) -> AsyncIterator[At]:
    async for found in serve(record):
        yield found


@pytest.fixture
async def at_files() -> AsyncIterator[At]:
    async for found in serve(EXAMPLES / "debug-gang"):
        yield found


async def test_the_policy_in_force_is_shown_with_its_text(at: At) -> None:
    found = await at.shown()
    assert found["dialect"] == "volcano" and [action["name"] for action in found["actions"]][:1] == ["enqueue"]
    assert "tiers" in found["text"] and found["cycles_max"] == policy_trials.CYCLES_MAX


async def test_the_policy_in_force_changes_nothing(at: At) -> None:
    found = await at.tried(conf=(await at.shown())["text"], cycles=5)
    assert len(found["cycles"]) == 5 and all(cycle["same"] for cycle in found["cycles"])
    assert found["last"]["changes_something"] is False
    numbers = [cycle["number"] for cycle in found["cycles"]]
    assert numbers == sorted(numbers, reverse=True)


async def test_a_policy_that_places_nothing_places_no_job_any_more(at: At) -> None:
    found = await at.tried(conf=IDLE, cycles=20)
    assert not found["problems"] and sum(cycle["not_placed"] for cycle in found["cycles"]) > 0
    assert not any(cycle["placed"] for cycle in found["cycles"])


async def test_a_policy_is_tried_on_the_cluster_of_files(at_files: At) -> None:
    found = await at_files.tried(conf=IDLE, cycles=9)
    assert len(found["cycles"]) == 1 and found["policy"]["actions"] == [{"name": "backfill", "arguments": {}}]


async def test_what_is_wrong_with_a_policy_is_named(at_files: At) -> None:
    found = await at_files.tried(conf='actions: "alocate"')
    assert not found["cycles"] and any("alocate" in problem for problem in found["problems"])


async def test_no_further_cycle_is_begun_when_the_time_is_up(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_trials, "_TIME_MAX_S", -1.0)
    found = await at.tried(conf=IDLE, cycles=5)
    assert len(found["cycles"]) == 1 and found["is_cut"]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        pytest.param({}, b'{"conf": "x"}', 403, id="a page of another site"),
        pytest.param(FROM_PAGE | {"Host": "cluster.example"}, b'{"conf": "x"}', 403, id="another host"),
        pytest.param(FROM_PAGE, b"{", 400, id="no JSON"),
        pytest.param(FROM_PAGE, b'{"conf": "x", "cycles": 0}', 400, id="no cycle"),
        pytest.param(FROM_PAGE, b'{"conf": "x", "more": 1}', 400, id="unknown field"),
        pytest.param(FROM_PAGE, b'{"conf": "' + b"x" * (1 << 18) + b'"}', 413, id="too large"),
    ],
)
async def test_other_requests_are_refused(at_files: At, headers: dict[str, str], body: bytes, status: int) -> None:
    async with at_files.http.post(f"{at_files.url}/data/policy/try", data=body, headers=headers) as answer:
        assert answer.status == status


async def test_a_scheduler_that_runs_shows_its_policy_and_tries_none() -> None:
    source, feed = source_of([str(EXAMPLES / "debug-gang")], OPTIONS), Feed()
    await source.fill(feed)
    async with serving(feed, Place()) as url, aiohttp.ClientSession() as http:
        found = await At(url, http).shown()
        assert found["tiers"] and found["text"] is None
        async with http.post(f"{url}/data/policy/try", json={"conf": IDLE}, headers=FROM_PAGE) as answer:
            assert answer.status == 404
