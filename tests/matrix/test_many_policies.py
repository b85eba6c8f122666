"""Jobs under several policies: figures are those of one run, and a policy that runs nothing is not simply the best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.matrix.inputs import CONFS, JOBS_INPUTS, written_input
from tests.unit.cli.kit import run


@pytest.fixture
def confs(tmp_path: Path) -> dict[str, Path]:
    for name, text in CONFS.items():
        (tmp_path / f"{name}.conf").write_text(text)
    return {name: tmp_path / f"{name}.conf" for name in CONFS}


def swept(folder: Path, jobs: Path, *policies: Path) -> Any:
    named = [word for each in policies for word in ("--policy", each)]
    return run("sweep", jobs, *named, "--until", "2d", "--workers", "1", "--out", folder / "out", "--json").json


@pytest.mark.parametrize(
    ("name", "conf"), [("volcano-job", "volcano"), ("volcano-gang", "pumice"), ("kai-gang", "kai")]
)
def test_figures_of_many_runs_are_those_of_one(tmp_path: Path, confs: dict[str, Path], name: str, conf: str) -> None:
    jobs = written_input(tmp_path, JOBS_INPUTS[name])
    one = run("simulate", jobs, "--conf", confs[conf], "--until", "2d", "--json").json["wait_s"]["mean"]
    words = ("--repeats", "1", "--workers", "1", "--until", "2d", "--json")
    rows = run("compare", confs[conf], "default", jobs, *words).json["figures"]
    (compared,) = [row for row in rows if row["name"] == "wait_mean"]
    (setting,) = swept(tmp_path, jobs, confs[conf])["settings"]
    assert one > 0 and compared["a"] == pytest.approx(one, abs=1e-3) == setting["mean"]


def test_a_policy_under_which_nothing_runs_is_named_with_what_it_leaves_undone(
    tmp_path: Path, confs: dict[str, Path]
) -> None:
    jobs = written_input(tmp_path, JOBS_INPUTS["volcano-job"])
    found = swept(tmp_path, jobs, confs["volcano"], confs["kai"])
    assert [(Path(each["policy"]).stem, each["done"]) for each in found["settings"]] == [("kai", 0), ("volcano", 2)]
    assert found["caution"].startswith(
        "The best setting leaves more jobs undone: 0 are done, and up to 2 under another"
    )
    alone = swept(tmp_path, jobs, confs["volcano"])
    assert alone["caution"] is None and alone["settings"][0]["done"] == 2


@pytest.mark.parametrize("figure", ["wait.max", "wait_max", "use_cpu", "use_nvidia.com/gpu"])
def test_a_figure_has_one_name_in_all_commands(tmp_path: Path, figure: str) -> None:
    jobs = written_input(tmp_path, JOBS_INPUTS["volcano-job"])
    words = ("--workers", "1", "--until", "2d", "--json")
    gpus = ("--nodes", "2:cpu=8,memory=64Gi,gpu=1")
    compared = run("compare", "default", "default", jobs, "--repeats", "1", "--primary", figure, *gpus, *words)
    out = ("--out", tmp_path / "out", "--policy", "default")
    assert (compared.code, run("sweep", jobs, "--figure", figure, *out, *gpus, *words).code) == (0, 0)


@pytest.mark.parametrize("name", ["volcano-gang", "kai-gang"])
def test_pods_that_a_change_leaves_without_a_node_are_a_difference(tmp_path: Path, name: str) -> None:
    jobs = written_input(tmp_path, JOBS_INPUTS[name], running="first")
    result = run("whatif", jobs, "--drain", "n", "--json")
    assert (result.code, result.json["displaced"]) == (1, {"ml/first": 2})
    assert run("whatif", jobs, "--drain", "n").out.startswith("2 pods lose their nodes, 3 jobs still wait\n")
    moved = run("whatif", jobs, "--drain", "n", "--add-nodes", "1xn", "--json")
    assert (moved.json["displaced"], moved.json["placed"]) == ({}, {"ml/first": 2})
    assert run("whatif", jobs, "--remove", "job/ml/giant").code == 0
