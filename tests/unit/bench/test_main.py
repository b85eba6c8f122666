"""The runner: which figures run how often, what it answers, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench import __main__ as runner
from bench.figures import CYCLE_CPU, TO_EQUAL, Figure, Measure
from bench.processes import Run, RunError
from bench.table import BEGIN, END

SHORT = Figure("gang-1k", "short", ("bench", "short"), (Measure("s", limit=2.0),), quick=True)
LONG = Figure("topo-1", "long", ("simulate", "long"), (Measure("s"),), runs=3)
GONE = Figure("gone", "not here", ("simulate", "gone"), (Measure("s"),), needs=Path("no", "such", "trace"))


@dataclass(slots=True)
class Machine:
    """Answers for the processes, and remembers what was run with which seed."""

    seconds: Mapping[str, float] = field(default_factory=lambda: {"short": 1.0, "long": 9.0})
    seen: list[tuple[str, int]] = field(default_factory=list)

    def __call__(
        self, command: Sequence[str], holds: Mapping[str, object], seed: int, within: float | None = None
    ) -> Run:
        self.seen.append((command[-1], seed))
        if command[-1] not in self.seconds:
            raise RunError("it failed")
        return Run({"s": self.seconds[command[-1]]}, "digest")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(runner, "run", made)
    return made


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        pytest.param([], {"short": 5, "long": 3}, id="all"),
        pytest.param(["--quick"], {"short": 2}, id="quick"),
        pytest.param(["--only", "topo-1"], {"long": 3}, id="one"),
        pytest.param(["--runs", "1"], {"short": 1, "long": 1}, id="once"),
        pytest.param(["--quick", "--runs", "4"], {"short": 4}, id="quick, and as often as asked"),
    ],
)
def test_what_runs_how_often(machine: Machine, arguments: list[str], seen: dict[str, int]) -> None:
    assert runner.main(arguments, (SHORT, LONG, GONE)) == 0
    assert machine.seen == [(name, seed) for name, count in seen.items() for seed in range(count)]


def test_a_figure_is_held_against_the_runs_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is half as fast at the second run, and the ratio is the same."""
    seconds = iter((0.125, 1.5, 0.375, 0.25, 3.0, 0.75))
    seen: list[tuple[str, int]] = []

    def took(command: Sequence[str], holds: Mapping[str, object], seed: int, within: float | None = None) -> Run:
        seen.append((command[-1], seed))
        return Run({CYCLE_CPU: next(seconds)}, command[-1])

    monkeypatch.setattr(runner, "run", took)
    equal = Figure("equal", "no change", ("bench", "equal"), (Measure(CYCLE_CPU),))
    other = Figure("unique", "not", ("bench", "unique"), (Measure(TO_EQUAL, 4.0),), equal=equal)
    assert [run.values[TO_EQUAL] for run in runner._runs(other, 2)] == [6.0, 6.0]
    assert seen == [(name, seed) for seed in (0, 1) for name in ("equal", "unique", "equal")]


def test_a_figure_without_its_trace_is_named(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main([], (GONE,)) == 0
    assert machine.seen == []
    assert "gone: left out, no/such/trace is not there" in capsys.readouterr().err


def test_json(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--json", "--runs", "2"], (SHORT,)) == 0
    (figure,) = json.loads(capsys.readouterr().out)["figures"]
    assert figure == {
        "name": "gang-1k",
        "command": "pumice bench short",
        "runs": 2,
        "digests": ["digest"],
        "measures": {"s": {"best": 1.0, "median": 1.0, "limit": 2.0}},
        "missed": [],
    }


def test_a_missed_figure_and_a_failed_one_are_said(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.seconds = {"short": 2.5}
    assert runner.main([], (SHORT, LONG)) == 1
    said = capsys.readouterr()
    assert "missed: gang-1k: s 2.5, must reach 2" in said.err
    assert "topo-1: it failed" in said.err
    assert "`gang-1k`" in said.out and "`topo-1`" not in said.out


def test_each_run_is_followed_by_one_of_the_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The machine is half as fast at the second pair, and the ratio is the same."""
    other = tmp_path / "pumice"
    other.touch()
    seconds = iter((1.5, 1.0, 3.0, 2.0))
    digests = iter("aaab")
    seen: list[tuple[bool, int]] = []

    def took(command: Sequence[str], holds: Mapping[str, object], seed: int, within: float | None = None) -> Run:
        seen.append((command[0] == str(other), seed))
        return Run({CYCLE_CPU: next(seconds)}, next(digests))

    monkeypatch.setattr(runner, "run", took)
    asked = ["--only", "gang-1k", "--runs", "2", "--against", str(other), "--limit", "1.1"]
    assert runner.main(asked, (SHORT,)) == 1
    assert seen == [(False, 0), (True, 0), (False, 1), (True, 1)]
    printed = capsys.readouterr()
    assert "| `gang-1k` | cycle CPU s | 2.25 / 1.5 | 1.5 | differs |" in printed.out
    assert "missed: gang-1k: ratio 1.5, must reach 1.1" in printed.err


def test_the_page_is_written(machine: Machine, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# Figures\n{BEGIN}\n{END}\n", encoding="utf-8")
    assert runner.main(["--only", "gang-1k", "--write", str(page)], (SHORT,)) == 0
    assert "| s 1 / 1 ≤ 2 |  |" in page.read_text(encoding="utf-8")


def test_interrupted_tells_what_was_whole_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(command: Sequence[str], holds: Mapping[str, object], seed: int, within: float | None = None) -> Run:
        if command[-1] == "long":
            raise KeyboardInterrupt
        return Run({"s": 1.0}, "digest")

    monkeypatch.setattr(runner, "run", interrupt)
    page = tmp_path / "performance.md"
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    assert runner.main(["--write", str(page)], (SHORT, LONG)) == 130
    said = capsys.readouterr()
    assert "interrupted" in said.err and "`gang-1k`" in said.out
    assert page.read_text(encoding="utf-8") == f"{BEGIN}\n{END}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "nothing"],
        ["--runs", "0"],
        ["--runs", "many"],
        ["--write", "no-such-page.md"],
        ["--write", "LICENSE"],
        ["--against", "no-such-pumice"],
        ["--limit", "1.1"],
    ],
    ids=" ".join,
)
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        runner.main(arguments, (SHORT,))
    assert left.value.code == 2
    assert "usage:" in capsys.readouterr().err
