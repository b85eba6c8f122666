"""Sweeps and comparisons on a Ray cluster of this machine. ``make test-long`` installs Ray where it can be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pumice.sweeps.engines import engine_of
from pumice.sweeps.folder import SweepFolder
from pumice.sweeps.running import run_all
from pumice.sweeps.sharing import TRIES
from tests.unit.sweeps.kit import CONF, DEMO
from tests.unit.sweeps.test_running import seeds, written

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
PUMICE = [sys.executable, "-c", "from pumice.cli.main import main; main(prog_name='pumice')"]


@pytest.fixture(autouse=True)
def ray_is_there() -> None:
    pytest.importorskip("ray")


def ran(*words: str) -> str:
    done = subprocess.run([*PUMICE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_ray_cluster_gives_equal_bytes(tmp_path: Path) -> None:
    tables = []
    for engine in ("local", "ray"):
        out = tmp_path / engine
        asked = [DEMO, "--policy", f"default,{CONF}", "--seeds", "0..1", "--until", "20m", "--workers", "2"]
        ran("sweep", *asked, "--engine", engine, "--out", str(out))
        rows = {path.name: path.read_bytes() for path in (out / "universes").glob("*.json")}
        tables.append(((out / "table.arrow").read_bytes(), rows))
    assert len(tables[0][1]) == 4 and tables[0] == tables[1]


def test_a_comparison_on_ray_is_that_of_this_machine() -> None:
    asked = ["compare", "default", str(CONF), DEMO, "--repeats", "2", "--until", "20m", "--workers", "2", "--json"]
    assert ran(*asked, "--engine", "ray") == ran(*asked)


def test_a_worker_of_ray_that_dies_is_tried_again_and_then_named(tmp_path: Path) -> None:
    universes, store = seeds(tmp_path, 99, 66, 13, 2), SweepFolder(tmp_path)
    with engine_of("ray", 2) as engine:
        found = run_all(universes, engine, store, work=written)
    by_seed = {failure.universe.seed: failure.why for failure in found}
    assert by_seed == {66: f"its worker died {TRIES} times", 13: "ValueError: thirteen"}
    assert [store.row(each.digest) is not None for each in universes] == [True, False, False, True]
