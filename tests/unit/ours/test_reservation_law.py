"""Law: a reserved gang starts no later than was said, as long as estimates hold."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.framework.plugin.policy_file import read_policy
from pumice.model.node import Node
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.model.workloads.podgroup import PodGroupStatus
from pumice.ours.room_over_time import Demand, RoomOverTime, fits, places, places_lost
from pumice.runtime.policy.languages import builtin_registry
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
    """Gangs of equal pods on nodes of two sizes. Each runs exactly as long as it says."""

    def __init__(self, seed: int) -> None:
        dice = random.Random(seed)
        self.nodes: list[Node] = [node(f"n{i}", cpu=dice.choice((4, 8))) for i in range(dice.randint(3, 5))]
        self.jobs: dict[str, list[Any]] = {}  # the PodGroup, then its pods
        self.arrives: dict[str, float] = {}
        self.runs_for: dict[str, float] = {}
        for i in range(10):
            name, seconds = f"j{i}", float(dice.randint(1, 12) * 600)
            self.arrives[name], self.runs_for[name] = float(dice.randint(0, 20) * 300), seconds
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
        self.started: dict[str, float] = {}

    def play(self) -> list[tuple[str, float]]:
        """Run cycles until nothing is left. Return each start that was said: the job, and the moment."""
        said: list[tuple[str, float]] = []
        moments = sorted(set(self.arrives.values()))
        while moments:
            now = moments.pop(0)
            self.jobs = {name: each for name, each in self.jobs.items() if self.ends.get(name, np.inf) > now}
            here = [each for name, each in self.jobs.items() if self.arrives[name] <= now]
            ran = run(cluster(*self.nodes, *(obj for each in here for obj in each)), POLICY, now=now)
            assert not ran.outcome.faults, ran.outcome.faults
            start = float(ran.outcome.figures.get("reserve.start", [np.nan])[0])
            if not np.isnan(start):
                said.append((self._oldest_waiting(now), start))
            for name in sorted({key.removeprefix("ns/").rpartition("-")[0] for key in ran.binds}):
                self._start(name, ran.binds, now)
                moments = sorted({*moments, self.ends[name]})
        return said

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


@pytest.mark.parametrize("seed", range(12))
def test_a_reserved_gang_starts_no_later_than_was_said(seed: int) -> None:
    world = World(seed)
    for name, moment in world.play():
        assert world.started[name] <= moment, f"seed {seed}: {name} was to start at {moment}"


def test_starts_are_said_at_all() -> None:
    assert sum(len(World(seed).play()) for seed in range(3)) > 5


@pytest.mark.parametrize("seed", range(20))
def test_a_pod_never_takes_more_places_than_are_counted(seed: int) -> None:
    dice = np.random.default_rng(seed)
    free = dice.integers(0, 30, size=(6, 3)).astype(float)
    demand = Demand(100, dice.integers(0, 5, size=3).astype(float), dice.random(6) < 0.8)
    each = dice.integers(0, 9, size=3).astype(float)
    before = places(free, demand)
    for row in range(6):
        if (free[row] >= each).all():
            left = free.copy()
            left[row] -= each
            assert (before - places(left, demand)).sum() <= places_lost(each, demand) or not demand.each.any()


@pytest.mark.parametrize("seed", range(20))
def test_the_earliest_moment_is_that_of_a_search_through_all(seed: int) -> None:
    dice = np.random.default_rng(seed)
    free, ends = dice.integers(0, 4, size=(5, 2)).astype(float), dice.integers(1, 9, size=12).astype(float)
    room = RoomOverTime(free, dice.integers(0, 5, size=12), dice.integers(0, 4, size=(12, 2)).astype(float), ends)
    demands = [Demand(int(dice.integers(1, 6)), np.array([2.0, 1.0]), np.ones(5, dtype=bool)) for _ in range(2)]
    moments = [0.0, *np.unique(ends).tolist()]
    wanted = next((at for at in moments if fits(room.at(at), demands) is not None), float("inf"))
    assert room.earliest(demands, 0.0) == wanted
