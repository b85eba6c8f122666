"""Do reserved gangs start when it was said? In random worlds, as long as estimates hold, and where they are lies.

    python -m bench.reserved_starts --worlds 10000 --seed 1
    python -m bench.reserved_starts --worlds 2000 --reservations 64
    python -m bench.reserved_starts --worlds 2000 --sub-groups

Each world is a cluster of 3 to 5 nodes and ten gangs of equal pods, under EASY backfilling, or conservative backfilling
with more than one reservation. Where estimates hold no gang may start later than was said. Where jobs run from half to
three times as long as they say, each start that moves later must have a cause, and the cause must be true. Fails at the
first world in which that does not hold. With ``--sub-groups`` nodes are in racks, and some gangs consist of sub-groups
of one size, most of them with each sub-group in one rack.

    python -m bench.reserved_starts --trace theta_2023 --policy aged

On a trace, with the estimates of its users: how many of the starts that were said were kept, of all and of the first of
each job; of those that were not, what was named as the cause. ``first_kept_where_estimates_hold``: of the jobs for
which no other held nodes at the start that was said first although its own estimate (and the grace) had passed by then.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

import pumice
from bench.waits import HOUR, POLICIES, TRACES
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.library.policies import policy_of
from pumice.model.blockers import AHEAD, OVERRUN, REPLANNED, STARTED, MovedBy, StartReserved
from pumice.model.node import Node
from pumice.model.quantity import parse_days
from pumice.model.topology import HyperNode
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION, job_estimate_s
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, PodGroupStatus, SubGroupPolicy
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller, JobRun
from pumice.sim.engine import Engine
from pumice.sim.shell import Shell
from pumice.sim.workloads.work import SimJob
from pumice.sim.world import CycleReport, Simulation
from pumice.testing.build import cluster, hypernode, node, podgroup, pods, run


def policy(reservations: int) -> Policy:
    """Return one that reserves for so many of the oldest jobs, from their arrival."""
    reserve = {"name": "ours/reserve", "arguments": {"after": "0s", "reservations": reservations}}
    others = ("ours/shortest", "gang", "predicates", "nodeorder", "network-topology-aware")
    plugins = [reserve, *({"name": name} for name in others)]
    return read_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]}, builtin_registry())


class World:
    """Gangs of equal pods on nodes of two sizes. Each runs exactly as long as it says, or up to ``lies`` times that.
    ``in_parts``: some gangs consist of sub-groups."""

    def __init__(self, seed: int, lies: float = 1.0, reservations: int = 1, *, in_parts: bool = False) -> None:
        dice = random.Random(seed)
        self.policy = policy(reservations)
        self.nodes: list[Node] = [node(f"n{i}", cpu=dice.choice((4, 8))) for i in range(dice.randint(3, 5))]
        self.jobs: dict[str, list[Any]] = {}  # the PodGroup, then its pods
        self.arrives: dict[str, float] = {}
        self.runs_for: dict[str, float] = {}
        for i in range(10):
            name, seconds = f"j{i}", float(dice.randint(1, 12) * 600)
            self.arrives[name] = float(dice.randint(0, 20) * 300)
            self.runs_for[name] = seconds if lies == 1.0 else round(seconds * dice.uniform(0.5, lies))
            count = dice.randint(1, len(self.nodes) * (2 if in_parts else 1))
            group = podgroup(
                name,
                count,
                phase="Inqueue",
                creation=self.arrives[name],
                annotations={ESTIMATE_ANNOTATION: f"{seconds:.0f}s"},
            )
            self.jobs[name] = [group, *pods(name, count, cpu=dice.randint(1, 5), creation=self.arrives[name])]
        #: The rack of each node; without sub-groups there are none.
        self.racks = [f"r{i // 2}" for i in range(len(self.nodes))] if in_parts else []
        for name in self.jobs if in_parts else ():
            self.jobs[name] = self._in_parts(self.jobs[name], dice)
        self.ends: dict[str, float] = {}
        self.groups: dict[str, PodGroup] = {name: each[0] for name, each in self.jobs.items()}
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
            snapshot = cluster(*self.nodes, *self._hypernodes(), *(obj for each in here for obj in each)).snapshot(now)
            ran = run(replace(snapshot, notes=self.notes), self.policy, now=now)
            assert not ran.outcome.faults, ran.outcome.faults
            notes = {**self.notes, **ran.outcome.writes.notes}
            self.notes = {name: value for name, value in notes.items() if not np.isnan(value)}
            for entry in ran.outcome.entries:
                if isinstance(entry.finding, StartReserved):
                    self.findings.setdefault(entry.subject.removeprefix("ns/"), []).append((now, entry.finding))
            figures, uids = ran.outcome.figures, ran.outcome.tables.jobs.uids
            rows, starts = (figures.get(f"reserve.{name}", np.empty(0)).tolist() for name in ("job", "start"))
            named = [(uids[r].removeprefix("ns/"), at) for r, at in zip(rows, starts, strict=True) if not np.isnan(at)]
            assert not named or named[0][0] == self._oldest_waiting(now), f"{named[0][0]} is not the oldest"
            said += named
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
        if cause.kind == AHEAD:
            assert self.arrives[name] <= now <= self.started[name], cause
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
        return {name for name in self.jobs if self._fits_alone(name)}

    def _fits_alone(self, name: str) -> bool:
        group, members = self.groups[name], self.jobs[name][1:]
        parts = next((each for each in group.sub_groups if each.topology is not None), None)
        size, asks, places = (parts and parts.sub_group_size) or 1, members[0].spec.request.milli_cpu, Counter[str]()
        for i, each in enumerate(self.nodes):
            places[self.racks[i] if parts else each.name] += each.allocatable.milli_cpu // asks
        return sum(count // size * size for count in places.values()) >= len(members)

    def _hypernodes(self) -> list[HyperNode]:
        return [
            hypernode(rack, 1, [each.name for each, at in zip(self.nodes, self.racks, strict=True) if at == rack])
            for rack in dict.fromkeys(self.racks)
        ]

    def _in_parts(self, job: list[Any], dice: random.Random) -> list[Any]:
        """Return a gang of as many pods in sub-groups, if it is to have any, each within a rack in most cases."""
        group, *members = job
        sizes = [size for size in (1, 2, 3) if len(members) % size == 0]
        if dice.random() < 0.3:
            return job
        size, topology = dice.choice(sizes), NetworkTopology("hard", 1) if dice.random() < 0.8 else None
        count = len(members) // size
        part = SubGroupPolicy("part", topology, size, count, match_label_keys=("part",))
        labelled = [replace(pod, labels={**pod.labels, "part": str(i // size)}) for i, pod in enumerate(members)]
        return [replace(group, sub_groups=(part,)), *labelled]

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


class StartHistory(Struct):
    """What was said of the start of one job: each start with the time at which it was said, and each move with what
    made it later."""

    starts: list[tuple[float, float]] = []
    moved_by: list[MovedBy] = []


class TraceRun:
    """Simulates the jobs of the first days of a trace, and keeps every start that was said."""

    def __init__(self, trace: str, policy: str, days: float) -> None:
        scene = pumice.load(f"swf:{TRACES / trace}.swf").inputs.scene
        scene = replace(scene, works=tuple(work for work in scene.works if work.arrival_s < 24 * HOUR * days))
        self.histories: dict[str, StartHistory] = {}
        self.cluster = SimCluster(Engine(0.0))
        self.controller = Controller(self.cluster)
        self.shell = Shell(self.cluster, policy_of(POLICIES[policy]).policy, asks_why=False)
        self.started: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        grace = re.search(r"grace: (\w+)", POLICIES[policy])
        grace_s = parse_days(grace.group(1)) if grace is not None else 0.0
        #: After so many seconds each job should have ended.
        self.allowed_s = {
            work.key: (work.estimate_s or 24 * HOUR) + grace_s for work in scene.works if isinstance(work, SimJob)
        }
        self.waits_h: list[float] = []
        self.controller.hooks.started.append(self._started)
        self.controller.hooks.ended.append(self._ended)
        scene.enter(self.cluster, self.controller)
        Simulation(self.cluster, self.controller, self._cycle).run()

    def _cycle(self, now: float) -> CycleReport:
        report = self.shell.cycle(now)
        outcome = self.shell.last_outcome()
        for entry in () if outcome is None else outcome.entries:
            finding = entry.finding
            if isinstance(finding, StartReserved):
                history = self.histories.setdefault(entry.subject, StartHistory())
                history.moved_by += finding.moved_by
                if finding.start is not None and (not history.starts or history.starts[-1][1] != finding.start):
                    history.starts.append((now, finding.start))
        return report

    def _started(self, run: JobRun) -> None:
        now = self.cluster.engine.now
        self.started.setdefault(run.key, now)
        self.waits_h.append((now - run.submitted) / HOUR)

    def _ended(self, run: JobRun) -> None:
        self.ended[run.key] = self.cluster.engine.now

    def overdue_at(self, moment: float) -> list[str]:
        """Return the jobs that held nodes at a moment by which their estimates had passed."""
        return [
            job
            for job, since in self.started.items()
            if since + self.allowed_s.get(job, np.inf) <= moment < self.ended.get(job, np.inf)
        ]


def kept_on_trace(trace: str, policy: str, days: float) -> dict[str, Any]:
    """Simulate the jobs of the first days of a trace, and count starts that were said, by job, those that were
    kept, and the causes that were named of those that were not."""
    run = TraceRun(trace, policy, days)

    def is_kept(job: str, start: float) -> bool:
        # A cycle is run each second, and binds what fits a second later.
        return run.started.get(job, np.inf) <= start + 2

    told = {job: each for job, each in run.histories.items() if each.starts}
    every = [is_kept(job, start) for job, each in told.items() for _, start in each.starts]
    late = {job: each for job, each in told.items() if not is_kept(job, each.starts[0][1])}
    kinds = Counter(cause.kind for each in late.values() for cause in each.moved_by)
    unnamed = sorted(job for job, each in late.items() if not any(is_event(cause) for cause in each.moved_by))
    held = [job for job, each in told.items() if not run.overdue_at(each.starts[0][1])]
    late_h = [(run.started.get(job, np.inf) - each.starts[0][1]) / HOUR for job, each in late.items()]
    return {
        "wait_mean_h": round(float(np.mean(run.waits_h)), 3),
        "wait_longest_h": round(max(run.waits_h), 1),
        "jobs": len(told),
        "said": len(every),
        "kept": _part(sum(every), len(every)),
        "first_kept": _part(len(told) - len(late), len(told)),
        "first_kept_or_named": _part(len(told) - len(unnamed), len(told)),
        "jobs_where_estimates_hold": len(held),
        "first_kept_where_estimates_hold": _part(sum(job not in late for job in held), len(held)),
        "causes_of_late": dict(sorted(kinds.items())),
        "late_median_h": round(float(np.median(late_h)), 2) if late_h else None,
        "late_without_a_cause": unnamed[:20],
    }


def is_event(cause: MovedBy) -> bool:
    """Return True if a cause is an event of the cluster, and not only that the plan has changed."""
    return cause.kind != REPLANNED


def _part(some: int, of: int) -> float | None:
    return round(some / of, 4) if of else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first world; the next ones count up")
    parser.add_argument("--reservations", type=int, default=1, help="jobs that have one at a time, at most")
    parser.add_argument("--sub-groups", action="store_true", help="gangs of sub-groups, on nodes in racks")
    parser.add_argument("--trace", default="", metavar="TRACE", help="a year of Theta, in place of random worlds")
    parser.add_argument("--policy", choices=[each for each in POLICIES if "after: " in POLICIES[each]], default="aged")
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
            said += check_told(World(seed, reservations=given.reservations, in_parts=given.sub_groups))
            moved += check_moves(World(seed, 3.0, given.reservations, in_parts=given.sub_groups))
        except AssertionError as error:
            print(f"seed {seed}: {error}")
            return 1
    print(json.dumps({"worlds": given.worlds, "starts_said": said, "moved_by_lies": moved}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
