"""The report in a real browser: everything drawn, nothing fetched, nothing too wide, nothing that names can do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from pumice.report.html import render
from tests.unit.report.kit import NOTHING_RUNS, TWO_QUEUES, data_of
from tests.web.browser import CHROMIUM, WITHOUT_CHROMIUM, Page, chromium

pytestmark = [pytest.mark.web, pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT_CHROMIUM)]

CHARTS = ["allocation", "holders", "shares", "waiting", "waits", "gantt", "heat"]
UNDRAWN = """
[...document.querySelectorAll(".plot")].filter((plot) => {
  const shapes = [...plot.querySelectorAll("svg path, svg rect, canvas")].map((shape) => shape.getBoundingClientRect());
  return !shapes.some((box) => box.width > 1 && box.height > 1);
}).map((plot) => plot.closest("figure").id)"""
TIP = """(() => {
  const tip = document.getElementById("tip"), box = tip.getBoundingClientRect();
  const inside = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
  return { text: tip.hidden ? null : tip.innerText, inside };
})()"""
PLOT_BOX = """((plot) => {
  plot.scrollIntoView({ block: "center" });
  const box = plot.getBoundingClientRect();
  return [box.left, box.top, box.width, box.height];
})"""
NAMELESS = """[
  ...[...document.querySelectorAll("svg[role=img], .scroll")].filter((each) => !each.getAttribute("aria-label")),
  ...[...document.querySelectorAll("figure")].filter((each) =>
    !document.getElementById(each.getAttribute("aria-labelledby"))?.innerText),
].length"""


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with chromium(tmp_path / "profile") as tab:
        yield tab


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return written(tmp_path, render(data_of(tmp_path)))


def written(folder: Path, html: str) -> Path:
    file = folder / "report.html"
    file.write_text(html, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        pytest.param(1280, "light", id="wide-light"),
        pytest.param(1280, "dark", id="wide-dark"),
        pytest.param(400, "light", id="narrow-light"),
        pytest.param(320, "dark", id="narrowest-dark"),
    ],
)
async def test_all_is_drawn_and_fits(page: Page, report: Path, width: int, scheme: str) -> None:
    await page.open(report, width, scheme=scheme)
    assert await page.js("[...document.querySelectorAll('figure')].map((figure) => figure.id)") == CHARTS
    assert await page.js(UNDRAWN) == []
    assert await page.js("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    assert page.requests == [report.as_uri()]
    assert page.complaints == []


async def test_a_report_of_nothing_is_a_page(page: Page, tmp_path: Path) -> None:
    await page.open(written(tmp_path, render(data_of(tmp_path, NOTHING_RUNS))), 400)
    assert await page.js("document.querySelector('#gantt .nothing').innerText") == "No job has run."
    assert "large" in await page.js("document.getElementById('pending').innerText")
    assert page.complaints == []


async def test_light_is_lighter_than_dark(page: Page, report: Path) -> None:
    await page.open(report)
    colours = []
    for scheme in ("light", "dark"):
        await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        colours.append(
            await page.js("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)")
        )
    assert sum(colours[0]) > sum(colours[1]) + 300
    assert page.complaints == []


async def test_the_pointer_is_told_what_is_there(page: Page, report: Path) -> None:
    await page.open(report)
    told = {}
    for chart in CHARTS:
        left, top, width, height = await page.js(f"{PLOT_BOX}(document.querySelector('#{chart} .plot svg'))")
        await page.point(left + width / 2, top + height / 2)
        tip = await page.js(TIP)
        assert tip["inside"], chart
        told[chart] = tip["text"]
    await page.point(2, 2)
    assert (await page.js(TIP))["text"] is None
    assert all(told.values()), told
    assert "of 8 cores" in told["allocation"]
    assert "default/second" in told["gantt"]


async def test_keys_tell_the_same(page: Page, report: Path) -> None:
    await page.open(report)
    for chart in CHARTS:
        await page.js(f"document.querySelector('#{chart} .plot svg').focus()")
        await page.press("ArrowRight")
        first = (await page.js(TIP))["text"]
        await page.press("ArrowRight")
        assert first and (await page.js(TIP))["text"] not in (None, first), chart
        await page.press("Escape")
        assert (await page.js(TIP))["text"] is None


async def test_another_resource_can_be_chosen(page: Page, report: Path) -> None:
    await page.open(report)
    await page.js("[...document.querySelectorAll('#holders button')].find((b) => b.innerText === 'memory').click()")
    await page.drawn()
    assert "memory" in await page.js("document.querySelector('#holders svg').getAttribute('aria-label')")


async def test_everything_has_a_name(page: Page, report: Path) -> None:
    await page.open(report)
    assert await page.js(NAMELESS) == 0
    assert await page.js("document.title") != ""


async def test_names_are_text_and_nothing_else(page: Page, tmp_path: Path) -> None:
    evil = "</script><script>window.caught = 1</script><img src=x onerror='window.caught = 2'>\u2028{{script}}"
    data = data_of(tmp_path, TWO_QUEUES)
    bars = [bar | {"job": evil, "queue": evil, "nodes": evil} for bar in data.gantt["bars"]]
    queues = [row | {"name": evil} for row in data.queues]
    note = {"severity": "warning", "where": evil, "what": evil}
    hostile = replace(data, subtitle=evil, gantt={"bars": bars}, queues=queues, problems=[note], facts=[[evil, evil]])
    file = written(tmp_path, render(hostile))
    await page.open(file)
    assert await page.js("window.caught") is None
    assert await page.js("document.querySelector('.subtitle').textContent") == evil
    assert page.requests == [file.as_uri()]
    assert page.complaints == []
