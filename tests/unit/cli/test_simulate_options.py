"""Options of `pumice simulate`: the schedule period, shaken arrivals, faults, a window, a table of jobs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.faults import SHARES, SPANS, parse_faults
from pumice.cli.main import main
from pumice.report import batsim
from pumice.report.job_table import HEADER
from pumice.sim.faults import FaultPlan
from tests.unit.cli.kit import run
from tests.unit.report.kit import TWO_QUEUES, data_on, job, node, queue


@pytest.fixture
def two_queues(tmp_path: Path) -> Path:
    return written(tmp_path, *TWO_QUEUES)


def written(folder: Path, *manifests: str) -> Path:
    file = folder / "all.yaml"
    file.write_text("\n".join(manifests))
    return file


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


# -- faults


def test_every_fault_that_exists_can_be_asked_for() -> None:
    everything = ",".join([*(f"{name}=1%" for name in SHARES), *(f"{name}=7s" for name in SPANS)])
    plan = parse_faults(everything, 100.0)
    nothing = FaultPlan(100.0)
    same = [name for name in FaultPlan.__struct_fields__ if getattr(plan, name) == getattr(nothing, name)]
    assert same == ["quiet_after_s"]


def test_a_fault_is_asked_for_once() -> None:
    result = run("simulate", __file__, "--faults", "restart=1d,restart=2d", "--nodes", "1x1gpu")
    assert result.code == 2 and "--faults: found restart twice" in result.err


def test_restarts_evictions_and_lost_work_are_in_the_json(tmp_path: Path) -> None:
    """A pod of a gang of four is killed now and then: all four have worked in vain since the gang began."""
    jobs = [job(f"job-{i}", 4, at=400 * i, seconds=300) for i in range(20)]
    file, table = written(tmp_path, node("n1"), queue("a"), *jobs), tmp_path / "jobs.csv"
    found = run("simulate", file, "--json", "--faults", "pod-killed=500s", "--seed", 1, "--jobs", table).json
    each = rows(table)
    assert found["faults"]["pod killed"] >= found["restarts"] > 0
    assert sum(int(row["restarts"]) for row in each) == found["restarts"]
    assert sum(float(row["lost_s"]) for row in each) == pytest.approx(found["lost"]["job_s"])
    assert found["lost"]["hours"]["cpu"] == pytest.approx(4 * found["lost"]["job_s"] / 3600)
    assert found["evictions"] == 0
    assert found["slowdown"]["max"] > 1.5


# -- jobs as a table


def test_one_row_a_job(two_queues: Path, tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    result = run("simulate", two_queues, "--jobs", table)
    assert f"wrote {table}" in result.err
    first, second, giant = rows(table)
    assert tuple(first) == (*HEADER, *batsim.HEADER)
    assert (first["job"], first["queue"], first["pods"], first["state"]) == ("default/first", "a", "8", "done")
    times = ("submitted_s", "admitted_s", "started_s", "ended_s", "run_s", "wait_s", "completion_s", "slowdown")
    assert [second[name] for name in times] == ["20", "101", "102", "142", "40", "82", "122", "3.05"]
    assert second["waited_for"] == "Overcommit"
    assert (giant["state"], giant["started_s"], giant["ended_s"], giant["wait_s"]) == ("never", "", "", "")
    assert giant["waited_for"] == "Overcommit"


def test_a_row_for_those_that_run_wait_and_are_to_come(two_queues: Path, tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    run("simulate", two_queues, "--jobs", table, "--until", "25s")
    assert [row["state"] for row in rows(table)] == ["running", "waiting", "to come"]
    assert rows(table)[2]["submitted_s"] == "30"


# -- period, window, shaking


def test_the_period_is_how_far_cycles_are_apart(two_queues: Path, tmp_path: Path) -> None:
    """A job is admitted in one cycle and placed in the next."""
    for period, started in (("1s", "1"), ("5s", "5"), ("10us", "0.00001")):
        table = tmp_path / "jobs.csv"
        found = run("simulate", two_queues, "--json", "--period", period, "--jobs", table).json
        assert float(rows(table)[0]["started_s"]) == pytest.approx(float(started)), period
        assert found["period_s"] == pytest.approx(float(started))


def test_a_window(two_queues: Path) -> None:
    found = run("simulate", two_queues, "--json", "--warm-up", "10s", "--cool-down", "5s").json
    assert found["window"] == {"from_s": 10.0, "to_s": 25.0, "jobs": 1}
    assert found["wait_s"]["count"] == 1 and found["utilisation"]["cpu"]["mean"] == 1.0
    assert found["jobs"] == 3 and found["completed"] == 2
    out = run("simulate", two_queues, "--warm-up", "10s", "--cool-down", "5s").out
    assert "from 10 s to 25 s after the start: 1 job that arrived then" in out


def test_a_window_of_nothing(two_queues: Path) -> None:
    result = run("simulate", two_queues, "--warm-up", "10s", "--cool-down", "25s")
    assert result.code == 2
    (error,) = result.lines("error")
    assert "--warm-up, --cool-down: found a warm-up of 10 s and a cool-down of 25 s, which leaves no time" in error


def test_shaken_arrivals_are_a_universe_by_seed(two_queues: Path, tmp_path: Path) -> None:
    universes = {}
    for seed in (0, 0, 1):
        found = run("simulate", two_queues, "--json", "--shake", "10s", "--seed", seed, "--jobs", tmp_path / "jobs.csv")
        arrivals = [float(row["submitted_s"]) for row in rows(tmp_path / "jobs.csv")]
        assert arrivals[0] == 0 and 10 <= arrivals[1] <= 30 and found.json["shake_s"] == 10.0
        universes.setdefault(seed, set()).add((found.json["digest"], *arrivals))
    assert len(universes[0]) == 1 and universes[0].isdisjoint(universes[1])


# -- jobs that can never run


def test_a_job_that_can_never_run_is_named_and_what_it_holds(tmp_path: Path) -> None:
    file = written(tmp_path, node("n1"), node("n2"), queue("a"), job("five", cpu=5), job("gang", 5, at=10))
    result = run("simulate", file, "--json")
    assert result.code == 0 and run("simulate", file, "--strict").code == 1
    (said,) = result.lines("warning")
    assert said.startswith("job default/five: can never run: alone on the empty cluster, asks for 5 cores")
    assert "reserves 5 cores without using it" in said
    found = result.json
    assert found["ending"] == "stuck"
    assert [each["job"] for each in found["never_run"]] == ["default/five"]
    assert found["held_for_nothing"] == [{"job": "default/five", "promised": {"cpu": 5.0}, "on_nodes": {}}]
    assert "1 of them can never run" in run("simulate", file).out
    page = tmp_path / "report.html"
    run("simulate", file, "--report", page)
    shown = [each["what"] for each in data_on(page.read_text())["problems"]]
    assert any(what.startswith("can never run: alone on the empty cluster") for what in shown)


# -- standard input and output


def test_a_dash_is_standard_input_and_output(tmp_path: Path) -> None:
    file = written(tmp_path, node("n1"), node("n2"), queue("a"), job("one", cpu=1))
    result = CliRunner().invoke(main, ["simulate", "-", "--jobs", "-"], input=file.read_text())
    lines = result.stdout.splitlines()
    assert result.exit_code == 0 and lines[0].startswith("job,queue,pods") and len(lines) == 2
    assert "wrote" not in result.stderr


@pytest.mark.parametrize("more", [("--events", "-"), ("--json",)])
def test_standard_output_can_be_used_once(tmp_path: Path, more: tuple[str, ...]) -> None:
    file = written(tmp_path, node("n1"), queue("a"), job("one", cpu=1))
    result = run("simulate", file, "--jobs", "-", *more)
    assert result.code == 2 and "standard output (-) can be used once" in result.err
