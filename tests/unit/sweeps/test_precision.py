"""Seeds until a figure is known well enough, and maps of settings that differ in two things."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

import pumice
from pumice.algorithms.intervals import Interval
from pumice.cli.main import main
from pumice.sweeps.heat import heat_map, html_of
from pumice.sweeps.precision import Precision, parse, rounds, up_to, widest
from pumice.sweeps.results import Setting
from pumice.sweeps.universe import UniverseResult
from tests.tidy import repo
from tests.unit.sweeps.kit import CONF, DEMO, plan


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("wait.mean ± 2 %", Precision("wait_mean", 0.02)),
        ("wait_p90±0.5%", Precision("wait_p90", 0.005)),
        ("use_gpu +- 10 %", Precision("use_gpu", 0.1)),
    ],
)
def test_rules_are_read(text: str, rule: Precision) -> None:
    assert parse(text) == rule


@pytest.mark.parametrize("text", ["± 2 %", "wait ± 2", "wait ± 0 %", "wait ± 100 %", "wait mean ± 2 %", "wait ± -2 %"])
def test_other_texts_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="wanted a figure and a share of its mean"):
        parse(text)


def test_rounds_take_seeds_in_order_for_all_settings() -> None:
    found = list(rounds(plan(policies=["default", CONF], seeds="0..9")))
    assert [seeds for seeds, _ in found] == [4, 5, 7, 9, 10]
    assert [[each.seed for each in universes] for _, universes in found][1:3] == [[4, 4], [5, 5, 6, 6]]
    assert sum(len(universes) for _, universes in found) == 20


def test_the_widest_interval_of_all_settings_counts() -> None:
    made = plan(policies=["default", CONF], seeds="0..3")

    def rows(*values: float | None) -> list[UniverseResult]:
        return [UniverseResult(str(i), "", "done", {"wait_mean": value}, True) for i, value in enumerate(values)]

    narrow = list(zip(made.universes, rows(10, 10, 10, 10, 10, 11, 9, 10), strict=True))
    # Student's t of 3 degrees is 3.182; the deviation of 10, 11, 9, 10 is 0.8165.
    assert widest(narrow, "wait_mean") == pytest.approx(3.1824 * 0.8165 / 2 / 10, rel=1e-3)
    unknown = list(zip(made.universes, rows(10, 10, 10, 10, 10, None, 9, 10), strict=True))
    assert widest(unknown, "wait_mean") == math.inf and widest([], "wait_mean") == math.inf
    with pytest.raises(ValueError, match="found the figure 'wait', wanted one of wait_mean"):
        widest(narrow, "wait")
    assert [each.seed for each in up_to(made, 2).universes] == [0, 1, 0, 1]


def test_a_sweep_stops_when_the_figure_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["sweep", DEMO, "--policy", "default", "--until", "20m", "--workers", "1", "--json"]

    def run(rule: str, name: str, *more: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(main, [*words, "--until", rule, "--out", str(tmp_path / name), *more])
        return result.exit_code, result.stdout, result.stderr

    code, out, said = run("wait.mean ± 99 %", "wide")
    assert (
        code == 0 and json.loads(out)["universes"] == 4 and "wait_mean ± 99 %: ± " in said and "after 4 seeds" in said
    )
    assert "wanted one of" in run("weight.mean ± 2 %", "none")[2]
    assert "each shard would stop for itself" in run("wait.mean ± 2 %", "shard", "--shard", "1/2")[2]
    assert "wanted one time and one rule at most" in run("30m", "twice")[2]
    monkeypatch.setattr(
        "pumice.sweeps.precision.widest", lambda found, figure: 0.5
    )  # a figure that no seed tells better
    code, out, said = run("wait.mean ± 2 %", "narrow", "--seeds", "0..4")
    assert code == 0 and json.loads(out)["finished"] == 5 and "± 50 % after all 5 seeds; name more with --seeds" in said


def test_a_plan_file_names_a_time_and_a_rule(tmp_path: Path) -> None:
    def run(until: str, *more: str) -> tuple[int, str]:
        file = tmp_path / "plan.toml"
        file.write_text(f'inputs = "{DEMO}"\npolicies = "default"\nshake = "60s"\nuntil = {until}\n')
        words = ["sweep", str(file), "--workers", "1", "--out", str(tmp_path / "out"), *more]
        result = CliRunner().invoke(main, words)
        return result.exit_code, result.stderr

    code, said = run('["20m", "wait.mean ± 99 %"]')
    assert code == 0 and "200 universes, 0 finished before" in said and "after 4 seeds" in said
    assert run('"20m"') == (0, run('["20m"]')[1])
    assert "each shard would stop for itself" in run('"wait.mean ± 2 %"', "--shard", "1/2")[1]
    assert "plan.toml: until: found '20m', '30m', wanted one time and one rule" in run('["20m", "30m"]')[1]


def setting(nodes: str, weight: int, mean: float) -> Setting:
    return Setting("default", nodes, (("binpack.weight", weight),), Interval(mean, mean, mean, 2), None)


def test_two_things_that_differ_are_a_map() -> None:
    settings = [setting("4x8gpu", 10, 3.0), setting("4x8gpu", 2, 1.0), setting("<b>", 10, 5.0)]
    found = heat_map(settings, "wait_mean", less_is_better=True)
    assert found is not None
    assert (found.row_name, found.rows) == ("nodes", ("4x8gpu", "<b>"))
    assert (found.column_name, found.columns) == ("binpack.weight", ("2", "10"))  # by size
    assert found.cells == ((1.0, 3.0), (None, 5.0))
    assert (found.heat(1.0), found.heat(3.0), found.heat(5.0)) == (0.0, 0.5, 1.0)
    page = html_of(found, [["1 s", "3 s"], ["", "5 s"]])
    assert "&lt;b&gt;" in page and "<b>" not in page and page.count("<td style") == 3


def test_one_thing_and_three_are_no_map() -> None:
    assert heat_map([setting("a", 1, 1.0), setting("a", 2, 1.0)], "wait_mean", less_is_better=True) is None
    assert heat_map([], "wait_mean", less_is_better=True) is None


def test_the_command_writes_a_map_or_says_what_it_needs(tmp_path: Path) -> None:
    words = [
        "sweep",
        DEMO,
        "--until",
        "10m",
        "--workers",
        "1",
        "--nodes",
        "10x8gpu,12x8gpu",
        "--out",
        str(tmp_path / "o"),
    ]
    page = tmp_path / "map.html"
    result = CliRunner().invoke(main, [*words, "--policy", f"default,{CONF}", "--heat-map", str(page)])
    assert result.exit_code == 0 and "12x8gpu" in page.read_text()
    result = CliRunner().invoke(main, [*words, "--policy", "default", "--heat-map", str(page)])
    assert (
        result.exit_code == 2 and "wanted settings that differ in two of policy, nodes and arguments" in result.stderr
    )


@pytest.mark.parametrize(("nodes", "seconds"), [("2:cpu=4,memory=16Gi", 1801), ("1:cpu=7,memory=64Gi", 3601)])
def test_shards_of_the_indexed_job_run_where_there_is_room(nodes: str, seconds: float) -> None:
    example = str(repo.ROOT / "examples" / "sweep-job.yaml")
    found = pumice.load(example, nodes=nodes).simulate()
    assert (found.ending, len(found.pods), found.jobs["state"]) == ("done", 4, ["done"])
    assert max(value for value in found.pods["ended_s"] if isinstance(value, float)) == pytest.approx(seconds, abs=2)
