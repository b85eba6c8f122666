"""Figures of whole simulations, faults and all, against the slow and plain way: every moment from the log of events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pumice.algorithms.fair_level import fair_parts
from pumice.model.node import Node
from pumice.model.queue import Queue
from pumice.report.summary import in_units, jain, summarise
from pumice.runtime.policy.conf import policy_of
from pumice.sim.faults import FaultPlan
from pumice.sim.measures.node_usage import total_of
from pumice.sim.measures.window import Window
from pumice.sim.run import Run, simulate
from pumice.sim.scenes.scene import Scene
from pumice.sim.settings import Observers, SimSettings
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.simulation.scenes import racks

WINDOW = Window(300.0, 1700.0)
FAULTS = FaultPlan(1e4, node_gone_every_s=400.0, pod_killed_every_s=150.0, restart_every_s=900.0)
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")


def ran(seed: int) -> tuple[Scene, Run, list[Mapping[str, Any]]]:
    scene = racks(np.random.default_rng(seed))
    events: list[Mapping[str, Any]] = []
    policy = policy_of(DEFAULT_CONF, volcano_registry())
    settings = SimSettings(window=WINDOW, seed=seed, faults=FAULTS)
    return scene, simulate(scene, policy, settings, Observers(event=events.append)), events


def weighed(before: float, now: float) -> float:
    return max(min(now, WINDOW.end) - max(before, WINDOW.begin), 0.0)


class Replay:
    """The cluster as the log tells it, summed up from one line to the next."""

    def __init__(self, scene: Scene) -> None:
        self.pods = {pod.key: dict(total_of([pod])) for work in scene.works for pod in work.expand(0.0)[1]}
        self.asks = {work.key: np.array(amounts(dict(total_of(work.expand(0.0)[1])))) for work in scene.works}
        self.queue_of = {work.key: work.queue for work in scene.works}
        self.nodes = {node.name: amounts(in_resource(node)) for node in scene.objects if isinstance(node, Node)}
        self.up = set(self.nodes)
        self.on: dict[str, tuple[str, str]] = {}  # pod -> (node, job)
        self.live: set[str] = set()
        self.waits: dict[str, float] = {}
        weights = {queue.name: float(queue.weight) for queue in scene.objects if isinstance(queue, Queue)}
        self.queues, self.weight = list(weights), np.array(list(weights.values()))
        self.used, self.capacity, self.loaded, self.loaded_capacity = (np.zeros(len(RESOURCES)) for _ in range(4))
        self.had, self.deserved = defaultdict(float), defaultdict(float)
        self.contended_had, self.contended_deserved = defaultdict(float), defaultdict(float)

    def pass_time(self, before: float, now: float) -> None:
        seconds = weighed(before, now)
        total = np.sum([self.nodes[name] for name in self.up], axis=0)
        held = {queue: np.zeros(len(RESOURCES)) for queue in self.queues}
        for pod, (_, job) in self.on.items():
            held[self.queue_of[job]] += amounts(self.pods[pod])
        everything = np.sum(list(held.values()), axis=0)
        self.used += everything * seconds
        self.capacity += total * seconds
        late = min((since + 2.0 for since in self.waits.values()), default=np.inf)
        crowded = weighed(max(before, late), now) if late < now else 0.0
        self.loaded += everything * crowded
        self.loaded_capacity += total * crowded
        demand = np.array(
            [
                np.sum([self.asks[job] for job in self.live if self.queue_of[job] == queue] or [np.zeros(3)], axis=0)
                for queue in self.queues
            ]
        )
        parts = fair_parts(total[None], self.weight, np.zeros((1, *demand.shape)), demand[None])[0]
        deserved = parts[:, None] * demand
        contended = (demand.sum(axis=0) > total + 0.1).any()
        for queue, part in zip(self.queues, deserved, strict=True):
            share, due = (held[queue] / total).max() * seconds, min((part / total).max(), 1.0) * seconds
            self.had[queue] += share
            self.deserved[queue] += due
            self.contended_had[queue] += share * contended
            self.contended_deserved[queue] += due * contended

    def take(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "arrival":
                self.live.add(event["job"])
                self.waits[event["job"]] = event["t"]
            case "bind":
                self.on[event["pod"]] = (event["node"], event["job"])
            case "gone":
                self.on.pop(event["pod"], None)
            case "started":
                self.waits.pop(event["job"], None)
            case "done":
                self.live.discard(event["job"])
                self.waits.pop(event["job"], None)
                self.on = {pod: at for pod, at in self.on.items() if at[1] != event["job"]}
            case "node-down":
                self.up.discard(event["node"])
                self.on = {pod: at for pod, at in self.on.items() if at[0] != event["node"]}
            case "node-up":
                self.up.add(event["node"])


def amounts(table: Mapping[str, float]) -> list[float]:
    return [table.get(name, 0.0) for name in RESOURCES]


def in_resource(node: Node) -> dict[str, float]:
    found = node.allocatable
    return {"cpu": found.milli_cpu, "memory": found.memory, **(found.scalars or {})}


@pytest.mark.parametrize("seed", range(4))
def test_every_sum_is_that_of_the_log(seed: int) -> None:
    scene, run, events = ran(seed)
    replay, last = Replay(scene), 0.0
    for event in events:
        if event["t"] > last:
            replay.pass_time(last, event["t"])
            last = event["t"]
        replay.take(event)
    replay.pass_time(last, run.result.now)
    figures = run.history.figures
    for i, name in enumerate(RESOURCES):
        used, capacity = figures.used[name], figures.capacity[name]
        assert used.area == pytest.approx(replay.used[i], rel=1e-6), name
        assert capacity.area == pytest.approx(replay.capacity[i], rel=1e-6), name
        assert used.crowded_area == pytest.approx(replay.loaded[i], rel=1e-6), name
        assert capacity.crowded_area == pytest.approx(replay.loaded_capacity[i], rel=1e-6), name
    for queue, found in figures.fairness.queues().items():
        assert found.share_s == pytest.approx(replay.had[queue], rel=1e-6)
        assert found.deserved_s == pytest.approx(replay.deserved[queue], rel=1e-6)
        assert found.contended_share_s == pytest.approx(replay.contended_had[queue], rel=1e-6)
        assert found.contended_deserved_s == pytest.approx(replay.contended_deserved[queue], rel=1e-6)
    summary = summarise(run)
    assert summary.fairness.jain == pytest.approx(
        jain([replay.had[queue] / replay.deserved[queue] for queue in replay.queues]), rel=1e-6
    )
    assert summary.lost.restarts > 0 and in_units({"cpu": 1.0}) == {"cpu": 0.001}
