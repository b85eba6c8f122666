"""When cycles run, and how a simulation ends."""

from __future__ import annotations

import pytest

from pumice.model.decisions import Bind, PodGroupUpdate
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.sim.world import CLOCK_ONLY_MAX, CycleReport, Ending, Progress, Simulation
from tests.unit.sim.kit import FirstFit, job, node, simulation, world


def test_everything_runs_and_ends() -> None:
    cluster, controller = world(node("n0"), node("n1"))
    controller.submit_all(job(f"j{i}", 1 + i % 4, seconds=100, at=10 * i) for i in range(20))
    sim, _ = simulation(cluster, controller)
    result = sim.run()
    assert (result.ending, result.completed, result.pending, result.unfinished) == (Ending.DONE, 20, (), ())
    assert result.binds == sum(1 + i % 4 for i in range(20))
    assert (cluster.pods, cluster.groups) == ({}, {})


def test_a_change_within_the_period_waits_for_its_end() -> None:
    cluster, controller = world(node("n0"))
    controller.submit_all(
        [job("a", 1, seconds=100), job("b", 1, seconds=100, at=0.25), job("c", 1, seconds=100, at=0.5)]
    )
    sim, scheduler = simulation(cluster, controller)
    sim.run()
    # 0: a. 1: b and c, and that a runs. 2: that b and c run. Then the ends of a, of b and c.
    assert scheduler.moments == [0, 1, 2, 100, 101]


def test_idle_time_costs_no_cycle() -> None:
    cluster, controller = world(node("n0"))
    controller.submit_all([job("a", 1, seconds=10), job("b", 1, seconds=10, at=1e6)])
    sim, scheduler = simulation(cluster, controller)
    result = sim.run()
    assert scheduler.moments == [0, 1, 10, 1e6, 1e6 + 1, 1e6 + 10]
    assert result.simulated_s == 1e6 + 10


def test_all_events_of_a_moment_come_before_its_cycle() -> None:
    cluster, controller = world(node("n0"))
    controller.submit_all(job(f"j{i}", 1, at=5) for i in range(3))
    binds: list[int] = []
    scheduler = FirstFit(cluster)

    def cycle(now: float) -> CycleReport:
        report = scheduler(now)
        binds.append(len(report.decisions))
        return report

    Simulation(cluster, controller, cycle).run()
    assert binds[:2] == [0, 3]


def test_jobs_that_can_never_run_are_reported() -> None:
    cluster, controller = world(node("n0"))
    controller.submit_all([job("fits", 1), job("huge", 5, at=1)])
    sim, _ = simulation(cluster, controller)
    result = sim.run()
    assert (result.ending, result.completed, result.pending) == (Ending.STUCK, 1, ("ns/huge",))


def test_until_ends_it_in_the_middle() -> None:
    cluster, controller = world(node("n0"))
    controller.submit_all([job("a", 1, seconds=100), job("b", 1, at=500)])
    sim, _ = simulation(cluster, controller)
    result = sim.run(until=50)
    assert (result.ending, result.now, result.completed) == (Ending.UNTIL, 50, 0)
    assert (result.unfinished, result.pending) == (("ns/a",), ())


def test_ctrl_c_gives_what_there_is() -> None:
    cluster, controller = world(node("n0"))
    controller.submit_all(job(f"j{i}", 1, seconds=100, at=1000 * i) for i in range(5))
    sim, _ = simulation(cluster, controller)

    def stop(progress: Progress) -> None:
        if progress.ended == 2:
            raise KeyboardInterrupt

    result = sim.run(observe=stop)
    assert (result.ending, result.completed, result.jobs) == (Ending.INTERRUPTED, 2, 5)


def test_a_policy_can_ask_to_be_woken() -> None:
    cluster, controller = world(node("n0"))
    moments: list[float] = []

    def cycle(now: float) -> CycleReport:
        cluster.drain()
        moments.append(now)
        return CycleReport(wake_at=7.0 if now < 7 else None)

    Simulation(cluster, controller, cycle).run()
    assert moments == [0, 7]


def test_a_refusal_is_tried_again() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("a", 1, seconds=10))
    refusals = iter(["busy", "busy", None])
    cluster.objection = lambda _: next(refusals, None)
    sim, scheduler = simulation(cluster, controller)
    result = sim.run()
    assert (result.completed, cluster.refusals) == (1, 2)
    assert scheduler.moments[:3] == [0, 1, 2]


@pytest.mark.parametrize(
    ("waits", "phase", "expected"),
    [
        pytest.param(True, "Running", [0, 1], id="a-job-waits"),
        pytest.param(True, "Pending", [0], id="the-phase-is-the-same"),
        pytest.param(False, "Running", [0], id="no-job-waits"),
    ],
)
def test_a_phase_that_was_written_is_a_reason_to_look_again(waits: bool, phase: str, expected: list[float]) -> None:
    """Admission asks whose phase says that it runs: what it says one cycle decides the next."""
    cluster, controller = world(node("n0"))
    if waits:
        controller.submit(job("a", 1, waits=True))
    cluster.put(PodGroup("ns", "other", "other"))
    moments: list[float] = []

    def cycle(now: float) -> CycleReport:
        cluster.drain()
        moments.append(now)
        cluster.write_group(PodGroupUpdate("ns/other", PodGroupStatus(phase)))
        return CycleReport()

    Simulation(cluster, controller, cycle).run()
    assert moments == expected


def test_a_scheduler_that_goes_in_circles_is_stopped() -> None:
    cluster, controller = world(node("n0"))

    def cycle(now: float) -> CycleReport:
        cluster.drain()
        return CycleReport([Bind("ns/x", "u", "n0", "ns/g")])

    result = Simulation(cluster, controller, cycle, circles_max=20).run()
    assert (result.ending, result.cycles) == (Ending.CIRCLES, 21)


def test_a_clock_that_wakes_for_ever_does_not_keep_a_simulation_going() -> None:
    cluster, controller = world(node("n0"))
    controller.submit_all([job("a", 1, seconds=10), job("never", 9, seconds=10)])
    scheduler = FirstFit(cluster)

    def cycle(now: float) -> CycleReport:
        return CycleReport(scheduler(now).decisions, wake_at=now + 3600.0)

    result = Simulation(cluster, controller, cycle).run()
    assert (result.ending, result.completed, result.pending) == (Ending.STUCK, 1, ("ns/never",))
    assert len(scheduler.moments) > CLOCK_ONLY_MAX


@pytest.mark.parametrize("period", [0, -1, float("nan")])
def test_the_period_is_a_length_of_time(period: float) -> None:
    cluster, controller = world()
    with pytest.raises(ValueError, match="wanted more than 0 seconds"):
        simulation(cluster, controller, period_s=period)
