"""Servers that benches and tests start do not outlive them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.tied import Tie, tied

LAST_S = 600
#: Starts a process that shares its standard output, says so, and waits.
PARENT = f"""
import subprocess, sys
from tests.tied import Tie
child = subprocess.Popen(["sleep", "{LAST_S}"], start_new_session=True)
tie = Tie(child)
print("started", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_process_ends_when_the_one_that_started_it_is_ended_by(number: signal.Signals) -> None:
    """The pipe ends when no process holds it: neither the parent nor its child."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        parent.send_signal(number)
        rest, _ = parent.communicate(timeout=LAST_S / 10)
    assert (parent.returncode, rest) == (-number, "")


def test_a_process_outlives_a_tie_that_is_cut() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        Tie(process).cut()
        assert process.communicate(b"still here") == (b"still here", None)
    assert process.returncode == 0


def test_a_process_that_is_tied_is_killed_in_the_end() -> None:
    with subprocess.Popen(["sleep", str(LAST_S)]) as process, tied(process):
        pass
    assert process.returncode == -signal.SIGKILL
