"""The small parts: times, files that appear whole, progress."""

from __future__ import annotations

import io
from pathlib import Path

import click
import pytest

from pumice.cli import progress
from pumice.cli.output import written_whole
from pumice.cli.params import SPAN
from pumice.sim.world import Progress


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("90", 90.0, id="plain"),
        pytest.param("90s", 90.0, id="seconds"),
        pytest.param("1h30m", 5400.0, id="hours-and-minutes"),
        pytest.param("7d", 604_800.0, id="days"),
        pytest.param("0.5d", 43_200.0, id="half-a-day"),
    ],
)
def test_spans(text: str, seconds: float) -> None:
    assert SPAN.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "nan", "inf", "soon", "1e300", "101000d", "infd"])
def test_spans_that_are_none(text: str) -> None:
    with pytest.raises(click.BadParameter, match="wanted a time above 0"):
        SPAN.convert(text, None, None)


def test_a_file_appears_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with written_whole(path) as file:
        file.write("all")
        file.flush()
        assert not path.exists()
    assert path.read_text() == "all"


def test_a_file_that_was_not_finished_was_never_there(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), written_whole(path) as file:
        file.write("half")
        raise ZeroDivisionError
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


class Terminal(io.StringIO):
    """Standard error on a terminal."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """In the test itself: pytest puts its own standard error in place after the fixtures."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    return screen


def test_progress_of_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with progress.simulating(100.0, 7200.0) as show:
        assert show is not None
        show(Progress(now=3700.0, cycles=12, jobs=1500, ended=400, waiting=30, running=9))
    said = screen.getvalue()
    assert "400/1,500 jobs" in said
    assert "1 h of 2 h · 30 waiting · 9 running · 12 cycles" in said


def test_progress_of_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with progress.counting("cases") as show:
        show(3, 290, "gang.json")
    assert "3/290 cases" in screen.getvalue() and "gang.json" in screen.getvalue()


def test_what_is_left_is_estimated_from_the_part_of_simulated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = terminal(monkeypatch), [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    with progress.simulating(100.0, 7200.0) as show:
        clock[0] = 60.0
        show(Progress(now=1900.0, cycles=12, jobs=1500, ended=1400, waiting=30, running=9))
    assert "0:01:00 (about 0:03:00 left)" in screen.getvalue()


def test_without_a_terminal_there_is_a_line_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    unseen, clock = io.StringIO(), [0.0]
    monkeypatch.setattr("sys.stderr", unseen)
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    with progress.simulating(0.0, 1000.0) as show, progress.counting("cases") as count:
        for second in range(70):
            clock[0] = float(second)
            show(Progress(now=10.0 * second, cycles=second, jobs=9, ended=1, waiting=2, running=3))
        count(1, 2, "x")
    lines = unseen.getvalue().splitlines()
    assert len(lines) == 3 and lines[-1] == "50 % 0:01:09 (about 0:01:09 left) 1/2 cases x"
    assert lines[0].startswith("30 % 0:00:30 (about 0:01:10 left) 1/9 jobs 5 min of 16 min 40 s · 2 waiting")


def test_what_is_short_says_nothing_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    unseen = io.StringIO()
    monkeypatch.setattr("sys.stderr", unseen)
    with progress.simulating(0.0, None) as show, progress.counting("cases") as count:
        show(Progress(now=10.0, cycles=1, jobs=9, ended=1, waiting=2, running=3))
        count(1, 2, "x")
    assert unseen.getvalue() == ""
