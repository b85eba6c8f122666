"""How long jobs wait on Argonne's Theta, by policy: the table of docs/guide/waiting-time.md.

    python -m bench.waits --runs 6 --shake 60s --only aged --traces theta_2023 --keep waits.jsonl

One run is the trace as it is; of several, each moves every arrival by up to ``--shake`` with a seed of its own. A run
of ``theta_2022`` takes 5 to 13 CPU minutes, one of ``theta_2023`` 2. Each line is printed when its run has ended. With
``--keep`` it is written into a file too, and a command that is run again goes on after the runs that are there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pumice
from pumice.library.policies import policy_of
from pumice.model.quantity import parse_days
from pumice.sim.run import simulate
from pumice.sim.settings import SimSettings

HOUR = 3600.0
TRACES = Path(__file__).parents[1].parent / "shared" / "traces" / "theta-alcf"


def _conf(reserve: str, shortest: str) -> str:
    """Return a policy with these arguments of ``ours/reserve`` and ``ours/shortest``, "" for without the plugin."""
    chosen = [("ours/reserve", reserve), ("ours/shortest", shortest)]
    ours = "".join(f"  - name: {name}\n    arguments: {{{text}}}\n" for name, text in chosen if text)
    rest = "".join(f"  - name: {name}\n" for name in ("gang", "predicates", "nodeorder"))
    return f'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: priority\n{ours}{rest}'


POLICIES = {
    "greedy": _conf("", ""),
    "fcfs": _conf("after: 0s, backfill: false", ""),
    "easy": _conf("after: 0s", ""),
    "easy-grace": _conf("after: 0s, grace: 3m", ""),
    # 99.8 % of all jobs of 2022 end within half an hour after their estimate.
    "easy-grace-30m": _conf("after: 0s, grace: 30m", ""),
    "conservative": _conf("after: 0s, grace: 3m, reservations: 64", ""),
    "shortest": _conf("", 'oldestAfter: ""'),
    "reserved": _conf("after: 96h", "oldestAfter: 96h"),
    # Of the jobs of 2022 that run longer than they asked for, 95 % do so by less than 3 minutes.
    "aged": _conf("after: 120h, grace: 3m", "oldestAfter: 120h, aging: 6h"),
    "aged-grace-30m": _conf("after: 120h, grace: 30m", "oldestAfter: 120h, aging: 6h"),
}


class Waits(NamedTuple):
    """Hours that the jobs of one run waited, and the CPU seconds of the run."""

    mean: float
    longest: float
    cpu_s: float


def measure(trace: str, policy: str, seed: int, shake: str) -> Waits:
    """Simulate a trace once. Seed 0 is the trace as it is."""
    began = time.process_time()
    inputs = pumice.load(f"swf:{TRACES / trace}.swf").inputs
    shake_s = parse_days(shake) if seed else 0.0
    # Why jobs wait is asked in no cycle, since most of the time went into that.
    settings = SimSettings(start=inputs.newest, seed=seed, shake_s=shake_s, asks_why=False)
    run = simulate(inputs.scene, policy_of(POLICIES[policy]).policy, settings)
    found = [(job.started - job.submitted) / HOUR for job in run.history.jobs if job.started is not None]
    return Waits(statistics.fmean(found), max(found), time.process_time() - began)


class RunsKept:
    """The runs that ended before, in a file of one JSON object a line; without a path none is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self._found = {(each["trace"], each["policy"], each["seed"], each["shake"]): each for each in map(_read, lines)}

    def measure(self, trace: str, policy: str, seed: int, shake: str) -> Waits:
        """Return a run that is kept, else simulate it."""
        known = self._found.get((trace, policy, seed, shake if seed else ""))
        if known is not None:
            return Waits(known["mean_h"], known["longest_h"], known["cpu_s"])
        found = measure(trace, policy, seed, shake)
        if self._path is not None:
            names = {"trace": trace, "policy": policy, "seed": seed, "shake": shake if seed else ""}
            figures = {"mean_h": found.mean, "longest_h": found.longest, "cpu_s": found.cpu_s}
            with self._path.open("a") as file:
                file.write(json.dumps({**names, **figures}) + "\n")
        return found


def _read(line: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        # The last line of a run that was ended while it was written.
        found = {"trace": "", "policy": "", "seed": -1, "shake": ""}
    return found


def _of(runs: Sequence[Waits]) -> str:
    mean, longest = statistics.fmean(each.mean for each in runs), statistics.fmean(each.longest for each in runs)
    return f"{mean:.2f} h, longest {longest:.1f} h (largest {max(each.longest for each in runs):.1f})"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1, help="1: the trace as it is; more: with shaken arrivals")
    parser.add_argument("--shake", default="60s")
    parser.add_argument("--only", nargs="+", choices=POLICIES, default=list(POLICIES), metavar="POLICY")
    parser.add_argument("--traces", nargs="+", default=["theta_2022", "theta_2023"], metavar="TRACE")
    parser.add_argument("--keep", type=Path, help="a file for the runs that have ended; those in it are not run again")
    given = parser.parse_args(arguments)
    if not TRACES.is_dir():
        print(f"no traces at {TRACES}: nothing is measured", file=sys.stderr)
        return 2
    seeds = [0] if given.runs == 1 else list(range(1, given.runs + 1))
    kept = RunsKept(given.keep)
    for policy in given.only:
        for trace in given.traces:
            runs = []
            for seed in seeds:
                runs.append(kept.measure(trace, policy, seed, given.shake))
                mean, longest, cpu_s = runs[-1]
                print(
                    f"{policy} {trace} seed {seed}: {mean:.2f} h, longest {longest:.1f} h, {cpu_s:.0f} CPU s",
                    flush=True,
                )
            if len(runs) > 1:
                print(f"{policy} {trace} of {len(runs)}: {_of(runs)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
