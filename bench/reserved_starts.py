"""Do reserved gangs start when it was said? In random worlds, as long as estimates hold, and where they are lies.

    python -m bench.reserved_starts --worlds 10000 --seed 1

Each world is a cluster of 3 to 5 nodes and ten gangs of equal pods, under EASY backfilling. Where estimates hold no
gang may start later than was said. Where jobs run from half to three times as long as they say, each start that moves
later must have a cause, and the cause must be true. Fails at the first world in which that does not hold.

    python -m bench.reserved_starts --trace theta_2023 --policy aged

On a trace, with the estimates of its users: how many of the starts that were said were kept, of all and of the first of
each job.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

import pumice
from bench.waits import HOUR, POLICIES, TRACES
from pumice.columns.snapshot import Snapshot
from pumice.framework.plugin.policy_file import read_policy
from pumice.library.policies import policy_of
from pumice.model.blockers import AHEAD, OVERRUN, STARTED, MovedBy, StartReserved
from pumice.model.node import Node
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION, job_estimate_s
from pumice.model.workloads.podgroup import PodGroupStatus
from pumice.ours.reservation_delay import said_starts
from pumice.ours.room_over_time import Demand, fits
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.run import simulate
from pumice.sim.settings import Observers
from pumice.testing.build import cluster, node, podgroup, pods, run

POLICY = read_policy(
    {
        "actions": "allocate",
        "tiers": [
            {
                "plugins": [
                    {"name": "ours/reserve", "arguments": {"after": "0s"}},
                    *({"name": name} for name in ("ours/shortest", "gang", "predicates", "nodeorder")),
                ]
            }
        ],
    },
    builtin_registry(),
)


class World:
    """Gangs of equal pods on nodes of two sizes. Each runs exactly as long as it says, or up to ``lies`` times that."""

    def __init__(self, seed: int, lies: float = 1.0) -> None:
        dice = random.Random(seed)
        self.nodes: list[Node] = [node(f"n{i}", cpu=dice.choice((4, 8))) for i in range(dice.randint(3, 5))]
        self.jobs: dict[str, list[Any]] = {}  # the PodGroup, then its pods
        self.arrives: dict[str, float] = {}
        self.runs_for: dict[str, float] = {}
        for i in range(10):
            name, seconds = f"j{i}", float(dice.randint(1, 12) * 600)
            self.arrives[name] = float(dice.randint(0, 20) * 300)
            self.runs_for[name] = seconds if lies == 1.0 else round(seconds * dice.uniform(0.5, lies))
            count = dice.randint(1, len(self.nodes))
            group = podgroup(
                name,
                count,
                phase="Inqueue",
                creation=self.arrives[name],
                annotations={ESTIMATE_ANNOTATION: f"{seconds:.0f}s"},
            )
            self.jobs[name] = [group, *pods(name, count, cpu=dice.randint(1, 5), creation=self.arrives[name])]
        self.ends: dict[str, float] = {}
        self.groups = {name: each[0] for name, each in self.jobs.items()}
        self.started: dict[str, float] = {}
        self.notes: dict[str, float] = {}
        #: What was said of reserved starts, with the time, by job.
        self.findings: dict[str, list[tuple[float, StartReserved]]] = {}

    def play(self) -> list[tuple[str, float]]:
        """Run cycles until nothing is left. Return each start that was said: the job, and the moment."""
        said: list[tuple[str, float]] = []
        moments = sorted(set(self.arrives.values()))
        while moments:
            now = moments.pop(0)
            self.jobs = {name: each for name, each in self.jobs.items() if self.ends.get(name, np.inf) > now}
            here = [each for name, each in self.jobs.items() if self.arrives[name] <= now]
            snapshot = cluster(*self.nodes, *(obj for each in here for obj in each)).snapshot(now)
            ran = run(replace(snapshot, notes=self.notes), POLICY, now=now)
            assert not ran.outcome.faults, ran.outcome.faults
            notes = {**self.notes, **ran.outcome.writes.notes}
            self.notes = {name: value for name, value in notes.items() if not np.isnan(value)}
            for entry in ran.outcome.entries:
                if isinstance(entry.finding, StartReserved):
                    self.findings.setdefault(entry.subject.removeprefix("ns/"), []).append((now, entry.finding))
            start = float(ran.outcome.figures.get("reserve.start", [np.nan])[0])
            if not np.isnan(start):
                said.append((self._oldest_waiting(now), start))
            for name in sorted({key.removeprefix("ns/").rpartition("-")[0] for key in ran.binds}):
                self._start(name, ran.binds, now)
                moments = sorted({*moments, self.ends[name]})
        return said

    def check_cause(self, cause: MovedBy, now: float) -> None:
        """Fail unless a cause is true."""
        name = cause.job.removeprefix("ns/")
        assert cause.kind in (OVERRUN, STARTED, AHEAD), cause
        if cause.kind == OVERRUN:
            estimate = job_estimate_s(self.groups[name], ())
            assert self.started[name] + estimate <= now < self.ends[name], cause
        if cause.kind == STARTED:
            assert self.started[name] < now < self.ends[name], cause

    def is_late(self, name: str, said: float) -> bool:
        """Return True if no cycle was run between the moment that was said last and the start."""
        return not any(said <= now < self.started[name] for now, _ in self.findings[name])

    def _oldest_waiting(self, now: float) -> str:
        """The job for which room is reserved: the oldest that waits and can run at all."""
        fit = self.fit_alone()
        waiting = [name for name in fit if self.arrives[name] <= now and name not in self.started]
        return min(waiting, key=lambda name: (self.arrives[name], int(name[1:])))

    def fit_alone(self) -> set[str]:
        """The jobs that fit on the empty cluster."""
        free = np.array([[each.allocatable.milli_cpu] for each in self.nodes])
        demand = {
            name: Demand(len(each) - 1, np.array([each[1].spec.request.milli_cpu]), np.ones(len(free), dtype=bool))
            for name, each in self.jobs.items()
        }
        return {name for name, each in demand.items() if fits(free, [each]) is not None}

    def _start(self, name: str, binds: dict[str, str], now: float) -> None:
        group, *members = self.jobs[name]
        self.started[name], self.ends[name] = now, now + self.runs_for[name]
        self.jobs[name] = [
            replace(group, status=PodGroupStatus("Running")),
            *(replace(pod, node_name=binds[pod.key], phase="Running", start_time=now) for pod in members),
        ]


def check_told(world: World) -> int:
    """Play a world in which estimates hold. Return how many starts were said. Raises: AssertionError for a gang that
    starts later than was said."""
    said = world.play()
    for name, moment in said:
        assert world.started[name] <= moment, f"{name} was to start at {moment}"
    moved = {name for name, found in world.findings.items() for _, each in found if each.moved_by}
    assert not moved, f"moved although estimates hold: {moved}"
    return len(said)


def check_moves(world: World) -> int:
    """Play a world of lies. Return how many starts moved later. Raises: AssertionError for one that did so without a
    true cause."""
    world.play()
    moves = 0
    for name, findings in world.findings.items():
        said: float | None = None
        for now, each in findings:
            if each.start is None or (said is not None and each.start > said + 1):
                assert each.said == said and each.moved_by, f"{name} moved at {now} without a cause"
                moves += 1
                for cause in each.moved_by:
                    world.check_cause(cause, now)
            else:
                assert each.said is None and not each.moved_by, f"{name} has a cause, and has not moved"
            said = each.start
        assert said is None or world.started[name] <= said or world.is_late(name, said), name
    return moves


def kept_on_trace(trace: str, policy: str, days: float) -> dict[str, Any]:
    """Simulate the jobs of the first days of a trace, and count starts that were said, by job, and those that were
    kept."""
    said: dict[str, list[float]] = {}

    def began(number: int, now: float, snapshot: Snapshot) -> None:
        for job, each in said_starts(snapshot.notes).items():
            starts = said.setdefault(job, [])
            if not starts or starts[-1] != each.start:
                starts.append(each.start)

    scene = pumice.load(f"swf:{TRACES / trace}.swf").inputs.scene
    scene = replace(scene, works=tuple(work for work in scene.works if work.arrival_s < 24 * HOUR * days))
    found = simulate(scene, policy_of(POLICIES[policy]).policy, observers=Observers(began=began))
    started = {job.key: job.started for job in found.history.jobs}
    # A cycle is run each second, and binds what fits a second later.
    kept = {job: [started[job] is not None and started[job] <= at + 2 for at in starts] for job, starts in said.items()}
    every = [each for starts in kept.values() for each in starts]
    firsts = [starts[0] for starts in kept.values()]
    waits_h = [(job.started - job.submitted) / HOUR for job in found.history.jobs if job.started is not None]
    return {
        "wait_mean_h": round(float(np.mean(waits_h)), 3),
        "wait_longest_h": round(max(waits_h), 1),
        "jobs": len(kept),
        "said": len(every),
        "kept": round(float(np.mean(every)), 4) if every else None,
        "first_kept": round(float(np.mean(firsts)), 4) if firsts else None,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first world; the next ones count up")
    parser.add_argument("--trace", default="", metavar="TRACE", help="a year of Theta, in place of random worlds")
    parser.add_argument("--policy", choices=("easy", "easy-grace", "reserved", "aged"), default="aged")
    parser.add_argument(
        "--days", type=float, default=366.0, help="only jobs that arrive in the first days of the trace"
    )
    given = parser.parse_args(arguments)
    if given.trace:
        print(json.dumps(kept_on_trace(given.trace, given.policy, given.days)))
        return 0
    said = moved = 0
    for seed in range(given.seed, given.seed + given.worlds):
        try:
            said += check_told(World(seed))
            moved += check_moves(World(seed, lies=3.0))
        except AssertionError as error:
            print(f"seed {seed}: {error}")
            return 1
    print(json.dumps({"worlds": given.worlds, "starts_said": said, "moved_by_lies": moved}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
