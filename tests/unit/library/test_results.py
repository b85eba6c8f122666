"""Clusters, runs, cycles, comparisons and explanations as a notebook uses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import pumice
from pumice.cli.main import main
from pumice.library.html import html_facts
from tests.tidy import repo

DEMO = str(repo.ROOT / "examples" / "demo")
GANG = str(repo.ROOT / "examples" / "debug-gang")


def reports(*words: str) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)


def figures(run: pumice.Run) -> dict[object, Any]:
    return dict(zip(run.figures["figure"], run.figures["value"], strict=True))


@pytest.fixture(scope="module")
def run() -> pumice.Run:
    return pumice.load(DEMO).simulate()


def test_a_run_decides_what_the_command_decides(run: pumice.Run) -> None:
    expected = reports("simulate", DEMO)
    assert run.digest == expected["digest"] and run.ending == "stuck"
    assert run.to_dict()["wait_s"] == expected["wait_s"]
    assert round(figures(run)["wait_mean"], 3) == expected["wait_s"]["mean"]


@pytest.mark.parametrize("name", ["jobs", "pods", "events", "waits", "queues", "nodes", "figures", "problems"])
def test_polars_reads_each_table_of_a_run(run: pumice.Run, name: str) -> None:
    table = getattr(run, name)
    frame = pl.DataFrame(table)
    assert len(frame) == len(table) > 0 and frame.columns == [column.name for column in table.columns]
    assert all(column.about and (column.unit or column.kind in ("text", "flag")) for column in table.columns)
    assert len(repr(table).splitlines()) <= 24


def test_tables_of_a_run_agree(run: pumice.Run) -> None:
    jobs, pods = pl.DataFrame(run.jobs), pl.DataFrame(run.pods)
    assert pods["job"].n_unique() == jobs["started_s"].is_not_null().sum()
    assert pods["state"].unique().to_list() == ["succeeded"] and (pods["ended_s"] > pods["running_s"]).all()
    waits = pl.DataFrame(run.waits).group_by("job").agg(pl.col("seconds").sum())
    both = waits.join(jobs, on="job").filter(pl.col("wait_s").is_not_null())
    assert both.height and (both["seconds"] <= both["wait_s"] + 1e-6).all()
    assert 0 < figures(run)["use_nvidia.com/gpu"] < 1
    assert all(0 < float(str(busy)) <= 1 for busy in run.nodes["busy"])


def test_nodes_say_what_they_have() -> None:
    table = pumice.load(DEMO).nodes
    assert [table[name][0] for name in ("cpu", "memory", "gpu", "pods", "others")] == [64, 512, 8, 110, ""]


def test_pods_that_are_evicted_are_bound_again() -> None:
    run = pumice.load(repo.ROOT / "examples" / "defragment").simulate()
    pods = pl.DataFrame(run.pods)
    evicted = pl.DataFrame(run.events).filter(pl.col("event") == "evict").height
    assert evicted and (pods["state"] == "gone").sum() == evicted


def test_events_that_were_not_kept_are_an_error() -> None:
    run = pumice.load(DEMO).simulate(until="1h", events=False)
    with pytest.raises(pumice.InputError, match="pods: events of this run were not kept"):
        _ = run.pods
    assert len(run.jobs) == 25


def test_a_cycle_decides_what_the_command_decides() -> None:
    cycle, expected = pumice.load(GANG).schedule(), reports("schedule", GANG)
    assert cycle.digest == expected["digest"] and cycle.binds == expected["binds"]
    states = pl.DataFrame(cycle.pods).filter(pl.col("state").is_in(["waiting", "evicted"]))
    assert set(states["pod"]) >= set(expected["unscheduled"]) and expected["unscheduled"]
    assert sum(int(str(each)) for each in cycle.jobs["waiting"]) == len(expected["unscheduled"])


def test_an_explanation_is_that_of_the_command() -> None:
    found, expected = pumice.explain("ml/tf", GANG), reports("explain", "ml/tf", GANG)
    assert found.to_dict() == expected and found.verdict == expected["verdict"]
    assert len(found.reasons) == len(expected["reason"]) and len(found.ways) == len(expected["ways_out"])
    assert len(pumice.load(GANG).waiting().reasons) == 1
    with pytest.raises(LookupError, match="did you mean ml/tf"):
        pumice.explain("ml/tff", GANG)


def test_a_comparison_is_that_of_the_command() -> None:
    conf = f"{DEMO}/volcano-scheduler.conf"
    found = pumice.compare("default", conf, DEMO, repeats=2, until="2h")
    expected = reports("compare", "default", conf, DEMO, "--repeats", "2", "--until", "2h")
    assert found.to_dict() == {key: value for key, value in expected.items() if key != "problems"}
    assert len(pl.DataFrame(found.figures)) == len(expected["figures"])
    assert len(found.universes) == 2 * len(expected["figures"])
    assert "comparison of A default" in repr(found)


def test_blocks_are_universes_as_in_the_command() -> None:
    conf = f"{DEMO}/volcano-scheduler.conf"
    found = pumice.compare("default", conf, DEMO, blocks="30m", primary="none")
    expected = reports("compare", "default", conf, DEMO, "--blocks", "30m", "--primary", "none")
    assert found.to_dict() == {key: value for key, value in expected.items() if key != "problems"}
    assert len(found.compared.pairs) > 1 and found.compared.block_s == 1800.0


def test_what_cannot_be_compared_is_an_error() -> None:
    for wrong, text in (
        ({"blocks": "30m", "repeats": 2}, "found blocks and repeats, wanted one of them"),
        ({"blocks": "400d"}, "blocks: found 0 blocks in"),
        ({"repeats": 1, "until": "1s", "primary": "wait"}, "primary: wait: wanted none or one of"),
    ):
        with pytest.raises(pumice.InputError, match=text):
            pumice.compare("default", "default", DEMO, **wrong)  # type: ignore[arg-type]


def test_a_snapshot_is_a_cluster_with_its_policy(tmp_path: Path) -> None:
    saved = tmp_path / "cycle.pumice"
    CliRunner().invoke(main, ["simulate", DEMO, "--save-cycle", "12", str(saved)])
    assert pumice.load(saved).schedule().digest == reports("schedule", str(saved))["digest"]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"until": "2x"}, "until: found '2x', wanted a time above 0"),
        ({"nodes": "8xtpus"}, "nodes"),
        ({"warm_up": "9000d"}, "warm_up, cool_down"),
        ({"policy": 3}, "policy: found 3"),
        ({"policy": "no.conf"}, "no.conf: No such file"),
        ({"policy": str(repo.ROOT)}, "found a folder, wanted a policy file"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], wanted: str) -> None:
    with pytest.raises(pumice.InputError, match=wanted):
        pumice.load(DEMO).simulate(**arguments)


def test_input_without_anything_usable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pumice.InputError, match=r"gone\.yaml: no such file or folder\n.*too\.yaml"):
        pumice.load("gone.yaml", tmp_path / "too.yaml")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(pumice.InputError, match="found nothing usable"):
        pumice.load(tmp_path / "empty.yaml")


def test_what_cannot_be_used_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("{kind: Queue, apiVersion: scheduling.volcano.sh/v1beta1}\n---\n: [")
    with pytest.warns(UserWarning, match="the rest is used"):
        found = pumice.load(GANG, tmp_path / "bad.yaml")
    assert len(found.problems) and "problems" in repr(found)


def test_no_text_of_a_result_is_longer_than_a_screen(run: pumice.Run) -> None:
    cluster = pumice.load(DEMO)
    cycle = cluster.schedule()
    tables = (run.jobs, run.queues, run.events, cycle.decisions)
    compared = pumice.compare("default", f"{DEMO}/volcano-scheduler.conf", DEMO, repeats=2, until="1h")
    results = (cluster, run, cycle, cluster.waiting(), pumice.explain("ml/tf", GANG), compared, compared.figures)
    rows = (run.jobs.row("demo/giant"), run.queues.row("batch"), cycle.decisions.row(next(iter(cycle.binds))))
    for each in (*results, *tables, *rows):
        lines = repr(each).splitlines()
        assert len(lines) <= 24 and max(map(len, lines)) <= 100, each
        page = each._repr_html_()
        assert page.startswith("<table>") and page.count("<tr>") <= 25 and len(page) < 30_000
    assert "volcano-scheduler.conf" in compared._repr_html_()


def test_decisions_are_those_of_the_digest() -> None:
    cycle = pumice.load(repo.ROOT / "examples" / "defragment").schedule()
    found = [(row["pod"], row["node"]) for row in cycle.decisions if row["decision"] == "bind"]
    assert found == list(cycle.binds.items())
    assert [row["pod"] for row in cycle.decisions if row["decision"] == "evict"] == cycle.evicted
    assert {row["pod"] for row in cycle.decisions if row["decision"] == "reserve"} == set(cycle.pipelined)
    assert len(cycle.decisions) > 0 and all(row["why"] for row in cycle.decisions if row["decision"] == "evict")


@pytest.mark.parametrize("facts", [1, 5, 500])
def test_facts_are_no_longer_than_a_screen(facts: int) -> None:
    page = html_facts("x", {f"<{i}>": "long " * 1000 for i in range(facts)})
    assert page.count("<tr>") == min(facts, 24) and len(page) < 24 * 500 and "<1>" not in page
    assert ("more" in page) == (facts > 24)


def test_objects_of_kai_are_scheduled_under_its_default() -> None:
    cluster = pumice.load(repo.ROOT / "examples" / "kai" / "cluster.yaml")
    assert cluster.policy().policy.dialect.name == "kai"
    assert cluster.policy("default").policy.dialect.name == "volcano"
