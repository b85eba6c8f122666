"""The pages in a real browser: each is drawn and fits, names do nothing on them, a newer cycle appears by itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.runtime.job_times import job_states
from pumice.runtime.serving.listening import Place
from pumice.runtime.serving.viewers import Scope
from pumice.testing.build import policy
from pumice.web.columns.devices import DeviceColumns
from pumice.web.expected_starts import ExpectedStarts
from pumice.web.feed import Feed
from pumice.web.policy_trials import in_world, trials_here
from pumice.web.questions import Questions
from pumice.web.seen import as_seen
from pumice.web.server import serving
from pumice.web.shared_work import SharedWork
from pumice.web.simulation import results_in
from pumice.web.start_checks import StartCheck
from tests.unit.web.worlds import CONF, base, expected, sample, summary_of, world
from tests.web.axe import AXE, WITHOUT_AXE, violations
from tests.web.browser import CHROMIUM, WITHOUT_CHROMIUM, Page, chromium

pytestmark = [pytest.mark.web, pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT_CHROMIUM)]

#: Page -> what must be on it.
SHOWN = {
    "/": ["Jobs that wait", "Shortage", "ns/large", "4 of 6 pods fit", "n2", "2 more nodes", "Cycle time"],
    "/queues": ["default", "team", "org", "Borrowed"],
    "/jobs": ["ns/below", "ns/starts", "QueueLimit"],
    "/nodes": ["3 nodes", "cordoned", "One node"],
    "/node?name=n2": ["takes no new pod", "cordoned", "Waiting jobs on this node", "GPU 0"],
    "/gantt": ["Jobs over time", "Frame: the expected start"],
    "/policy": ["proportion", "enqueue", "What would change"],
    "/cycles": ["Where the time went", "allocate", "Plugin faults", "gang"],
}
WAIT_MAX_S = 40.0
EVIL = "ns/<img src=x onerror=document.title='owned'>"
FITS = "document.documentElement.scrollWidth <= innerWidth"
TEXT = "document.getElementById('page').innerText"


class Served:
    def __init__(self, url: str, feed: Feed) -> None:
        self.url, self.feed = url, feed


def device_rows() -> DeviceColumns:
    return DeviceColumns(
        np.zeros(1, dtype=np.int32), ["GPU 0"], ["shared GPU"], np.array([0.5]), np.ones(1, dtype=np.int32)
    )


async def relief() -> dict[str, Any]:
    best = {"text": "2 more nodes like n0", "jobs": 1, "gpus": 0.0, "cores": 6.0}
    return {"at": 100.0, "best_change": best, "waiting": [{}], "proof": {"trials": 3}}


async def start_checks() -> dict[str, Any]:
    row = StartCheck("ns/large", 50.0, 90.0, 80.0, None, 100.0)
    return {
        "moments": [50.0],
        "expected": 1,
        "started": 1,
        "within": 1,
        "median_error_s": 10.0,
        "rows": [row],
        "left_out": 0,
    }


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    feed, found = Feed(), world()
    for second in range(20):
        spans = {"open session": 0.01, "allocate": 0.02 * second, "plugin gang": 0.001}
        feed.history.take(replace(sample(spans), number=second + 1, at=100.0 + second))
    feed.job_times.take(job_states(base().outcome))
    shared = replace(device_rows(), node=np.array([2], dtype=np.int32))
    feed.publish(replace(summary_of(found), devices=shared))
    feed.relief = SharedWork(relief, time.monotonic, changes=False)
    feed.start_checks = SharedWork(start_checks, time.monotonic, changes=False)
    feed.starts = ExpectedStarts(expected, time.monotonic, changes=False)
    policies = trials_here(lambda: CONF, policy, in_world(found))
    async with serving(feed, Place(), Questions(found, "d").explain, policies) as url:
        yield Served(url, feed)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with chromium(tmp_path / "profile") as tab:
        yield tab


@pytest.mark.parametrize(
    ("width", "scheme"), [pytest.param(1280, "light", id="wide"), pytest.param(400, "dark", id="narrow-dark")]
)
@pytest.mark.parametrize("path", SHOWN)
async def test_each_page_is_drawn_and_fits(served: Served, page: Page, path: str, width: int, scheme: str) -> None:
    await page.open(served.url + path, width, scheme=scheme)
    await wait_for(page, f"{json.dumps(SHOWN[path])}.every((part) => {TEXT}.includes(part))")
    text = await page.js(TEXT)
    assert [part for part in SHOWN[path] if part not in text] == []
    assert await page.js(FITS), "the page scrolls sideways"
    assert page.complaints == []
    assert all(request.startswith((served.url, "data:")) for request in page.requests)


@pytest.mark.skipif(not AXE.is_file(), reason=WITHOUT_AXE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [*SHOWN, "/job?name=ns/large", "/nodes?cells=devices"])
async def test_no_page_breaks_a_grave_rule_of_accessibility(served: Served, page: Page, path: str, scheme: str) -> None:
    await page.open(served.url + path, 1280, scheme=scheme)
    assert await violations(page) == []


async def wait_for(page: Page, condition: str) -> None:
    """Wait in the page until a condition holds, looking at each frame."""
    look = f"(() => {{ try {{ return {condition}; }} catch {{ return false; }} }})()"
    async with asyncio.timeout(WAIT_MAX_S):
        again = f"({look} ? done(null) : requestAnimationFrame(look))"
        await page.js(f"new Promise((done) => {{ const look = () => {again}; look(); }})")


async def arrived(page: Page, condition: str) -> None:
    """Wait until a condition holds on the address that the page goes to."""
    async with asyncio.timeout(WAIT_MAX_S):
        while True:
            with suppress(AssertionError):  # what is asked while it goes there has no answer
                if await page.js(f"new Promise(requestAnimationFrame).then(() => Boolean({condition}))"):
                    return


async def test_a_job_is_explained_with_ways_out(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/job?name=ns/large")
    await wait_for(page, "document.querySelector('#ways li')")
    text = await page.js(TEXT)
    assert "Not now: it starts once" in text and "Checked" in text and "Shortage" in text
    assert page.complaints == []


async def test_a_page_that_is_not_seen_holds_no_connection(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/jobs")
    await page.js("Object.defineProperty(document, 'hidden', { get: () => window.away, configurable: true }); null")
    away = "window.away = {}; document.dispatchEvent(new Event('visibilitychange')); stream === null"
    assert await page.js(away.format("true"))
    served.feed.publish(replace(summary_of(world()), at=4000.0))
    await page.drawn()
    assert "01:06:40" not in await page.js("document.getElementById('cycle').textContent")
    assert not await page.js(away.format("false"))
    await wait_for(page, "document.getElementById('cycle').textContent.includes('01:06:40')")


async def test_a_job_says_when_it_is_expected_to_start(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/job?name=ns/large")
    await wait_for(page, "document.querySelector('#start').innerText.includes('80 %')")
    text = await page.js("document.getElementById('start').innerText")
    assert "about 1970-01-01 00:03:40 UTC; 80 %: 1970-01-01 00:02:40 to not within the time" in text
    assert "8 simulations of 1 h" in text
    await page.open(f"{served.url}/job?name=ns/below")
    await wait_for(page, "document.querySelector('#start').innerText.includes('Not known')")


async def test_a_job_has_its_pods_and_what_happened_to_it(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/job?name=ns/runs")
    text = await page.js(TEXT)
    assert "runs-1" in text and "n0" in text and "1970-01-01 00:01:40 UTC" in text
    assert page.complaints == []


async def test_a_job_that_is_gone_still_has_its_story(served: Served, page: Page) -> None:
    nothing = job_states(base().outcome)
    empty = np.zeros(0, dtype=np.int32)
    served.feed.job_times.take(replace(nothing, at=150.0, names=[], queue=empty, created=np.zeros(0), label=empty))
    found = served.feed.summary
    assert found is not None
    served.feed.publish(as_seen(found, Scope(frozenset())))
    await page.open(f"{served.url}/job?name=ns/runs")
    text = await page.js(TEXT)
    assert "there no more" in text and "runs: 50 s" in text and "gone" in text


async def test_devices_are_cells_and_a_cell_opens_its_node(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/nodes?cells=devices")
    assert await page.js("document.querySelectorAll('.rack svg path').length") == 2  # a shade, and a red frame
    key = "new KeyboardEvent('keydown', { key: '%s', bubbles: true })"
    await page.js(f"document.querySelector('.rack svg').dispatchEvent({key % 'ArrowRight'})")
    tip = await page.js("document.getElementById('tip').innerText")
    assert "n2" in tip and "GPU 0" in tip and "50.0 %" in tip and "cordoned" in tip
    await page.js(f"document.querySelector('.rack svg').dispatchEvent({key % 'Enter'})")
    await arrived(page, "location.search === '?name=n2' && document.getElementById('pods')")


async def test_nodes_are_grouped_as_is_chosen(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/nodes")
    assert await page.js("document.querySelectorAll('.rack').length") == 2
    await page.js("document.querySelector('[aria-label=\"group by\"] button:last-child').click()")
    assert await page.js("document.querySelectorAll('.rack').length") == 1
    assert await page.js("location.search") == "?group=1"


async def test_starts_that_were_expected_are_put_beside_real_ones(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/gantt")
    await wait_for(page, "document.querySelector('#start-checks table')")
    text = await page.js("document.getElementById('start-checks').innerText")
    assert "1 of these within" in text and "later than simulated" in text and "−10 s" in text
    assert page.complaints == []


async def test_expected_starts_are_drawn_when_they_are_there(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/gantt")
    await wait_for(page, "document.querySelectorAll('#gantt .expected').length === 1")
    assert page.complaints == []


async def test_jobs_are_filtered_and_the_address_keeps_it(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/jobs")
    pick = "const pick = document.querySelector('select[name=code]'); pick.value = 'Shortage';"
    await page.js(f"{{ {pick} pick.dispatchEvent(new Event('change')); }}")
    await wait_for(page, "document.querySelectorAll('#jobs tbody tr').length === 1")
    assert await page.js("location.search") == "?code=Shortage"
    await page.js("history.back()")
    await wait_for(page, "document.querySelectorAll('#jobs tbody tr').length === 4")


async def choose_a_time(page: Page) -> None:
    """Drag over the right half of the brush."""
    box = """(() => { const place = document.querySelector('.brush'); place.scrollIntoView({ block: 'center' });
      const box = place.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()"""
    left, top, width, height = await page.js(box)
    await page.drag((left + 0.5 * width, top + height / 2), (left + 0.9 * width, top + height / 2))


async def test_a_part_of_the_time_of_jobs_is_chosen(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/gantt")
    # The expected starts come later and draw the page again: until they are there the picture may be between two.
    await wait_for(page, "document.querySelectorAll('#gantt .expected').length === 1")
    before = await page.js("document.querySelector('#gantt svg').innerHTML")
    await choose_a_time(page)
    assert before != await page.js("document.querySelector('#gantt svg').innerHTML")
    assert await page.js("VIEW.from > 0 && VIEW.to < END") and page.complaints == []


@pytest.mark.parametrize("path", ["/", "/queues", "/cycles"])
async def test_one_brush_chooses_the_time_of_all_pictures(served: Served, page: Page, path: str) -> None:
    await page.open(served.url + path, 1280)
    pictures = "[...document.querySelectorAll('figure .plot svg')].map((svg) => svg.innerHTML)"
    before = await page.js(pictures)
    await choose_a_time(page)
    after = await page.js(pictures)
    assert len(before) == len(after) > 0
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert "to 00:01:5" in await page.js("document.querySelector('.chosen-time').innerText")
    # The time that was chosen stays when a newer cycle is shown.
    served.feed.history.take(replace(sample(), number=21, at=120.0))
    served.feed.publish(summary_of(world()))
    await wait_for(page, "END === 21")
    assert await page.js("VIEW.to < 20 && VIEW.from > 5")
    assert page.complaints == []


async def test_what_was_drawn_before_is_forgotten(served: Served, page: Page) -> None:
    await page.open(served.url)
    count = await page.js("[LIVE.length, UPDATES.length]")
    for _ in range(3):
        await page.js("refresh()")
    assert await page.js("[LIVE.length, UPDATES.length]") == count


async def test_what_has_the_focus_is_renewed_when_it_is_left(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/jobs")
    await page.js("document.querySelector('input[name=text]').focus()")
    found = served.feed.summary
    assert found is not None
    served.feed.publish(replace(found, at=3600.0))
    await wait_for(page, "isOld")
    assert "00:01:40" in await page.js("document.getElementById('cycle').textContent")
    await page.js("document.activeElement.blur()")
    await wait_for(page, "document.getElementById('cycle').textContent.includes('01:00:00')")


async def test_what_is_noted_is_shown(served: Served, page: Page) -> None:
    served.feed.note(f"The record is damaged: {EVIL}")
    await page.open(f"{served.url}/cycles")
    assert EVIL in await page.js("document.querySelector('.noted').innerText")


async def test_before_the_first_cycle_the_page_says_so_and_then_shows_it(page: Page) -> None:
    feed = Feed()
    async with serving(feed, Place()) as url:
        await page.open(url)
        assert "No cycle has ended yet" in await page.js(TEXT)
        feed.publish(summary_of(world()))
        await wait_for(page, f"{TEXT}.includes('Jobs that wait')")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
async def test_results_of_a_simulation_are_one_page(page: Page, width: int, scheme: str) -> None:
    feed = Feed()
    found = results_in(json.dumps({"digest": EVIL, "simulated_s": 60.0, "queues": {EVIL: None}}).encode())
    assert found is not None
    feed.show_simulation(found)
    async with serving(feed, Place()) as url:
        await page.open(url, width, scheme=scheme)
        text = await page.js(TEXT)
        assert EVIL in text and "queues cannot be read" in text and "1 min" in text
        assert await page.js(FITS) and page.complaints == []


async def test_another_policy_is_tried(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/policy")
    change = "{ const text = document.querySelector('textarea'); text.value = text.value.replace"
    await page.js(f"{change}('enqueue, allocate', 'backfill'); }}")
    await page.js("document.querySelector('#try form').requestSubmit()")
    await wait_for(page, "document.querySelector('#difference')")
    text = await page.js("document.querySelector('#try').innerText")
    assert "1 decides otherwise" in text and "ns/starts (2 pods)" in text
    await page.js("document.querySelector('textarea').value = 'actions: \"alocate\"'")
    await page.js("document.querySelector('#try form').requestSubmit()")
    await wait_for(page, "document.querySelector('#try').innerText.includes('It cannot be used')")
    assert page.complaints == []


async def test_names_are_text(served: Served, page: Page) -> None:
    found = served.feed.summary
    assert found is not None
    evil = [EVIL, *found.jobs.names[1:]]
    jobs = replace(found.jobs, names=evil, shown=evil)
    served.feed.publish(replace(found, jobs=jobs))
    await page.open(f"{served.url}/jobs")
    assert EVIL in await page.js(TEXT)
    assert await page.js("document.title") == "Jobs · Pumice"
    assert page.complaints == []


async def test_a_newer_cycle_appears_by_itself(served: Served, page: Page) -> None:
    await page.open(served.url)
    await wait_for(page, "document.getElementById('cycle').textContent.includes('1970-01-01 00:01:40')")
    found = served.feed.summary
    assert found is not None
    served.feed.publish(replace(found, at=3600.0))
    await wait_for(page, "document.getElementById('cycle').textContent.includes('01:00:00')")


async def test_controls_have_names(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/jobs")
    nameless = """[...document.querySelectorAll('input, select, button, [role=region], [role=img]')].filter((each) =>
      !(each.getAttribute('aria-label') || each.textContent.trim() || each.closest('label'))).length"""
    assert await page.js(nameless) == 0


async def test_a_server_that_is_gone_is_named(page: Page) -> None:
    feed = Feed()
    feed.publish(summary_of(world()))
    async with serving(feed, Place()) as url:
        await page.open(url)
    await wait_for(page, "document.getElementById('cycle').textContent.includes('does not answer')")
