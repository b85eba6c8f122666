"""Storms of gangs by seed: what a cycle costs when a tenant mixes fields that no scenario mixes.

    .venv/bin/python -m bench.storms --seeds 0..9 --nodes 1000

Prints, for each seed and language, CPU seconds of the first and of the next cycle, each also in multiples of what
``equal`` takes on 1,000 nodes right before, since the speed of a machine changes within minutes. A quiet machine takes
0.13 s for ``equal``, so that 15 are about two seconds. The exit code is 1 if a storm took more than that, or more than
500 MB, or if its process failed; the other seeds are measured all the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from pumice.kai import table as kai
from pumice.runtime.measure import measure_cycle
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.fuzz.dice import Dice
from pumice.sim.workloads.hostile import KAI, SCHEDULERS, VOLCANO, build_storm
from pumice.sim.workloads.hostile_storms import draw_storm
from pumice.sim.workloads.volcano import build
from pumice.volcano import table as volcano

#: Multiples of ``equal``, and MB.
_MOST, _MOST_MB = 15.0, 500.0
_ALL_ACTIONS = "allocate, preempt, reclaim, gangreclaim, gangpreempt,"


def main() -> int:
    """Measure storms, each in a process of its own."""
    parser = ArgumentParser(prog="python -m bench.storms", description=__doc__)
    parser.add_argument("--seeds", default="0..9", help="first and last seed, as A..B")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--dialect", choices=(VOLCANO, KAI), help="only this language")
    parser.add_argument("--one", type=int, help="measure this seed here, in one language, and print JSON")
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(measured(args.one, args.dialect or VOLCANO, args.nodes)))
        return 0
    first, _, last = args.seeds.partition("..")
    over = 0
    for seed in range(int(first), int(last or first) + 1):
        for dialect in (args.dialect,) if args.dialect else (VOLCANO, KAI):
            over += not _within(seed, dialect, args.nodes)
    return min(over, 1)


def _within(seed: int, dialect: str, nodes: int) -> bool:
    """Measure a storm in a process, print a line, and return True if it is within the bounds."""
    command = (sys.executable, "-m", "bench.storms", "--one", str(seed), "--dialect", dialect, "--nodes", str(nodes))
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode:
        last = (run.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"{seed} {dialect}: failed with exit code {run.returncode}: {last}", flush=True)
        return False
    result = json.loads(run.stdout)
    each = [result[name] / result["equal"] for name in ("first", "next")]
    within: bool = max(each) <= _MOST and result["mb"] <= _MOST_MB
    text = (
        f"{result['first']:.2f} s ({each[0]:.1f}), then {result['next']:.2f} s ({each[1]:.1f}), {result['mb']:.0f} MB"
    )
    print(f"{seed} {dialect}: {text}, {result['what']}{'' if within else '  <-- too much'}", flush=True)
    return within


def measured(seed: int, dialect: str, nodes: int) -> dict[str, Any]:
    """Return what one storm and ``equal`` cost, in CPU seconds."""
    registry, storm = builtin_registry(), draw_storm(Dice(seed))
    equal = measure_cycle(
        build("equal", 1000, 5000, 10, 1, 0).objects(), policy_of(volcano.DEFAULT_CONF, registry), quiet=False
    )
    text = volcano.DEFAULT_CONF.replace("allocate,", _ALL_ACTIONS, 1) + "  - name: network-topology-aware\n"
    policy = policy_of(kai.DEFAULT_CONF if dialect == KAI else text, registry)
    figures = measure_cycle(build_storm(storm, dialect, nodes), policy, (SCHEDULERS[dialect],), quiet=False)
    pods, queues = sum(len(each.cores) for each in storm.gangs), len({each.queue for each in storm.gangs})
    what = f"{len(storm.gangs)} gangs, {pods} pods, {queues} queues, {'full' if storm.full else 'empty'}"
    return {
        "first": figures.cpu_s,
        "next": figures.next_ms / 1000,
        "equal": equal.cpu_s,
        "mb": figures.peak_rss_mb,
        "what": f"{what}, bound {figures.bound}: {' '.join(storm.fields) or 'requests'}",
    }


if __name__ == "__main__":
    sys.exit(main())
