"""``python -m bench.mechanisms``: what each mechanism that caches, skips or carries over saves, on two workloads each.

    .venv/bin/python -m bench.mechanisms --only trials --runs 3

Each run is a process of its own, in which one mechanism is off: the memo gives the modules of the mechanism nothing
back, or a function of the mechanism is replaced by the plain way. The product has no switch for this. What is counted
happens within ``run_cycle``: calls of Python functions, by ``cProfile``, which are the same in every run; and CPU
seconds, the best run of several in turns, without a profiler. Decisions must have the same digest with and without.

A mechanism pays on a workload if the calls or the CPU seconds are at least a hundredth more without it. Exit code 1:
one does not pay on two workloads, or decisions differ.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from bench.mechanisms.idle import one_cycle
from bench.mechanisms.moving import decide
from bench.mechanisms.switches import SWITCHES, off
from bench.mechanisms.workloads import WORKLOADS, Workload, is_there
from pumice.cycle import run_cycle

ROOT = Path(__file__).resolve().parents[2]
#: A mechanism pays from this ratio on, of calls or of CPU seconds.
PAYS, WORKLOADS_MIN = 1.01, 2
IDLE_CYCLES = 200
#: Modules that call ``run_cycle``.
CYCLES_IN = ("pumice.runtime.loop", "pumice.runtime.measure", "bench.mechanisms.idle", "bench.mechanisms.moving")


class Cost(Struct, frozen=True):
    """What the cycles of one run cost. ``calls``: 0 if they were not counted."""

    calls: int
    cpu_s: float
    digest: str


class Row(Struct, frozen=True):
    """What a mechanism saves on a workload: the cost with it and without."""

    workload: str
    calls: tuple[int, int]
    cpu_s: tuple[float, float]

    @property
    def pays(self) -> bool:
        return max(self.calls[1] / self.calls[0], self.cpu_s[1] / self.cpu_s[0]) >= PAYS


def main(arguments: Sequence[str] | None = None) -> int:
    """0: all that were measured pay on two workloads; 1: one does not, or decisions differ; 2: wrong arguments."""
    parser = argparse.ArgumentParser("python -m bench.mechanisms", description="What each mechanism saves.")
    parser.add_argument("--only", action="append", default=[], choices=sorted(SWITCHES), metavar="NAME")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs for CPU seconds (default %(default)s)")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(run_here(*options.child)))
        return 0
    if options.runs < 1:
        parser.error(f"--runs: found {options.runs}, wanted at least 1")
    known: dict[str, Cost] = {}
    bad = []
    print("| `--only` | mechanism | thousand calls, with → without | CPU s, with → without |\n|---|---|---|---|")
    for name in options.only or SWITCHES:
        rows = [_compared(name, each, options.runs, known) for each in SWITCHES[name].workloads if is_there(each)]
        bad += [f"{name}: other decisions on {each}" for each in rows if isinstance(each, str)]
        costs = [row for row in rows if isinstance(row, Row)]
        print(line(name, costs), flush=True)
        paying = sum(row.pays for row in costs)
        if paying < WORKLOADS_MIN:
            bad.append(f"{name}: pays on {paying} of {len(rows)} workloads, wanted {WORKLOADS_MIN}")
    for text in bad:
        print(f"missed: {text}", file=sys.stderr)
    return int(bool(bad))


def line(name: str, rows: Sequence[Row]) -> str:
    """The row of a mechanism in the table, with all its workloads."""
    calls = ", ".join(f"{row.workload}: {row.calls[0] / 1000:,.0f} → {row.calls[1] / 1000:,.0f}" for row in rows)
    cpu_s = ", ".join(f"{row.cpu_s[0]:.3g} → {row.cpu_s[1]:.3g}" for row in rows)
    return f"| `{name}` | {SWITCHES[name].what} | {calls} | {cpu_s} |"


def _compared(name: str, workload: str, runs: int, known: dict[str, Cost]) -> Row | str:
    """Return what a mechanism saves on a workload, or the workload if decisions differ. ``known``: calls with all
    mechanisms, by workload."""
    if workload not in known:
        known[workload] = _measured("", workload, count=True)
    counted = [known[workload], _measured(name, workload, count=True)]
    timed = [(_measured("", workload), _measured(name, workload)) for _ in range(runs)]
    if len({cost.digest for cost in (*counted, *(cost for pair in timed for cost in pair))}) > 1:
        return workload
    with_s, without_s = (min(pair[i].cpu_s for pair in timed) for i in (0, 1))
    return Row(workload, (counted[0].calls, counted[1].calls), (with_s, without_s))


def _measured(name: str, workload: str, *, count: bool = False) -> Cost:
    """Run a workload in a process of its own, without the mechanism of this name."""
    command = [sys.executable, "-m", "bench.mechanisms", "--child", name, workload, "calls" if count else "cpu"]
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=True, env=os.environ | {"PYTHONHASHSEED": "0"}
    )
    return Cost(**json.loads(ended.stdout))


def run_here(name: str, workload: str, what: str) -> dict[str, Any]:
    """Run a workload in this process, and return its cost."""
    from pumice.cli.main import main as pumice

    cycles = Cycles(run_cycle, cProfile.Profile(builtins=False) if what == "calls" else None)
    chosen, digest = WORKLOADS[workload], ""
    with ExitStack() as stack:
        stack.enter_context(off(SWITCHES.get(name)))
        cycle = one_cycle(chosen.idle, chosen.waiting, chosen.conf) if chosen.idle else None
        for module in CYCLES_IN:
            stack.enter_context(patch(f"{module}.run_cycle", cycles))
        if cycle is not None:
            for _ in range(IDLE_CYCLES):
                cycle()
        elif chosen.moving:
            digest = decide(chosen.moving, chosen.conf)
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            said = stack.enter_context(redirect_stdout(io.StringIO()))
            pumice(_typed(chosen, folder), standalone_mode=False)
            digest = json.loads(said.getvalue())["digest"]
    return {"calls": cycles.calls, "cpu_s": cycles.cpu_s, "digest": digest}


def _typed(workload: Workload, folder: Path) -> list[str]:
    """The arguments of ``pumice``."""
    if not workload.conf:
        return [*workload.arguments, "--json"]
    conf = folder / "scheduler.conf"
    conf.write_text(workload.conf, encoding="utf-8")
    return [*workload.arguments, "--conf", str(conf), "--json"]


class Cycles:
    """``run_cycle``, with its cost summed up."""

    def __init__(self, run_cycle: Any, profile: cProfile.Profile | None) -> None:
        self._run_cycle, self._profile = run_cycle, profile
        self.cpu_s = 0.0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        began = process_time()
        if self._profile is not None:
            self._profile.enable(subcalls=False, builtins=False)
        try:
            return self._run_cycle(*arguments, **named)
        finally:
            if self._profile is not None:
                self._profile.disable()
            self.cpu_s += process_time() - began

    @property
    def calls(self) -> int:
        if self._profile is None:
            return 0
        return sum(entry.callcount for entry in self._profile.getstats() if not isinstance(entry.code, str))


if __name__ == "__main__":
    raise SystemExit(main())
