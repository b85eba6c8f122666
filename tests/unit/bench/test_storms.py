"""A storm whose process fails is named, and the other storms are measured all the same."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from bench import storms

FIGURES = {"first": 1.0, "next": 0.5, "equal": 0.1, "mb": 60.0, "what": "3 gangs"}


@pytest.mark.parametrize("failing", [4, None], ids=["one fails", "none fails"])
def test_seeds_after_one_that_failed_are_measured(
    failing: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: tuple[str, ...], **_: Any) -> subprocess.CompletedProcess[str]:
        if int(command[command.index("--one") + 1]) == failing:
            return subprocess.CompletedProcess(command, 1, "", "Traceback\nValueError: no such field\n")
        return subprocess.CompletedProcess(command, 0, json.dumps(FIGURES), "")

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr("sys.argv", ["storms", "--seeds", "3..5", "--dialect", storms.VOLCANO])
    assert storms.main() == (failing is not None)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["3", "4", "5"]
    assert ("4 volcano: failed with exit code 1: ValueError: no such field" in lines) == (failing is not None)
