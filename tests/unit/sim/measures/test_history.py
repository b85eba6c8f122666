"""What is remembered of a run: times of jobs, allocation, waiting, the longest jobs, busy nodes."""

from __future__ import annotations

import pytest

from pumice.model.decisions import Evict
from pumice.model.node import Node
from pumice.sim.measures.history import History
from tests.unit.sim.kit import bind, job, node, simulation, world


def test_times_of_jobs_and_allocation_over_time() -> None:
    cluster, controller = world(node("n0", cpu=4))
    controller.submit_all([job("a", 4, seconds=100), job("b", 2, seconds=50, at=10)])
    result = simulation(cluster, controller)[0].run()
    history = result.history
    a, b = history.jobs
    assert (a.submitted, a.started, a.ended, a.wait_s, a.completion_s) == (0, 0, 100, 0, 100)
    assert (b.submitted, b.started, b.ended, b.wait_s, b.completion_s) == (10, 100, 150, 90, 140)
    times, values = history.allocated["cpu"].arrays()
    assert list(zip(times.tolist(), values.tolist(), strict=True)) == [(0, 4000), (100, 2000), (150, 0)]
    assert history.capacity["cpu"].value == 4000
    assert history.queue_allocated["default"]["cpu"].area(150) == 4000 * 100 + 2000 * 50
    waiting = history.waiting.arrays()
    assert list(zip(waiting[0].tolist(), waiting[1].tolist(), strict=True)) == [(0, 0), (10, 1), (100, 0)]
    assert history.queue_waiting["default"].area(150) == 90
    assert history.running.peak == 1


def test_the_longest_jobs_and_where_they_ran() -> None:
    cluster, controller = world(node("n0"), node("n1"))
    controller.submit_all(job(f"j{i}", 2, seconds=10 * (i % 7 + 1), at=100 * i) for i in range(20))
    history = History(cluster, controller, longest=3)
    simulation(cluster, controller, history=history)[0].run()
    bars = history.longest_jobs()
    assert [bar.record.key for bar in bars] == ["ns/j13", "ns/j6", "ns/j5"]
    assert (bars[0].nodes, bars[0].node_count) == (("n0",), 1)


def test_jobs_that_still_run_are_among_the_longest() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("long", 1, seconds=1e6))
    result = simulation(cluster, controller)[0].run(until=100)
    assert [bar.record.key for bar in result.history.longest_jobs()] == ["ns/long"]


def test_busy_nodes() -> None:
    cluster, controller = world(node("n0", cpu=4), node("n1", cpu=4))
    controller.submit_all([job("a", 4, seconds=90), job("b", 2, seconds=30, at=10)])
    result = simulation(cluster, controller)[0].run()
    rows, width, grid = result.history.heat()
    assert (rows, width) == ([["n0"], ["n1"]], 60)
    assert grid[0] == pytest.approx([1.0, 1.0])
    assert grid[1] == pytest.approx([0.5 * 30 / 60, 0.0])


def test_more_nodes_than_rows_share_rows() -> None:
    cluster, controller = world(*(node(f"n{i:04d}") for i in range(1000)))
    history = History(cluster, controller)
    assert len(history.heat_rows) == 256
    assert sum(len(row) for row in history.heat_rows) == 1000
    assert history.heat_rows[0] == ["n0000", "n0001", "n0002", "n0003"]


def test_nodes_that_come_and_go_change_the_capacity() -> None:
    cluster, controller = world(node("n0"), node("n1"))
    history = History(cluster, controller)
    cluster.engine.advance(10)
    cluster.delete(Node, "n0")
    cluster.engine.advance(20)
    cluster.put(node("n0", cpu=8))
    cluster.put(node("late", cpu=1))
    times, values = history.capacity["cpu"].arrays()
    assert list(zip(times.tolist(), values.tolist(), strict=True)) == [(0, 8000), (10, 4000), (20, 13000)]
    assert "late" in history.heat_rows[-1]


def test_an_eviction_gives_the_room_back_and_counts_a_restart() -> None:
    cluster, controller = world(node("n0"))
    history = History(cluster, controller)
    controller.submit(job("a", 2))
    cluster.engine.advance(0)
    for key in list(cluster.pods):
        bind(cluster, key, "n0")
    cluster.engine.advance(5)
    history.tick()
    victim = cluster.pods["ns/a-worker-0"]
    cluster.submit([Evict(victim.key, victim.uid, "n0", "ns/a", "preempt")])
    history.tick()
    assert history.allocated["cpu"].value == 1000
    assert (history.jobs[0].restarts, history.running.value, history.waiting.value) == (1, 0, 0)
    assert history.usage.of("n0") == ({"cpu": 1000, "pods": 1}, 0.25)


def test_a_job_that_loses_pods_again_is_counted_by_moments_not_by_pods() -> None:
    cluster, controller = world(node("n0"))
    history = History(cluster, controller)
    controller.submit(job("a", 2))
    cluster.engine.advance(0)
    for moment in (5, 10):
        for key in list(cluster.pods):
            bind(cluster, key, "n0")
        cluster.engine.advance(moment)
        victims = [Evict(pod.key, pod.uid, "n0", "ns/a", "preempt") for pod in list(cluster.pods.values())]
        cluster.submit(victims)
    record = history.jobs[0]
    assert (record.evicted, record.evicted_times, record.evicted_at) == (4, 2, 10)
