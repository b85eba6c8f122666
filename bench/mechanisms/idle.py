"""``python -m bench.mechanisms.idle``: what a cycle costs in which nothing has changed, on 1,000 and on 10,000 nodes.

    .venv/bin/python -m bench.mechanisms.idle

On each node run four pods in gangs of four. In one case no job waits; in the other, 100 jobs wait that fit on no node.
A cycle is what the scheduler does each period: take the snapshot, decide, publish figures. Calls of Python functions
are counted by ``cProfile`` and are the same in every run. CPU time is the median of many cycles, without a profiler.
Fails if a cycle on 10,000 nodes makes more calls than one on 1,000, or takes more CPU time than ``LIMIT_MS``. While
jobs wait, a few comparisons of arrays are left that grow with the cluster: 0.1 ms for 36,000 pods more.
"""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Callable
from itertools import count
from statistics import median
from time import process_time
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.model.events import Seen
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.runtime.loop import ListPlanner
from pumice.runtime.memory import leave_old_objects_alone
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, node, podgroup, pods
from pumice.volcano.table import DEFAULT_CONF

NODES, WAITING = (1_000, 10_000), 100
#: Cycles until nothing is left to write; cycles that are counted or timed.
SETTLING, CYCLES = 4, 51
#: By the number of jobs that wait.
LIMIT_MS = {0: 0.5, WAITING: 2.5}


class Idle(Struct, frozen=True):
    """The cost of one cycle."""

    nodes: int
    waiting: int
    calls: int
    cpu_ms: float

    def line(self) -> str:
        return f"| {self.nodes:,} | {self.waiting:,} | {self.calls:,} | {self.cpu_ms:.3f} |"


def one_cycle(nodes: int, waiting: int, conf: str = "") -> Callable[[], None]:
    """Return a function that runs a cycle in which nothing has changed. All statuses have been written before.
    ``conf``: the policy, "" for the default."""
    groups: dict[str, PodGroup] = {}
    objects: list[Any] = [node(f"n{i:05}", cpu=8) for i in range(nodes)]
    for i in range(nodes):
        groups[f"ns/g{i}"] = replace(podgroup(f"g{i}", 4), status=PodGroupStatus("Running", running=4))
        objects += pods(f"g{i}", 4, cpu=1, on=f"n{i:05}")
    for i in range(waiting):
        groups[f"ns/w{i}"] = podgroup(f"w{i}", 2, phase="Inqueue")
        objects += pods(f"w{i}", 2, cpu=9 + i % 7)
    store = cluster(*groups.values(), *objects)
    policy, memo, seconds = policy_of(conf or DEFAULT_CONF, builtin_registry()), Memo(), count(1000)

    def cycle() -> None:
        now = float(next(seconds))
        outcome = run_cycle(store.snapshot(now), policy, now, ListPlanner(), memo=memo, publishes=True)
        store.remember(outcome.writes)
        for update in outcome.groups:
            groups[update.job] = replace(groups[update.job], status=update.status)
            store.apply(Seen(groups[update.job]))
        for name, allocated in outcome.queues.items():
            store.apply(Seen(replace(store.queues[name], allocated=allocated)))

    for _ in range(SETTLING):
        cycle()
    leave_old_objects_alone()
    return cycle


def measured(nodes: int, waiting: int) -> Idle:
    """Return what a cycle costs."""
    cycle = one_cycle(nodes, waiting)
    times = []
    for _ in range(CYCLES):
        began = process_time()
        cycle()
        times.append(process_time() - began)
    profile = cProfile.Profile(builtins=False)
    profile.runcall(cycle)
    calls = sum(entry.callcount for entry in profile.getstats() if not isinstance(entry.code, str))
    return Idle(nodes, waiting, calls, 1000 * median(times))


def main() -> int:
    """0: the cost does not grow with the cluster; 1: it does."""
    print("| nodes | jobs that wait | calls | CPU ms |\n|--:|--:|--:|--:|")
    missed = 0
    for waiting, limit in LIMIT_MS.items():
        small, large = (measured(nodes, waiting) for nodes in NODES)
        print(small.line(), large.line(), sep="\n", flush=True)
        if large.calls > small.calls or large.cpu_ms > limit:
            missed += 1
            print(f"missed: {waiting} jobs wait: wanted {small.calls:,} calls and {limit} ms", file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
