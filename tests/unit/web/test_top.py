"""``pumice top``: the overview in a terminal."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from pumice.cli.main import main
from pumice.runtime.serving.listening import Place
from pumice.web.feed import Feed
from pumice.web.server import serving
from pumice.web.shared_work import SharedWork
from tests.unit.web.worlds import sample, summary

GANG = str(Path(__file__).parents[3] / "examples/debug-gang")


def top(*words: str) -> Result:
    return CliRunner().invoke(main, ["top", *words])


def test_files_are_shown_once() -> None:
    found = top(GANG)
    assert found.exit_code == 0
    assert "1 of 1 job waits" in found.stdout and "Shortage" in found.stdout and "6 of 8 pods fit" in found.stdout
    assert "0 of 6 cores" in found.stdout


def test_json_is_what_the_page_reads() -> None:
    found = json.loads(top(GANG, "--json").stdout)
    assert [kind["code"] for kind in found["data"]["waiting"]] == ["Shortage"]


async def test_an_address_of_pages_is_asked() -> None:
    feed, found = Feed(), summary()
    names = ["ns/\x1b[2Jevil", *found.jobs.names[1:]]
    kinds = tuple(replace(kind, example=names[0]) for kind in found.waiting)
    feed.publish(replace(found, jobs=replace(found.jobs, names=names), waiting=kinds))
    feed.note("the record ends early")
    async with serving(feed, Place()) as url:
        shown = await asyncio.to_thread(top, url, "--once")
    assert shown.exit_code == 0 and "the record ends early" in shown.stdout
    assert "2 of 4 jobs wait" in shown.stdout and "\x1b" not in shown.stdout
    assert "1 node takes no new pod: cordoned (n2)" in shown.stdout


async def test_the_change_that_helps_most_and_the_time_of_cycles_are_shown_when_they_are_known() -> None:
    async def relief() -> dict[str, Any]:
        return {"best_change": {"text": "2 more nodes like n0", "jobs": 3}}

    feed = Feed()
    feed.history.take(replace(sample({"allocate": 0.02}), cuts=2))
    feed.publish(summary())
    feed.relief = SharedWork(relief, lambda: 0.0, changes=False)
    await feed.relief.renew()
    async with serving(feed, Place()) as url:
        shown = (await asyncio.to_thread(top, url, "--once")).stdout
    assert "most would start with: 2 more nodes like n0 (3 jobs)" in shown
    assert "time of the last 1 cycle: median 20 ms, longest 20 ms" in shown and "2 cut searches" in shown


async def test_before_the_first_cycle_it_says_so() -> None:
    async with serving(Feed(), Place()) as url:
        shown = await asyncio.to_thread(top, url)
    assert shown.stdout == "no cycle has ended yet\n"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[", "http://127.0.0.1:99999"])
def test_an_address_that_does_not_answer_is_named(url: str) -> None:
    found = top(url)
    assert found.exit_code == 2 and url[:10] in found.stderr
