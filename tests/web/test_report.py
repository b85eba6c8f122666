"""The report in a real browser: everything drawn, nothing fetched, nothing too wide, nothing that names can do."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pumice.report.comparison import PairedRuns, outcome_of
from pumice.report.comparison_page import comparison_data
from pumice.report.html import render
from tests.unit.report.kit import NOTHING_RUNS, TWO_QUEUES, data_of, inputs, summary_of
from tests.web.axe import AXE, WITHOUT_AXE, violations
from tests.web.browser import CHROMIUM, WITHOUT_CHROMIUM, Page, chromium

pytestmark = [pytest.mark.web, pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT_CHROMIUM)]

CHARTS = ["allocation", "holders", "shares", "waiting", "waits", "gantt", "heat"]
UNDRAWN = """
[...document.querySelectorAll(".plot")].filter((plot) => {
  const all = [...plot.querySelectorAll("svg path, svg rect, canvas, .nothing")];
  const shapes = all.map((shape) => shape.getBoundingClientRect());
  return !shapes.some((box) => box.width > 1 && box.height > 1);
}).map((plot) => (plot.closest("figure") || plot.closest(".controls")).id)"""
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


@pytest.mark.skipif(not AXE.is_file(), reason=WITHOUT_AXE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_report_breaks_no_grave_rule_of_accessibility(page: Page, report: Path, scheme: str) -> None:
    await page.open(report, 1280, scheme=scheme)
    assert await violations(page) == []


async def test_a_report_of_nothing_is_a_page(page: Page, tmp_path: Path) -> None:
    await page.open(written(tmp_path, render(data_of(tmp_path, NOTHING_RUNS))), 400)
    assert await page.js("document.querySelector('#waits .nothing').innerText") == "No job has run."
    assert await page.js("document.querySelectorAll('#gantt .never').length") == 1
    assert "large" in await page.js("document.getElementById('pending').innerText")
    heads = await page.js("[...document.querySelectorAll('#pending th')].map((head) => head.innerText.toLowerCase())")
    cells = await page.js(
        "[...document.querySelectorAll('#pending tbody td, #pending tbody th')].map((c) => c.innerText)"
    )
    assert cells[heads.index("why the first of them waits")] == "the cluster has 4 cores, it asks for 9"
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


async def test_the_pointer_shows_what_is_there(page: Page, report: Path) -> None:
    await page.open(report)
    reports = {}
    for chart in CHARTS:
        left, top, width, height = await page.js(f"{PLOT_BOX}(document.querySelector('#{chart} .plot svg'))")
        await page.point(left + width / 2, top + height / 2)
        tip = await page.js(TIP)
        assert tip["inside"], chart
        reports[chart] = tip["text"]
    await page.point(2, 2)
    assert (await page.js(TIP))["text"] is None
    assert all(reports.values()), reports
    assert "of 8 cores" in reports["allocation"]
    assert "default/" in reports["gantt"] and "for: Overcommit" in reports["gantt"]


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
    count = len(data.jobs["names"])
    jobs = {"names": [evil] * count, "queues": [evil, evil], "codes": [evil] * len(data.jobs["codes"])}
    jobs |= {"nodes": {"0": evil}, "never": {"0": evil}}
    queues, rows = ([row | {"name": evil} for row in table] for table in (data.queues, data.table))
    note = {"severity": "warning", "where": evil, "what": evil}
    hostile = replace(
        data,
        subtitle=evil,
        jobs=data.jobs | jobs,
        queues=queues,
        table=rows,
        heat=data.heat | {"rows": [[evil, evil, 2]] * len(data.heat["rows"])},
        problems=[note],
        facts=[[evil, evil]],
    )
    file = written(tmp_path, render(hostile))
    await page.open(file)
    await page.js("document.querySelector('.search input').focus()")
    await page.write("script")
    await page.press("Enter")
    await page.drawn()
    assert await page.js("document.querySelector('#job h2').textContent") == evil
    assert await page.js("window.caught") is None
    assert await page.js("document.querySelector('.subtitle').textContent") == evil
    assert page.requests == [file.as_uri()]
    assert page.complaints == []


# -- what is looked at

AXES = """[...document.querySelectorAll("figure .plot svg")].map((svg) =>
  [...svg.querySelectorAll("text")].map((text) => text.textContent).join(" "))"""
STRIP = f"{PLOT_BOX}(document.querySelector('.brush svg'))"
TIMED = ["allocation", "holders", "waiting", "gantt", "heat"]
LABELS = "((id) => [...document.querySelectorAll(`#${id} .plot svg text`)].map((text) => text.textContent))"


async def test_a_part_of_the_time_is_chosen_for_all_pictures(page: Page, report: Path) -> None:
    """142 seconds are simulated; the middle of the strip is dragged over."""
    await page.open(report)
    left, top, width, height = await page.js(STRIP)
    await page.drag((left + 0.25 * width, top + height / 2), (left + 0.5 * width, top + height / 2))
    first, last = await page.js("[VIEW.from, VIEW.to]")
    assert (first, last) == (pytest.approx(142 / 4, abs=2), pytest.approx(142 / 2, abs=2))
    for chart in TIMED:
        labels = await page.js(f"{LABELS}('{chart}')")
        assert "40 s" in labels and "0" not in [each for each in labels if each.endswith("s")], chart
        assert not {"1 min 40 s", "2 min"} & set(labels), chart
    assert "first" not in " ".join(await page.js(f"{LABELS}('waits')"))
    assert "35" in await page.js("document.querySelector('.chosen-time').innerText")
    assert set(await page.js(UNDRAWN)) <= {"shares"}  # where a share is 0 all the time, it is a line
    await page.js("[...document.querySelectorAll('.chosen-time button')][0].click()")
    await page.drawn()
    assert await page.js("[VIEW.from, VIEW.to === END]") == [0, True]
    assert page.complaints == []


async def test_the_chosen_time_moves_by_its_middle_its_ends_and_by_keys(page: Page, report: Path) -> None:
    await page.open(report)
    left, top, width, height = await page.js(STRIP)
    at = lambda part: (left + part * width, top + height / 2)  # noqa: E731 - a place on the strip
    await page.drag(at(0.2), at(0.4))
    before = await page.js("[VIEW.from, VIEW.to]")
    await page.drag(at(0.3), at(0.5))
    moved = await page.js("[VIEW.from, VIEW.to]")
    assert moved[0] - before[0] == pytest.approx(moved[1] - before[1], abs=0.1) == pytest.approx(28, abs=3)
    await page.drag(at(0.6), at(0.8))
    wider = await page.js("[VIEW.from, VIEW.to]")
    assert wider[0] == moved[0] and wider[1] > moved[1] + 20
    await page.js("document.querySelector('.brush .handle').focus()")
    await page.press("ArrowRight")
    await page.drawn()
    assert await page.js("VIEW.from") == pytest.approx(wider[0] + 1.42, abs=0.01)


async def test_a_queue_is_chosen_for_all_pictures(page: Page, report: Path) -> None:
    await page.open(report)
    choose = """((value) => {
      const all = document.querySelector('.controls select');
      all.value = value;
      all.dispatchEvent(new Event('change'));
    })"""
    await page.js(f"{choose}('1')")
    await page.drawn()
    assert await page.js("VIEW.queue") == "b"
    assert [each for each in await page.js(f"{LABELS}('gantt')") if "default/" in each] == [
        "default/second",
        "default/giant",
    ]
    assert await page.js("[...document.querySelectorAll('#shares .panel')].length") == 1
    assert await page.js("[...document.querySelectorAll('#queues tbody tr')].map((row) => row.cells[0].innerText)") == [
        "b"
    ]
    assert "b" in await page.js("document.querySelector('#waiting .legend').innerText")
    assert "a" not in (await page.js("document.querySelector('#holders .legend').innerText")).split()
    await page.js(f"{choose}('')")
    await page.drawn()
    assert await page.js("[...document.querySelectorAll('#shares .panel')].length") == 2
    assert page.complaints == []


async def test_a_job_is_found_by_a_part_of_its_name(page: Page, report: Path) -> None:
    await page.open(report)
    await page.js("document.querySelector('.search input').focus()")
    await page.write("SEC")
    assert await page.js("document.querySelector('#matches').innerText") == "default/second\nb · done"
    await page.press("Enter")
    await page.drawn()
    facts = await page.js("document.querySelector('#job').innerText")
    for fact in ("default/second", "1 min 22 s", "for: Overcommit", "40 s"):
        assert fact in facts
    assert await page.js("document.querySelector('#gantt text.found').textContent") == "default/second"
    await page.js("[...document.querySelectorAll('#job button')].find((b) => b.innerText === 'show its time').click()")
    await page.drawn()
    assert await page.js("VIEW.from") < 20 and await page.js("VIEW.to") == pytest.approx(142, abs=0.1)
    await page.js("document.querySelector('#job button[aria-label]').click()")
    await page.drawn()
    assert await page.js("document.querySelector('#job')") is None
    assert page.complaints == []


async def test_waiting_is_drawn_in_the_colour_of_its_reason(page: Page, tmp_path: Path) -> None:
    """The second job waits from 20 to 60 for one thing, and until 102 for another."""
    data = data_of(tmp_path)
    jobs = data.jobs | {"codes": ["Shortage", "Taint"], "waits": [[], [20, 0, 60, 1], [30, 1]]}
    await page.open(written(tmp_path, render(replace(data, jobs=jobs))))
    rows = await page.js("""[...document.querySelectorAll("#gantt .plot svg > g")].map((row) => {
      const thin = [...row.querySelectorAll('rect[height="4"]')];
      return thin.map((rect) => [rect.getAttribute("fill"), Number(rect.getAttribute("width"))]);
    })""")
    second, giant = [row for row in rows if row][-2:]
    assert [colour for colour, _ in second] == ["var(--w0)", "var(--w1)"]
    assert second[0][1] / second[1][1] == pytest.approx(40 / 42, rel=0.01)
    assert [colour for colour, _ in giant] == ["var(--w1)"]
    assert await page.js("document.querySelectorAll('#gantt .never').length") == 1
    assert "Shortage\nTaint" in await page.js("document.querySelectorAll('#gantt .legend')[1].innerText")


async def test_bars_are_drawn_to_their_share(page: Page, tmp_path: Path) -> None:
    data = data_of(tmp_path)
    reasons = [{"code": f"R{share}", "meaning": "x", "job_s": 1.0, "share": share} for share in (0.6, 0.3, 0.05)]
    await page.open(written(tmp_path, render(replace(data, reasons=reasons))))
    bars = await page.js("""[...document.querySelectorAll("#reasons li")].map((bar) => {
      const wide = (part) => bar.querySelector(part).getBoundingClientRect().width;
      return [bar.querySelector(".text > b").innerText, wide(".fill") / wide(".track")];
    })""")
    assert [(said, round(drawn, 2)) for said, drawn in bars] == [("60.0 %", 0.6), ("30.0 %", 0.3), ("5.0 %", 0.05)]


@pytest.mark.parametrize("width", [1200, 400])
async def test_thousands_of_nodes_and_long_names_fit(page: Page, tmp_path: Path, width: int) -> None:
    """As large as a machine of 4,392 nodes in 256 rows, with names that are much too long."""
    data = data_of(tmp_path)
    name = "ip-10-0-255-255.eu-central-1.compute.internal-node-%05d"
    rows = [[name % (17 * i), name % (17 * i + 16), 17] for i in range(256)]
    cells = base64.b64encode(bytes(range(256)) * 512).decode()
    queue = "a-queue-of-a-team-with-a-very-long-name-" * 3
    table = [{**row, "name": queue} for row in data.table]
    large = replace(data, table=table, heat={"rows": rows, "columns": 512, "width_s": 142 / 512, "cells": cells})
    await page.open(written(tmp_path, render(large)), width)
    assert await page.js("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    outside = """[...document.querySelectorAll("figure svg text, td, th, h2, .tile *, .legend li")].filter((each) => {
      const box = each.getBoundingClientRect();
      return box.width && (box.left < 0 || box.right > innerWidth + 1) && !each.closest(".scroll");
    }).map((each) => each.textContent)"""
    assert await page.js(outside) == []
    assert "4,352 nodes" in await page.js("document.querySelector('#heat .about').innerText")
    if width == 400:
        wide = "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth + 1)"
        assert await page.js(f"{wide}.length") == 0
        assert await page.js("getComputedStyle(document.querySelector('#queues td'), '::before').content") == '"jobs"'
    assert page.complaints == []


# -- the page of a comparison


@pytest.fixture
def comparison(tmp_path: Path) -> Path:
    found = inputs(tmp_path, TWO_QUEUES)
    summary = summary_of(found)
    slower = summary_of(found, period_s=20.0)
    pairs = tuple(
        (outcome_of(summary, i, with_curves=i == 0), outcome_of(slower, i, with_curves=i == 0)) for i in range(3)
    )
    return written(tmp_path, render(comparison_data(PairedRuns(("default", "b.conf"), found.sources, 2, 60.0, pairs))))


@pytest.mark.parametrize("width", [1200, 400])
async def test_a_comparison_is_drawn_and_fits(page: Page, comparison: Path, width: int) -> None:
    await page.open(comparison, width)
    assert await page.js("[...document.querySelectorAll('figure')].map((figure) => figure.id)") == [
        "allocation",
        "waiting",
        "waits",
        "shares",
    ]
    assert await page.js(UNDRAWN) == []
    assert await page.js("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    assert await page.js(NAMELESS) == 0
    lines = await page.js("[...document.querySelectorAll('#figures tbody tr')].map((row) => row.innerText)")
    assert any(line.startswith("wait, mean") for line in lines)
    left, top, wide, height = await page.js(STRIP)
    await page.drag((left + 0.3 * wide, top + height / 2), (left + 0.6 * wide, top + height / 2))
    assert await page.js("VIEW.from") > 30
    assert await page.js(UNDRAWN) == []
    assert page.requests == [comparison.as_uri()]
    assert page.complaints == []


async def test_a_comparison_tells_both(page: Page, comparison: Path) -> None:
    await page.open(comparison)
    for chart in ("allocation", "waiting", "waits", "shares"):
        left, top, width, height = await page.js(f"{PLOT_BOX}(document.querySelector('#{chart} .plot svg'))")
        await page.point(left + width / 2, top + height / 2)
        tip = await page.js(TIP)
        assert tip["inside"] and "A" in tip["text"] and "B" in tip["text"], chart
