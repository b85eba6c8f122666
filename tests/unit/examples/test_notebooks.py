"""Published tables in notebooks: short, and true; a sample in each run of the tests, the whole in `make test-long`."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import pumice
from tests.unit.sim.kit import SHARED, WITHOUT_SHARED

FOLDER = Path(__file__).parents[3] / "examples" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
LINES_MAX = 6
#: The others differ in what pods ask for, and each takes seconds: `make test-long` runs them all.
OPENB_SAMPLE = ["openb-gpuspec33"]
OPENB, THETA, PHILLY = (SHARED / "traces" / name for name in ("openb-2023", "theta-alcf", "philly-gavel"))
with_traces = pytest.mark.skipif(not OPENB.is_dir(), reason=WITHOUT_SHARED)


def cells(name: str) -> list[dict[str, Any]]:
    found = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def ran(name: str, monkeypatch: pytest.MonkeyPatch, **parameters: object) -> Any:
    """Run the cells of a notebook in order, as Jupyter does, and return the value of the last line.

    ``parameters``: set after the cell with the tag of that name.
    """
    monkeypatch.chdir(FOLDER)
    monkeypatch.syspath_prepend(str(FOLDER))
    names: dict[str, Any] = {"__name__": "__main__"}
    value = None
    for cell in cells(name):
        body = ast.parse("".join(cell["source"]))
        last = ast.Expression(body.body.pop().value) if isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, name, "exec"), names)
        value = eval(compile(last, name, "eval"), names) if last is not None else None
        if "parameters" in cell["metadata"].get("tags", ()):
            assert parameters.keys() <= names.keys(), f"{name} has no parameter {parameters.keys() - names.keys()}"
            names.update(parameters)
    return value


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_has_few_lines_and_no_outputs(name: str) -> None:
    found = cells(name)
    lines = [line for cell in found for line in "".join(cell["source"]).splitlines() if line.strip()]
    assert len(lines) <= LINES_MAX
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in found)


def test_there_are_enough() -> None:
    assert len(NOTEBOOKS) >= 6


@pytest.mark.slow
@with_traces
@pytest.mark.parametrize("name", OPENB_SAMPLE)
def test_one_fill_is_near_the_published_mean(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ran(name, monkeypatch, traces=str(OPENB), repeats=1, policies="packing")
    (row,) = found.policies
    assert row["allocated"] == pytest.approx(row["published"], abs=3 * row["published_deviation"])


@pytest.mark.slow
@with_traces
def test_one_fill_of_shared_gpus_is_near_the_published_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = ran("fgd-shares", monkeypatch, traces=str(OPENB), repeats=1, shares=(40,)).values()
    assert row["allocated"] == pytest.approx(row["published"], abs=3 * row["published_deviation"])


@pytest.mark.slow
@with_traces
def test_fragments_of_one_fill_are_near_the_published_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = ran("fgd-fragments", monkeypatch, traces=str(OPENB), repeats=1, policies="packing").values()
    near = pytest.approx(row["published_fragments"], abs=3 * row["published_fragments_deviation"])
    assert row["fragments"] == near


@with_traces
@pytest.mark.parametrize("name", ["theta-2022-fcfs", "theta-2023-fcfs", "theta-2023-easy"])
def test_a_day_of_theta_waits_in_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ran(name, monkeypatch, trace=str(THETA / f"{name[:10].replace('-', '_')}.swf"), until="12h")
    assert isinstance(text, str) and text.startswith("mean wait ") and text.endswith(" h")


@with_traces
def test_hours_of_philly_are_shown_beside_the_published_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ran("philly-waits", monkeypatch, trace=str(PHILLY), until="6h")
    assert "published 3761 s; median" in text


@pytest.mark.long
@with_traces
@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name.startswith("openb")])
def test_fills_are_within_the_published_deviation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: pumice.Fill = ran(name, monkeypatch, traces=str(OPENB))
    assert len(found.policies) == 6 and all(found.policies["within"])


@pytest.mark.long
@with_traces
@pytest.mark.parametrize("share", [40, 60, 80, 100])
def test_fills_of_shared_gpus_are_within_the_published_deviation(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = ran("fgd-shares", monkeypatch, traces=str(OPENB), shares=(share,)).values()
    assert row["within"], row


@pytest.mark.long
@with_traces
@pytest.mark.parametrize("policy", ["random", "dotprod", "clustering", "packing", "bestfit", "fgd"])
def test_fragments_are_the_published_ones(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ran("fgd-fragments", monkeypatch, traces=str(OPENB), policies=policy)[policy]
    apart = row["published_fragments_deviation"] if policy == "random" else 0.01  # the study has two digits
    assert row["fragments"] == pytest.approx(row["published_fragments"], abs=apart)


@pytest.mark.long
@with_traces
@pytest.mark.parametrize("name", ["theta-2022-fcfs", "theta-2023-fcfs", "theta-2023-easy"])
def test_a_whole_trace_of_theta_waits_as_long_as_expected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ran(name, monkeypatch, trace=str(THETA / f"{name[:10].replace('-', '_')}.swf"))
    wait_h, expected_h = (float(part.split()[-2]) for part in text.split(","))
    # A period of one second delays each start by up to two, which adds up in a line of jobs that wait for each other.
    assert wait_h == pytest.approx(expected_h, rel=0.005)
