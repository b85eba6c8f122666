"""``pumice sweep`` as users run it: resumed after a kill, in shards, and on dask."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from pumice.algorithms.intervals import mean_interval
from pumice.cli.answers.sweep import print_settings
from pumice.cli.main import main
from pumice.sweeps.results import Setting
from tests.unit.sweeps.kit import CONF, DEMO

PUMICE = [sys.executable, "-c", "from pumice.cli.main import main; main(prog_name='pumice')", "sweep"]
ASKED = [DEMO, "--policy", f"default,{CONF}", "--seeds", "0..1", "--until", "20m"]
COMPARED = ["compare", "default", str(CONF), DEMO, "--repeats", "2", "--until", "10m", "--json"]
FUZZED = ["fuzz", "--seeds", "0..5", "--json"]
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def rows(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "universes").glob("*.json")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep that was run in one go."""
    out = tmp_path_factory.mktemp("whole")
    result = CliRunner().invoke(main, ["sweep", *ASKED, "--out", str(out), "--workers", "2", "--json"])
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["universes"] == found["finished"] == 4 and len(found["settings"]) == 2
    assert found["settings"][0]["behind"] is None and found["settings"][1]["behind_interval"]
    return out


def test_the_table_of_settings_has_a_column_for_each_thing_that_differs(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    text = CliRunner().invoke(main, ["sweep", *ASKED, "--out", str(out)]).stdout.splitlines()
    assert text[0] == "4 universes, 2 settings, by wait_mean, best first"
    assert text[2].split()[:2] == ["policy", "wait_mean"] and len(text) == 6
    assert {line.split()[0] for line in text[4:]} == {"default", Path(CONF).stem}


def test_settings_are_called_by_the_shortest_names_that_tell_them_apart(capsys: pytest.CaptureFixture[str]) -> None:
    def of(policy: str, *values: int, names: tuple[str, ...]) -> Setting:
        value = mean_interval(np.array([1.0, 2.0]))
        return Setting(policy, "4x8gpu", tuple(zip(names, values, strict=True)), value, None)

    print_settings([of("a/drf.conf", 1, 2, names=("nodeorder.x.weight", "drf.on"))], "wait_mean", 2)
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:3] == ["weight is nodeorder.x.weight", "on is drf.on"] and shown[6].split()[:4] == [
        "drf",
        "1",
        "2",
        "4x8gpu",
    ]
    both = ("nodeorder.x.weight", "nodeorder.y.weight")
    print_settings([of("a/drf.conf", 1, 2, names=both), of("b/drf.conf", 1, 2, names=both)], "wait_mean", 2)
    shown = capsys.readouterr().out.splitlines()
    assert shown[2].split()[:3] == ["policy", *both] and shown[4].split()[0] == "a/drf.conf"


def test_polars_reads_the_table(whole: Path) -> None:
    frame = pl.read_ipc_stream(whole / "table.arrow")
    assert frame.height == 4 and frame["seed"].to_list() == [0, 1] * 2 and frame["wait_mean"].dtype == pl.Float64


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on(whole: Path, tmp_path: Path) -> None:
    command = [*PUMICE, *ASKED, "--out", str(tmp_path / "out"), "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        folder = tmp_path / "out" / "universes"
        assert "4 universes, 0 finished before" in process.stderr.readline()
        while not any(folder.glob("*.json")):
            os.sched_yield()
        os.kill(process.pid, signal.SIGKILL)
        process.stderr.read()  # ends once no worker holds the pipe: workers end with their parent
    assert process.returncode == -signal.SIGKILL
    before = rows(tmp_path / "out")
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"4 universes, {len(before)} finished before" in again.stderr and before
    assert rows(tmp_path / "out") == rows(whole)
    assert (tmp_path / "out" / "table.arrow").read_bytes() == (whole / "table.arrow").read_bytes()


def test_shards_are_merged(whole: Path, tmp_path: Path) -> None:
    parts = [str(tmp_path / f"part-{number}") for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        run = CliRunner().invoke(main, ["sweep", *ASKED, "--shard", f"{number}/2", "--out", part, "--workers", "1"])
        assert run.exit_code == 0 and f"shard {number} of 2: 2 of 2" in run.stderr
    some = CliRunner().invoke(main, ["sweep", *ASKED, "merge", parts[0], "--out", str(tmp_path / "some")])
    assert some.exit_code == 1 and "2 of 4 universes are in no part" in some.stderr
    merged = CliRunner().invoke(main, ["sweep", *ASKED, "merge", *parts, "--out", str(tmp_path / "all")])
    assert merged.exit_code == 0 and "4 universes, 2 settings, by wait_mean" in merged.stdout
    assert (tmp_path / "all" / "table.arrow").read_bytes() == (whole / "table.arrow").read_bytes()


@pytest.mark.slow
def test_sweeps_comparisons_and_worlds_on_dask_are_those_of_this_machine(whole: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "cluster.py").write_text(CLUSTER)
    started = [sys.executable, str(tmp_path / "cluster.py")]
    with subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None and cluster.stdin is not None
        address = cluster.stdout.readline().strip().removeprefix("tcp://")
        try:
            out = tmp_path / "out"
            command = [*PUMICE, *ASKED, "--engine", f"dask://{address}", "--out", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            for words in (COMPARED, FUZZED):
                on_dask = [*PUMICE[:-1], *words, "--engine", f"dask://{address}"]
                there = subprocess.run(on_dask, capture_output=True, text=True, check=True).stdout
                assert there == CliRunner().invoke(main, [*words, "--workers", "1"]).stdout
        finally:
            cluster.stdin.close()
    assert rows(out) == rows(whole)
    assert (out / "table.arrow").read_bytes() == (whole / "table.arrow").read_bytes()


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        (["--shard", "3/2"], "--shard: found '3/2', wanted I/N such as 1/4"),
        (["--set", "drf.x=1"], "drf"),
        (["--engine", "slurm"], "engine: found 'slurm', wanted local, dask://HOST:PORT, ray or ray://HOST:PORT"),
        (["--nodes", "16:cpu=4"], "no node has nvidia.com/gpu"),
        (["--figure", "wait"], "--figure: found 'wait', wanted one of wait_mean"),
        (["merge"], "wanted a plan or inputs, then merge and the folders of all shards"),
        (["merge", "/gone"], "/gone: no such folder"),
    ],
)
def test_wrong_flags_are_named(tmp_path: Path, whole: Path, more: list[str], wanted: str) -> None:
    out = whole if "--figure" in more else tmp_path
    result = CliRunner().invoke(main, ["sweep", *ASKED, "--out", str(out), *more])
    assert result.exit_code == 2 and wanted in result.stderr, result.stderr
