"""What reservations cost: cycles with 1,000 waiting jobs on 4,392 nodes, with ``ours/reserve`` and without.

    python -m bench.reservations --cycles 60 --seed 1

Sizes and estimates are drawn like those of a supercomputer: most jobs are small, some want most of the machine. Before
each cycle a running job ends and a new one arrives; the cycle is timed, and what it binds then runs. Both policies
begin with the same cluster and take turns. Fails if a median cycle with reservations costs more than 1.5 times one
without.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence

from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.decisions import Bind
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, node, podgroup, pods

NODES, WAITING, MOST = 4392, 1000, 1.5
#: A cycle every so many seconds; the oldest job has waited for so long when the first begins.
PERIOD_S, WAITED_S = 60.0, 200_000.0
_SIZES = (1, 8, 16, 32, 64, 128, 128, 256, 256, 512, 512, 1024, 2048, 4096)


class Cluster:
    """A cluster under one policy, with what it runs and has reported."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self.policy, self.memo, self.dice, self.now = policy, Memo(), random.Random(seed), WAITED_S
        self.running: dict[str, list[Pod]] = {}
        self.waiting: dict[str, list[Pod]] = {}
        self.jobs = 0
        self.bound = 0
        self.store = cluster(*(node(f"n{i:04}", cpu=64) for i in range(NODES)))
        free = list(range(NODES))
        while len(free) > 64:
            group, members = self._job(0.0, most=min(len(free), 512))
            self.store.apply(Seen(replace(group, status=PodGroupStatus("Running"))))
            placed = [replace(pod, node_name=f"n{free.pop():04}", phase="Running", start_time=0.0) for pod in members]
            self._run(group.key, placed)
        for i in range(WAITING):
            self._arrive(i * WAITED_S / WAITING)

    def step(self) -> float:
        """End a job, let one arrive, and return the CPU seconds of the next cycle."""
        self.now += PERIOD_S
        if self.running:
            for pod in self.running.pop(self.dice.choice(sorted(self.running))):
                self.store.apply(Gone(Pod, pod.key))
        self._arrive(self.now)
        planner = ListPlanner()
        snapshot = self.store.snapshot(self.now)
        began = time.process_time()
        outcome = run_cycle(snapshot, self.policy, self.now, planner, memo=self.memo)
        took = time.process_time() - began
        self.store.remember(outcome.writes)
        self.store.assume(planner.taken, outcome.tables)
        where = {each.pod: each.node for each in planner.taken if isinstance(each, Bind)}
        self.bound += len(where)
        for key in [key for key, members in self.waiting.items() if members[0].key in where]:
            members = self.waiting.pop(key)
            placed = [replace(pod, node_name=where[pod.key], phase="Running", start_time=self.now) for pod in members]
            self._run(key, placed)
        return took

    def _job(self, created: float, most: int) -> tuple[PodGroup, list[Pod]]:
        self.jobs += 1
        name, count = f"j{self.jobs}", self.dice.choice([size for size in _SIZES if size <= most])
        estimate = f"{self.dice.randint(10, 1440)}m"
        annotations = {ESTIMATE_ANNOTATION: estimate}
        group = podgroup(name, count, phase="Inqueue", creation=created, annotations=annotations)
        return group, pods(name, count, cpu=64, creation=created)

    def _arrive(self, created: float) -> None:
        group, members = self._job(created, most=max(_SIZES))
        self.waiting[group.key] = members
        self.store.apply(Seen(group))
        for pod in members:
            self.store.apply(Seen(pod))

    def _run(self, key: str, placed: list[Pod]) -> None:
        self.running[key] = placed
        for pod in placed:
            self.store.apply(Seen(pod))


def policy_of(*plugins: dict[str, object]) -> Policy:
    """Return a policy that orders by estimate, with more plugins before that."""
    rest = [{"name": name} for name in ("ours/shortest", "gang", "predicates")]
    return read_policy({"actions": "allocate", "tiers": [{"plugins": [*plugins, *rest]}]}, builtin_registry())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reservations", type=int, default=1, help="jobs that have one at a time, at most")
    given = parser.parse_args(arguments)
    settings = {"after": "24h", "reservations": given.reservations}
    reserve: dict[str, object] = {"name": "ours/reserve", "arguments": settings}
    clusters = {"with": Cluster(policy_of(reserve), given.seed), "without": Cluster(policy_of(), given.seed)}
    took: dict[str, list[float]] = {name: [] for name in clusters}
    for _ in range(given.cycles):
        for name, each in clusters.items():
            took[name].append(each.step())
    medians = {name: statistics.median(each) for name, each in took.items()}
    ratio = medians["with"] / medians["without"]
    found = {
        "ratio": round(ratio, 2),
        "cycle_ms": {name: round(1e3 * each, 2) for name, each in medians.items()},
        "sum_ms": {name: round(1e3 * sum(each)) for name, each in took.items()},
        "bound": {name: each.bound for name, each in clusters.items()},
        "waiting": {name: len(each.waiting) for name, each in clusters.items()},
    }
    print(json.dumps(found))
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
