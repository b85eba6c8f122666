"""What the page shows: true curves, bars and cells, and never more of them than a page can hold."""

from __future__ import annotations

import base64
import string
from pathlib import Path

import numpy as np
import pytest

from pumice.report import curves, job_data
from pumice.report import data as limits
from pumice.report.curves import means
from pumice.report.html import embedded, render
from pumice.sim.measures.series import StepSeries
from tests.unit.report.kit import NOTHING_RUNS, TWO_QUEUES, data_of, job, node, queue, unpacked


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
    place, cpu = next((i, each) for i, each in enumerate(found.resources) if each["name"] == "cpu")
    assert (cpu["label"], cpu["unit"]) == ("CPU", "cores")
    assert set(cpu["capacity"]) == {8.0}
    middle = len(cpu["used"]) // 2
    assert (cpu["used"][0], cpu["used"][middle], cpu["used"][-1]) == (0.0, 8.0, 4.0)
    held = [queue["used"][place] for queue in found.queues]
    assert [queue["name"] for queue in found.queues] == ["a", "b"] and found.rest is None
    assert np.allclose(np.sum(held, axis=0), cpu["used"], rtol=1e-4)


def test_every_job_is_there(tmp_path: Path) -> None:
    jobs = data_of(tmp_path).jobs
    assert jobs["names"] == ["default/first", "default/second", "default/giant"]
    assert [jobs["queues"][queue] for queue in jobs["queue"]] == ["a", "b", "b"]
    assert (jobs["pods"], jobs["submitted"]) == ([8, 4, 9], [0, 20, 30])
    assert (jobs["wait"], jobs["run"], jobs["ended"]) == ([1, 82, None], [100, 40, None], [1, 1, 0])
    assert jobs["nodes"]["0"] == "n1, n2" and jobs["left_out"] == 0


def test_jobs_say_what_they_waited_for_and_which_can_never_run(tmp_path: Path) -> None:
    found = data_of(tmp_path)
    jobs = found.jobs
    since, code = jobs["waits"][1][:2]
    assert (since, jobs["codes"][code]) == (20, "Overcommit")
    assert jobs["never"] == {"2": "the cluster has 8 cores, it asks for 9"}
    assert [row["code"] for row in found.reasons] == jobs["codes"][: len(found.reasons)]  # the same colours


def test_a_job_that_still_runs_has_no_end(tmp_path: Path) -> None:
    jobs = data_of(tmp_path, until=25.0).jobs
    assert (jobs["wait"], jobs["run"], jobs["ended"]) == ([1, None], [None, None], [0, 0])


def test_of_very_many_jobs_those_that_matter_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_data, "JOBS_MAX", 2)
    jobs = data_of(tmp_path).jobs
    assert (jobs["names"], jobs["left_out"]) == (["default/second", "default/giant"], 1)


def test_waits_are_counted_once(tmp_path: Path) -> None:
    waits = data_of(tmp_path).waits
    assert (sum(waits["counts"]), waits["never"]) == (2, 1)
    assert len(waits["edges"]) == len(waits["counts"])
    filled = [edge for edge, count in zip(waits["edges"], waits["counts"], strict=True) if count]
    assert filled[0] == 1.0 and filled[1] <= 82.0 < filled[1] * 10**0.25
    assert waits["marks"] == [["p50", 82.0]]  # the one that waits still has waited longer


def test_cells_are_busy_shares(tmp_path: Path) -> None:
    heat = data_of(tmp_path).heat
    cells = np.frombuffer(base64.b64decode(heat["cells"]), dtype=np.uint8).reshape(len(heat["rows"]), heat["columns"])
    assert heat["rows"] == [["n1", "n1", 1], ["n2", "n2", 1]]
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
    assert (row["code"], row["why"]) == ("QueueLimit", "the cluster has 8 cores, it asks for 9")


def test_nothing_ran(tmp_path: Path) -> None:
    found = data_of(tmp_path, NOTHING_RUNS)
    assert found.jobs["wait"] == [None] and found.waits["counts"] == []
    assert [row["jobs"] for row in found.pending] == ["default/large"]
    assert unpacked(embedded(found.to_json()))["kind"] == "simulation"


def test_a_page_is_of_bounded_size(tmp_path: Path) -> None:
    queues = [f"queue-{i:03}" for i in range(limits.QUEUES_LISTED + 5)]
    jobs = [job(f"job-{i}", cpu=1 if i % 3 else 99, queue=name, at=7 * i) for i, name in enumerate(queues)]
    nodes = [node(f"n{i:02}", cpu=16) for i in range(20)]
    found = data_of(tmp_path, [*nodes, *map(queue, queues), *jobs])
    assert len(found.table) == limits.QUEUES_LISTED
    assert len(found.colours) == limits.QUEUES_NAMED
    assert len(found.queues) == curves.QUEUES_CHARTED
    assert set(found.colours) <= {each["name"] for each in found.queues}
    assert found.rest is not None and found.rest["count"] == len(queues) - curves.QUEUES_CHARTED
    assert len(found.pending) == limits.PENDING_MAX
    assert all(len(each["waiting"]) == curves.BUCKETS for each in (*found.queues, found.rest))
    used = [sum(parts) for parts in zip(*(each["used"][0] for each in (*found.queues, found.rest)), strict=True)]
    assert used == pytest.approx(found.resources[0]["used"], abs=1e-3)
    assert len(render(found)) < 200_000


@pytest.mark.parametrize("text", ["</script>", "<!--", "&amp;", "\u2028", "]]>", "\ud800", "{{script}}"])
def test_embedded_text_cannot_leave_its_block(text: str) -> None:
    block = embedded({"name": text})
    assert set(block) <= set(string.ascii_letters + string.digits + "+/=")
    assert unpacked(block) == {"name": text}


def test_places_in_the_data_are_not_filled(tmp_path: Path) -> None:
    html = render(data_of(tmp_path, [node("n1"), queue("a"), job("only")]))
    assert "{{" not in html.replace("`", "")
    assert html.count("<script") == 2


def test_the_page_is_the_same_for_the_same_data(tmp_path: Path) -> None:
    found = data_of(tmp_path, TWO_QUEUES)
    assert render(found) == render(found)
