"""The pages in a real browser: each is drawn and fits, names do nothing on them, a newer cycle appears by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pumice.runtime.serving.listening import Place
from pumice.web.feed import Feed
from pumice.web.questions import Questions
from pumice.web.server import serving
from tests.unit.web.worlds import summary_of, world
from tests.web.axe import AXE, WITHOUT_AXE, violations
from tests.web.browser import CHROMIUM, WITHOUT_CHROMIUM, Page, chromium

pytestmark = [pytest.mark.web, pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT_CHROMIUM)]

#: Page -> what must be on it.
SHOWN = {
    "/": ["Jobs that wait", "Shortage", "ns/large", "4 of 6 pods fit", "n2"],
    "/queues": ["default", "team", "org"],
    "/jobs": ["ns/below", "ns/starts", "QueueLimit"],
    "/nodes": ["3 nodes", "cordoned"],
}
EVIL = "ns/<img src=x onerror=document.title='owned'>"
FITS = "document.documentElement.scrollWidth <= innerWidth"
TEXT = "document.getElementById('page').innerText"


class Served:
    def __init__(self, url: str, feed: Feed) -> None:
        self.url, self.feed = url, feed


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    feed, found = Feed(), world()
    feed.publish(summary_of(found))
    async with serving(feed, Place(), Questions(found, "d").explain) as url:
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
    text = await page.js(TEXT)
    assert [part for part in SHOWN[path] if part not in text] == []
    assert await page.js(FITS), "the page scrolls sideways"
    assert page.complaints == []
    assert all(request.startswith((served.url, "data:")) for request in page.requests)


@pytest.mark.skipif(not AXE.is_file(), reason=WITHOUT_AXE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [*SHOWN, "/job?name=ns/large"])
async def test_no_page_breaks_a_grave_rule_of_accessibility(served: Served, page: Page, path: str, scheme: str) -> None:
    await page.open(served.url + path, 1280, scheme=scheme)
    assert await violations(page) == []


async def wait_for(page: Page, condition: str) -> None:
    """Wait in the page until a condition holds, looking at each frame."""
    look = f"(() => {{ try {{ return {condition}; }} catch {{ return false; }} }})()"
    await page.js(
        f"new Promise((done) => {{ const look = () => ({look} ? done(null) : requestAnimationFrame(look)); look(); }})"
    )


async def test_a_job_is_explained_with_ways_out(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/job?name=ns/large")
    await wait_for(page, "document.querySelector('#ways li')")
    text = await page.js(TEXT)
    assert "not now" in text and "Checked" in text and "Shortage" in text
    assert page.complaints == []


async def test_jobs_are_filtered_and_the_address_keeps_it(served: Served, page: Page) -> None:
    await page.open(f"{served.url}/jobs")
    pick = "const pick = document.querySelector('select[name=code]'); pick.value = 'Shortage';"
    await page.js(f"{{ {pick} pick.dispatchEvent(new Event('change')); }}")
    await wait_for(page, "document.querySelectorAll('#jobs tbody tr').length === 1")
    assert await page.js("location.search") == "?code=Shortage"
    await page.js("history.back()")
    await wait_for(page, "document.querySelectorAll('#jobs tbody tr').length === 4")


async def test_names_are_text(served: Served, page: Page) -> None:
    found = served.feed.summary
    assert found is not None
    jobs = replace(found.jobs, names=[EVIL, *found.jobs.names[1:]])
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
