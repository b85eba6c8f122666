"""The numbers of a simulation, against sums made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.report.spread import spread
from pumice.report.summary import WaitingGroup, jain, waiting_groups
from pumice.sim.run import Waiting
from tests.unit.report.kit import NOTHING_RUNS, TWO_QUEUES, inputs, job, node, queue, summary_of


def test_jobs_by_queue(tmp_path: Path) -> None:
    found = summary_of(inputs(tmp_path, TWO_QUEUES))
    a, b = found.queues
    assert (a.name, a.jobs, a.completed, a.running, a.pending) == ("a", 1, 1, 0, 0)
    assert (b.name, b.jobs, b.completed, b.running, b.pending) == ("b", 2, 1, 0, 1)
    assert a.wait is not None and (a.wait.count, a.wait.max) == (1, 1.0)
    assert b.wait is not None and (b.wait.count, b.wait.censored, b.wait.p50, b.wait.p90) == (2, 1, 82.0, None)
    assert b.wait.max == 112.0  # of the one that still waits
    assert b.completion is not None and (b.completion.count, b.completion.censored) == (2, 1)
    assert b.slowdown is not None and b.slowdown.mean == 122 / 40
    assert a.share == pytest.approx(100 / 142)
    assert b.share == pytest.approx(0.5 * 40 / 142)


def test_utilisation_counts_time(tmp_path: Path) -> None:
    cpu = next(use for use in summary_of(inputs(tmp_path, TWO_QUEUES)).utilisation if use.resource == "cpu")
    assert (cpu.capacity, cpu.unit, cpu.peak) == (8.0, "cores", 1.0)
    assert cpu.mean == pytest.approx((8 * 100 + 4 * 40) / (8 * 142))
    assert cpu.loaded == pytest.approx((8 * 79 + 4 * 40) / (8 * 120))  # from second 22 on a job has waited long


def test_nobody_waited(tmp_path: Path) -> None:
    found = summary_of(inputs(tmp_path, [node("n1"), queue("a"), job("only")]))
    assert [use.loaded for use in found.utilisation] == [None, None]
    assert (found.fairness.jain, found.fairness.contended, found.fairness.contended_share) == (None, None, 0.0)
    assert found.to_json()["waiting"] == []


def test_nothing_ran(tmp_path: Path) -> None:
    found = summary_of(inputs(tmp_path, NOTHING_RUNS))
    assert found.wait is not None and (found.wait.count, found.wait.censored, found.wait.p50) == (1, 1, None)
    assert found.to_json()["wait_s"] == {
        "count": 1,
        "censored": 1,
        "mean": 0.0,
        "p50": None,
        "p90": None,
        "p99": None,
        "max": 0.0,
    }
    assert [(each.job, each.pods) for each in found.run.waiting] == [("default/large", 1)]
    assert found.run.waiting[0].code == "Overcommit"


def test_jobs_to_come(tmp_path: Path) -> None:
    found = summary_of(inputs(tmp_path, TWO_QUEUES), until=25.0)
    assert ([work.key for work in found.run.result.to_come], found.run.result.completed) == (["default/giant"], 0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([1.0], None, id="one"),
        pytest.param([0.0, 0.0], None, id="zeros"),
        pytest.param([0.3, 0.3, 0.3], 1.0, id="even"),
        pytest.param([1.0, 0.0, 0.0, 0.0], 0.25, id="all-for-one"),
        pytest.param([1.0, 2.0], 0.9, id="one-to-two"),
    ],
)
def test_jain(values: list[float], expected: float | None) -> None:
    assert jain(values) == (None if expected is None else pytest.approx(expected))


def test_spread() -> None:
    found = spread(float(value) for value in range(101))
    assert found is not None
    assert (found.count, found.censored, found.p50, found.p90, found.p99, found.max) == (101, 0, 50, 90, 99, 100)
    assert found.mean == pytest.approx(50.0)
    assert spread([]) is None


def test_waiting_for_the_same_thing() -> None:
    waiting = [
        Waiting("ns/short", "a", 2, 10.0, "Shortage", "2 cores are free, it asks for 4"),
        Waiting("ns/other", "b", 1, 99.0, "Shortage", "2 cores are free, it asks for 4"),
        Waiting("ns/long", "a", 3, 20.0, "Shortage", "2 cores are free, it asks for 6"),
        Waiting("ns/new", "a", 4, None, "Behind", "others came first"),
    ]
    assert waiting_groups(waiting) == [
        WaitingGroup("a", "Shortage", "2 cores are free, it asks for 6", ("ns/long", "ns/short"), 5, 20.0),
        WaitingGroup("a", "Behind", "others came first", ("ns/new",), 4, None),
        WaitingGroup("b", "Shortage", "2 cores are free, it asks for 4", ("ns/other",), 1, 99.0),
    ]
