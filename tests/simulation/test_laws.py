"""Seeds and faults through the real loop: store, cycle, planner, cluster. The laws are checked after every event and cycle.

A failing seed is a universe: the same number fails again. Make it a case of its own when it is understood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.model.podgroup import NetworkTopology
from pumice.model.queue import PriorityClass, Queue
from pumice.model.resources import PODS, Resource
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.runtime.conf import policy_of
from pumice.runtime.loop import Loop
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.engine import Engine
from pumice.sim.faults import FaultPlan, Faults
from pumice.sim.history import History
from pumice.sim.laws import Laws
from pumice.sim.scene import Scene
from pumice.sim.work import SimJob, SimTask
from pumice.sim.world import CycleReport, Ending, SimResult, Simulation
from pumice.state.store import Store
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

GPU = "nvidia.com/gpu"
TOPOLOGY = DEFAULT_CONF + "  - name: network-topology-aware\n"
PACKED = DEFAULT_CONF + "  - name: binpack\n"
BARE = 'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'

CALM = FaultPlan(quiet_after_s=0)
BUSY = FaultPlan(quiet_after_s=3000, refused_share=0.15)
LATE = FaultPlan(quiet_after_s=3000, late_share=0.3, late_max_s=6)
STORM = FaultPlan(
    quiet_after_s=3000, refused_share=0.1, late_share=0.2, late_max_s=6, node_gone_every_s=250, node_back_after_s=45,
    pod_deleted_every_s=90,
)  # fmt: skip

SPECS = [
    PodSpec(Resource(1000.0 * cpu, 2.0**30 * memory, {GPU: 1000.0 * gpu, PODS: 1.0} if gpu else {PODS: 1.0}))
    for cpu, memory, gpu in ((1, 1, 0), (2, 4, 1), (4, 8, 2), (8, 8, 4))
]


def scene(rng: np.random.Generator, topology: bool) -> Scene:
    """Eight nodes in two racks, two queues, forty jobs of which each could run alone on the cluster."""
    room = Resource(16_000.0, 2.0**36, {GPU: 8000.0, PODS: 20.0}, 20)
    nodes = [Node(f"n{i}", room, room, uid=f"n{i}") for i in range(8)]
    racks = [
        HyperNode(f"rack{r}", 1, tuple(HyperNodeMember("Node", exact=f"n{4 * r + k}") for k in range(4))) for r in range(2)
    ]
    queues = [Queue("left", weight=2, uid="left"), Queue("right", weight=1, uid="right")]
    classes = [PriorityClass("low", 10), PriorityClass("high", 1000)]
    return Scene((*classes, *queues, *nodes, *racks), tuple(job(rng, j, topology) for j in range(40)))


def job(rng: np.random.Generator, j: int, topology: bool) -> SimJob:
    spec = SPECS[int(rng.integers(len(SPECS)))]
    size = int(rng.integers(1, 7))
    tasks = [SimTask("worker", size, spec)]
    if rng.random() < 0.3:
        tasks.append(SimTask("ps", int(rng.integers(1, 3)), SPECS[0]))
    total = sum(task.replicas for task in tasks)
    minimum = total if rng.random() < 0.7 else int(rng.integers(1, total + 1))
    return SimJob(
        "ns",
        f"job-{j:02d}",
        "left" if rng.random() < 0.5 else "right",
        tuple(tasks),
        minimum,
        duration_s=float(rng.integers(10, 300)),
        arrival_s=float(rng.uniform(0, 2000)),
        priority_class="high" if rng.random() < 0.3 else "low",
        topology=NetworkTopology("hard", 1) if topology and rng.random() < 0.4 else None,
    )


@dataclass(frozen=True, slots=True)
class Ran:
    result: SimResult
    digest: str
    faults: dict[str, int]
    checks: int


def run(seed: int, conf: str, plan: FaultPlan, latency_s: float = 0.0) -> Ran:
    rng = np.random.default_rng(seed)
    topology = "network-topology-aware" in conf
    cluster = SimCluster(Engine(), start_latency_s=latency_s)
    controller = Controller(cluster)
    scene(rng, topology).enter(cluster, controller)
    history = History(cluster, controller)
    store = Store()
    loop = Loop(store, policy_of(conf, volcano_registry()), cluster)
    laws = Laws(cluster, controller, usage=history.usage, known=lambda: store._row_of_pod, topology=topology)
    faults = Faults(cluster, plan, rng)

    def cycle(now: float) -> CycleReport:
        loop.step(now)
        return CycleReport(loop.decisions)

    simulation = Simulation(
        cluster, controller, cycle, history=history, after_event=laws.after_event, after_cycle=laws.after_cycle
    )
    return Ran(simulation.run(), loop.digest.hex, faults.counts, laws.checks)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("plan", [CALM, BUSY, LATE, STORM], ids=["calm", "busy", "late", "storm"])
@pytest.mark.parametrize("conf", [DEFAULT_CONF, TOPOLOGY, PACKED, BARE], ids=["default", "topology", "binpack", "bare"])
def test_the_laws_hold_and_every_job_ends(conf: str, plan: FaultPlan, seed: int) -> None:
    ran = run(seed, conf, plan)
    assert (ran.result.ending, ran.result.pending, ran.result.unfinished) == (Ending.DONE, (), ())
    assert ran.result.completed == 40
    assert ran.checks > 200


@pytest.mark.parametrize("seed", range(2))
def test_the_laws_hold_while_pods_start_slowly(seed: int) -> None:
    ran = run(seed, DEFAULT_CONF, STORM, latency_s=4.0)
    assert ran.result.completed == 40


def test_one_seed_is_one_universe() -> None:
    assert run(3, DEFAULT_CONF, STORM).digest == run(3, DEFAULT_CONF, STORM).digest
    assert run(3, DEFAULT_CONF, STORM).digest != run(4, DEFAULT_CONF, STORM).digest


def test_the_storm_blows() -> None:
    assert all(run(0, DEFAULT_CONF, STORM).faults.values())
