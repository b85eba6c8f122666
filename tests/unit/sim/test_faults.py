"""Faults follow from the seed alone, stop on command, and the jobs survive them."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.sim.faults import KINDS, FaultPlan, Faults
from pumice.sim.laws.safety import Laws
from pumice.sim.measures.history import History
from pumice.sim.world import SimResult, Simulation
from tests.unit.sim.kit import FirstFit, job, node, world

PLAN = FaultPlan(
    quiet_after_s=2000,
    refused_share=0.2,
    late_share=0.2,
    late_max_s=7,
    node_gone_every_s=150,
    node_back_after_s=40,
    pod_deleted_every_s=60,
    pod_killed_every_s=70,
    redelivered_every_s=80,
    restart_every_s=300,
)


def run(seed: int, plan: FaultPlan = PLAN) -> tuple[SimResult, dict[str, int], list[object]]:
    cluster, controller = world(*(node(f"n{i}") for i in range(4)))
    controller.submit_all(job(f"j{i}", 1 + i % 6, seconds=50, at=20 * i) for i in range(60))
    history = History(cluster, controller)
    laws = Laws(cluster, controller, usage=history.usage)
    scheduler = FirstFit(cluster)
    faults = Faults(cluster, plan, np.random.default_rng(seed), restart=scheduler.reports.clear)
    sim = Simulation(
        cluster, controller, scheduler, history=history, after_event=laws.after_event, after_cycle=laws.after_cycle
    )
    return sim.run(), faults.counts, scheduler.reports


@pytest.mark.parametrize("seed", range(5))
def test_every_job_ends_in_spite_of_faults(seed: int) -> None:
    result, counts, _ = run(seed)
    assert (result.completed, result.pending) == (60, ())
    assert [kind for kind in KINDS if not counts[kind]] == []


def test_the_same_seed_gives_the_same_run() -> None:
    one, two, other = run(1), run(1), run(2)
    assert one[1:] == two[1:]
    assert one[0].now == two[0].now
    assert one[2] != other[2]


def test_a_scheduler_that_cannot_be_restarted_is_left_running() -> None:
    cluster, _ = world(node("n0"))
    Faults(cluster, FaultPlan(quiet_after_s=1000, restart_every_s=1), np.random.default_rng(0))
    assert cluster.engine.next_time() is None


def test_no_faults_are_planned_without_a_rate() -> None:
    _, counts, _ = run(0, FaultPlan(quiet_after_s=1000))
    assert not any(counts.values())
