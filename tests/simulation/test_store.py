"""S9 in whole simulations: what the store keeps up to date by events is what it makes of the same objects anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pumice.model.decisions import Decision
from pumice.model.events import Seen
from pumice.runtime.loop import Loop
from pumice.runtime.policy.conf import policy_of
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.engine import Engine
from pumice.sim.faults import FaultPlan, Faults
from pumice.sim.world import CycleReport, Simulation
from pumice.state.store import Store
from pumice.volcano.table import volcano_registry
from tests.properties.named import Named, disagreements, named
from tests.simulation.scenes import JOBS, POLICIES, SCENES

PLAN = FaultPlan(3000.0, refused_share=0.1, node_gone_every_s=200, pod_deleted_every_s=60, pod_killed_every_s=60)


def as_recomputed(cluster: SimCluster) -> Named:
    store = Store()
    tables = (cluster.nodes, cluster.queues, cluster.priority_classes, cluster.hypernodes, cluster.groups, cluster.pods)
    store.apply_all([Seen(obj) for table in tables for obj in table.values()])
    return named(store)


def without_memory(tables: Named) -> Named:
    """Less what a cycle found out for the next one, which a fresh store cannot know."""
    for job in tables["jobs"].values():
        job.pop("settled", None)
    return tables


@pytest.mark.parametrize(("scene", "latency_s"), [(scene, 4.0 * (i % 2)) for i, scene in enumerate(SCENES)])
def test_the_store_is_in_step_after_every_cycle(scene: str, latency_s: float) -> None:
    cluster = SimCluster(Engine(), start_latency_s=latency_s)
    controller = Controller(cluster)
    SCENES[scene](np.random.default_rng(1)).enter(cluster, controller)
    loop = Loop(Store(), policy_of(POLICIES["topology"], volcano_registry()), cluster)
    Faults(cluster, PLAN, np.random.default_rng(2))

    def cycle(now: float) -> CycleReport:
        loop.step(now)
        return CycleReport(loop.decisions)

    def compare(decisions: Sequence[Decision]) -> None:
        loop.take_in()
        found, wanted = without_memory(named(loop.store)), without_memory(as_recomputed(cluster))
        assert disagreements(found, wanted) == []

    result = Simulation(cluster, controller, cycle, after_cycle=compare).run()
    assert result.completed == JOBS
