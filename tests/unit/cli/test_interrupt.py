"""Ctrl-C: a simulation ends between two cycles, with what there is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pumice.cli.interrupt import stopped_by_ctrl_c
from tests.unit.report.kit import job, node, queue

COMMAND = [sys.executable, "-c", "from pumice.cli.main import main; main()", "simulate"]


def test_the_observer_stops_the_run_after_a_signal() -> None:
    result: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stopped_by_ctrl_c(result.append) as watch:
        watch(1)
        signal.raise_signal(signal.SIGINT)
        assert result == [1]
        watch(2)
    assert result == [1, 2]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_signal_does_not_wait() -> None:
    with pytest.raises(KeyboardInterrupt), stopped_by_ctrl_c(None):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_simulate_ends_early_and_reports(tmp_path: Path) -> None:
    """The events go into a pipe that is read up to a point: then the command is in the middle, and stays there."""
    manifests, pipe, report = tmp_path / "all.yaml", tmp_path / "events", tmp_path / "report.html"
    jobs = [job(f"job-{i}", at=100 * i) for i in range(3000)]
    manifests.write_text("\n".join([node("n1"), queue("a"), *jobs]))
    os.mkfifo(pipe)
    command = [*COMMAND, str(manifests), "--json", "--events", str(pipe), "--report", str(report)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with pipe.open() as events:
            while json.loads(events.readline())["t"] < 1000.0:
                pass
            process.send_signal(signal.SIGINT)
            rest = events.read().splitlines()
        out, err = process.communicate(timeout=120)
    found = json.loads(out)
    assert process.returncode == 130
    assert found["ending"] == "interrupted" and 0 < found["completed"] < found["jobs"] == 3000
    assert found["completed"] + found["running"] + found["pending"] + found["to_come"] == 3000
    assert json.loads(rest[-1])["ending"] == "interrupted"
    assert "interrupted: the figures cover the time until then" in err
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
