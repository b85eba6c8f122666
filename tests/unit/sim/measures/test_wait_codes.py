"""Reasons for waiting as sums over time: exact, by code."""

from __future__ import annotations

from pumice.sim.run import simulate
from pumice.sim.scenes.scene import Scene
from pumice.sim.settings import SimSettings
from pumice.sim.workloads.work import SimJob, SimTask
from pumice.testing.build import node, pod, queue
from tests.unit.sim.starts.test_predicted import policy


def job(name: str, arrival_s: float, duration_s: float) -> SimJob:
    tasks = (SimTask("worker", 1, pod("x", cpu=2).spec),)
    return SimJob("ns", name, "default", tasks, 1, duration_s, arrival_s, waits_for_admission=False)


def test_each_second_of_waiting_counts_for_one_code() -> None:
    """b waits while a runs, c while b runs; each waits for a moment until its first cycle."""
    jobs = (job("a", 0, 1_000), job("b", 100, 500), job("c", 1_200, 10))
    run = simulate(Scene((queue("default"), node("n", cpu=2)), jobs), policy())
    assert run.wait_codes.keys() == {"Shortage"}
    # Periods of a second lie between an end and the cycle after it, on both sides.
    waits = sum(each.wait_s or 0.0 for each in run.history.jobs)
    assert abs(run.wait_codes["Shortage"] - waits) <= 3 and waits > 1_190


def test_without_waiting_there_is_none() -> None:
    run = simulate(Scene((queue("default"), node("n", cpu=2)), (job("a", 0, 1_000),)), policy())
    assert run.wait_codes == {}


def test_a_simulation_that_does_not_ask_decides_the_same() -> None:
    scene = Scene((queue("default"), node("n", cpu=2)), (job("a", 0, 1_000), job("b", 100, 500)))
    asked, not_asked = simulate(scene, policy()), simulate(scene, policy(), SimSettings(asks_why=False))
    assert asked.digest == not_asked.digest and asked.wait_codes and not_asked.wait_codes == {}
    started = [[job.started for job in run.history.jobs] for run in (asked, not_asked)]
    assert started[0] == started[1]
