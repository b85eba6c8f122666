"""Figures are exact however long a simulation is; pictures grow coarser."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.sim.engine import Engine
from pumice.sim.measures.crowd import Crowd
from pumice.sim.measures.history import History
from pumice.sim.measures.series import POINTS_MAX
from pumice.sim.measures.window import ALWAYS, Window
from tests.unit.sim.kit import bind, job, node, pod, simulation, world


def test_use_while_jobs_waited_is_exact_on_a_long_run() -> None:
    """Half of the cluster is used, on and off, more often than a picture can hold; then all of it, and a job waits."""
    cluster, controller = world(node("n0", cpu=4))
    history = History(cluster, controller, prompt_s=2.0)
    for i in range(POINTS_MAX):
        cluster.put(pod(f"p{i}", cpu=2))
        bind(cluster, f"ns/p{i}", "n0")
        history.tick()
        cluster.engine.advance(2.0 * i + 1)
        cluster.remove_pod(f"ns/p{i}")
        history.tick()
        cluster.engine.advance(2.0 * i + 2)
    begun = cluster.engine.now
    for name in ("last-0", "last-1"):
        cluster.put(pod(name, cpu=2))
        bind(cluster, f"ns/{name}", "n0")
    controller.submit(job("waits", 1, at=begun))
    history.tick()
    cluster.engine.advance(begun + 102.0)
    history.tick()
    figures = history.figures
    assert len(history.allocated["cpu"]) < 2 * POINTS_MAX  # the picture is thinned
    assert figures.crowded_s == 100.0
    assert figures.used["cpu"].crowded_area / figures.capacity["cpu"].crowded_area == 1.0
    assert figures.used["cpu"].area == history.allocated["cpu"].area(begun + 102.0) == 2000.0 * POINTS_MAX + 4000 * 102


@pytest.mark.parametrize("seed", range(5))
def test_a_crowd_is_that_of_the_intervals(seed: int) -> None:
    """Against the slow and plain way: all waits at once, on a grid of moments at which nothing changes."""
    rng = np.random.default_rng(seed)
    begins = np.sort(rng.integers(0, 200, 40)).astype(float)
    ends = begins + rng.integers(0, 12, 40)
    window, patience = Window(30.0, 150.0), 3.0
    crowd, found = Crowd(0.0, patience, window), 0.0
    reports = sorted([*((b, 1, i) for i, b in enumerate(begins)), *((e, 0, i) for i, e in enumerate(ends))])
    for moment, begin, i in sorted(reports, key=lambda each: (each[0], -each[1])):
        found += crowd.seconds(moment)
        if begin:
            crowd.waits(str(i), moment)
        else:
            crowd.over(str(i))
    found += crowd.seconds(300.0)
    middles = np.arange(0.25, 300.0, 0.5)
    late = ((begins[:, None] + patience < middles) & (middles < ends[:, None])).any(axis=0)
    assert found == 0.5 * (late & (middles > 30) & (middles < 150)).sum()


def test_only_the_window_is_measured() -> None:
    cluster, controller = world(node("n0", cpu=4))
    controller.submit_all([job("a", 4, seconds=100), job("b", 2, seconds=100, at=50), job("c", 1, seconds=10, at=300)])
    history = History(cluster, controller, window=Window(40.0, 160.0))
    result = simulation(cluster, controller, history=history)[0].run()
    figures = result.history.figures
    assert figures.seconds == 120.0
    assert figures.used["cpu"].area == 4000 * 60 + 2000 * 60
    assert (figures.capacity["cpu"].area, figures.capacity["cpu"].peak) == (4000 * 120, 4000)
    assert [record.key for record in history.jobs if record.submitted in history.figures.window] == ["ns/b"]


def test_the_window_may_lie_beyond_the_end() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("a", 1, seconds=10))
    history = History(cluster, controller, window=Window(1e6))
    simulation(cluster, controller, history=history)[0].run()
    assert (history.figures.seconds, history.figures.used["cpu"].area) == (0.0, 0.0)


def test_always_is_everything() -> None:
    assert ALWAYS.overlap(-5.0, 7.0) == 12.0 and 0.0 in ALWAYS
    assert Engine().now in ALWAYS
