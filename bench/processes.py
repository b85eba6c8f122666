"""A command as a whole process: what it answered, and what it cost by the kernel's account."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from msgspec import Struct

from bench.figures import CYCLE_CPU, NEXT, OPENS, PEAK, PROCESS_CPU, QUIET, WALL
from tests.tied import Tie

ROOT = Path(__file__).resolve().parents[1]
PUMICE = (str(Path(sys.executable).with_name("pumice")),)
_TAIL = 10  # lines of complaint to show


class RunError(Exception):
    """The command failed, or did not answer what it must."""


class Run(Struct, frozen=True):
    """One run: what was measured, by name, and the digest of all decisions."""

    values: Mapping[str, float]
    digest: str


def run(command: Sequence[str], holds: Mapping[str, object], seed: int, within: float | None = None) -> Run:
    """Run it in the root of the repository, with ``seed`` for the hashes of Python.

    Raises: RunError when its exit code is not 0, when a field of its answer is not as ``holds`` says, or when it
    takes more than ``within`` CPU seconds.
    """
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    with TemporaryFile() as out, TemporaryFile() as err:  # not pipes, which are not read before the end
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=err)
        if within is not None:
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (math.ceil(within), math.ceil(within)))
        tie = Tie(process)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            process.kill()
            process.wait()
            raise
        finally:
            tie.cut()
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if within is not None and process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise RunError(f"not done within {within:g} CPU seconds: {' '.join(command)}")
        if process.returncode:
            complaint = err.read().decode(errors="replace").splitlines()[-_TAIL:]
            raise RunError("\n  ".join((f"exit code {process.returncode}: {' '.join(command)}", *complaint)))
        answer = _document(out.read(), command)
    for name, wanted in holds.items():
        if answer.get(name) != wanted:
            raise RunError(f"{name}: found {answer.get(name)!r}, wanted {wanted!r}: {' '.join(command)}")
    values = {
        WALL: wall,
        PROCESS_CPU: usage.ru_utime + usage.ru_stime,
        PEAK: usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10),
    }
    told = {CYCLE_CPU: "cpu_s", NEXT: "next_cycle_ms", QUIET: "second_cycle_ms"}
    values |= {name: float(answer[key]) for name, key in told.items() if key in answer}
    if isinstance(phases := answer.get("phases"), dict) and "open" in phases:
        values[OPENS] = 1000 * float(phases["open"])
    return Run(values, str(answer.get("digest", "")))


def _document(text: bytes, command: Sequence[str]) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RunError(f"the answer is not a JSON object: {' '.join(command)}")
    return found
