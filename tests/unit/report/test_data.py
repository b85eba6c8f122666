"""What the page shows: true curves, bars and cells, and never more of them than a page can hold."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from pumice.report import data as limits
from pumice.report.data import means
from pumice.report.html import embedded, render
from pumice.sim.series import StepSeries
from tests.unit.report.kit import NOTHING_RUNS, TWO_QUEUES, data_of, job, node, queue


def steps(*points: tuple[float, float]) -> StepSeries:
    series = StepSeries(0.0)
    for time, value in points:
        series.set(time, value)
    return series


@pytest.mark.parametrize(
    ("points", "end", "buckets", "expected"),
    [
        pytest.param([(0, 2.0)], 10.0, 2, [2.0, 2.0], id="constant"),
        pytest.param([(5, 4.0)], 10.0, 2, [0.0, 4.0], id="on-the-edge"),
        pytest.param([(2.5, 4.0)], 10.0, 2, [2.0, 4.0], id="within-a-bucket"),
        pytest.param([(1, 8.0), (2, 0.0)], 8.0, 2, [2.0, 0.0], id="shorter-than-a-bucket"),
        pytest.param([(0, 3.0)], 0.0, 3, [3.0, 3.0, 3.0], id="no-time"),
    ],
)
def test_means(points: list[tuple[float, float]], end: float, buckets: int, expected: list[float]) -> None:
    assert means(steps(*points), end, buckets) == pytest.approx(expected)


def test_means_keep_the_area() -> None:
    rng = np.random.default_rng(7)
    times, values = np.cumsum(rng.random(500)), rng.random(500)
    series = steps(*zip(times.tolist(), values.tolist(), strict=True))
    end = float(times[-1]) + 1.0
    assert np.mean(means(series, end, 37)) * end == pytest.approx(series.area(end), rel=1e-5)


def test_resources_and_who_holds_them(tmp_path: Path) -> None:
    found = data_of(tmp_path)
    cpu = next(each for each in found.resources if each["name"] == "cpu")
    assert (cpu["label"], cpu["unit"]) == ("CPU", "cores")
    assert set(cpu["capacity"]) == {8.0}
    middle = len(cpu["used"]) // 2
    assert (cpu["used"][0], cpu["used"][middle], cpu["used"][-1]) == (0.0, 8.0, 4.0)
    by_queue = {each["name"]: each["values"] for each in cpu["queues"]}
    assert np.allclose(np.add(by_queue["a"], by_queue["b"]), cpu["used"], rtol=1e-4)


def test_bars_say_when_and_where(tmp_path: Path) -> None:
    first, second = data_of(tmp_path).gantt["bars"]
    assert (first["job"], first["submitted"], first["started"], first["ended"]) == ("default/first", 0.0, 1.0, 101.0)
    assert (second["job"], second["submitted"], second["started"], second["ended"]) == ("default/second", 20, 102, 142)
    assert (first["nodes"], first["pods"]) == ("n1, n2", 8)


def test_a_job_that_still_runs_has_no_end(tmp_path: Path) -> None:
    (bar,) = data_of(tmp_path, until=25.0).gantt["bars"]
    assert (bar["started"], bar["ended"]) == (1.0, None)


def test_waits_are_counted_once(tmp_path: Path) -> None:
    waits = data_of(tmp_path).waits
    assert (sum(waits["counts"]), waits["never"]) == (2, 1)
    assert len(waits["edges"]) == len(waits["counts"])
    filled = [edge for edge, count in zip(waits["edges"], waits["counts"], strict=True) if count]
    assert filled[0] == 1.0 and filled[1] <= 82.0 < filled[1] * 10**0.25


def test_cells_are_busy_shares(tmp_path: Path) -> None:
    heat = data_of(tmp_path).heat
    cells = np.frombuffer(base64.b64decode(heat["cells"]), dtype=np.uint8).reshape(len(heat["rows"]), heat["columns"])
    assert heat["rows"] == ["n1", "n2"]
    assert (cells[:, 0] == round(255 * (1 - 1 / heat["width_s"]))).all()  # all but the first second
    assert 0 < cells[:, -1].sum() < 2 * 255


def test_gangs_that_wait(tmp_path: Path) -> None:
    (row,) = data_of(tmp_path).pending
    assert (row["queue"], row["count"], row["jobs"], row["pods"], row["longest_s"]) == (
        "b",
        1,
        "default/giant",
        9,
        112.0,
    )
    assert row["why"].startswith("not admitted: ")


def test_nothing_ran(tmp_path: Path) -> None:
    found = data_of(tmp_path, NOTHING_RUNS)
    assert found.gantt == {"bars": []} and found.waits["counts"] == []
    assert [row["jobs"] for row in found.pending] == ["default/large"]
    json.loads(embedded(found.to_json()))


def test_a_page_is_of_bounded_size(tmp_path: Path) -> None:
    queues = [f"queue-{i:03}" for i in range(limits.QUEUES_LISTED + 5)]
    jobs = [job(f"job-{i}", cpu=1 if i % 3 else 99, queue=name, at=7 * i) for i, name in enumerate(queues)]
    nodes = [node(f"n{i:02}", cpu=16) for i in range(20)]
    found = data_of(tmp_path, [*nodes, *map(queue, queues), *jobs])
    assert len(found.queues) == limits.QUEUES_LISTED
    assert len(found.colours) == limits.QUEUES_NAMED
    assert len(found.shares["charts"]) == limits.QUEUES_CHARTED
    assert found.shares["left_out"] == len(queues) - limits.QUEUES_CHARTED
    assert len(found.gantt["bars"]) == limits.GANTT_MAX
    assert len(found.pending) == limits.PENDING_MAX
    assert found.waiting[-1]["name"] == limits.OTHERS
    assert all(len(each["values"]) == limits.BUCKETS for each in found.waiting)
    assert len(render(found)) < 500_000


@pytest.mark.parametrize("text", ["</script>", "<!--", "&amp;", "\u2028", "]]>"])
def test_embedded_text_cannot_leave_its_block(text: str) -> None:
    block = embedded({"name": text})
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block) == {"name": text}


def test_places_in_the_data_are_not_filled(tmp_path: Path) -> None:
    html = render(data_of(tmp_path, [node("n1"), queue("a"), job("only")]))
    assert "{{" not in html.replace("`", "")
    assert html.count("<script") == 2


def test_the_page_is_the_same_for_the_same_data(tmp_path: Path) -> None:
    found = data_of(tmp_path, TWO_QUEUES)
    assert render(found) == render(found)
