"""Which time figures are about: a warm-up from the start on, a cool-down before the last arrival."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pumice.sim.measures.window import Window, WindowError, window_of
from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.shake import shaken
from tests.unit.sim.kit import job

WORKS = (job("a", 1), job("b", 1, at=100), job("c", 1, at=1000))


@pytest.mark.parametrize(
    ("until", "warm_up", "cool_down", "expected"),
    [
        pytest.param(None, 50.0, None, Window(55.0), id="warm-up"),
        pytest.param(None, None, 50.0, Window(-math.inf, 955.0), id="cool-down-before-the-last-arrival"),
        pytest.param(500.0, None, 50.0, Window(-math.inf, 455.0), id="cool-down-before-the-end-that-is-given"),
        pytest.param(5000.0, 10.0, 50.0, Window(15.0, 955.0), id="both"),
    ],
)
def test_windows(until: float | None, warm_up: float | None, cool_down: float | None, expected: Window) -> None:
    assert window_of(WORKS, start=5.0, until=until, warm_up_s=warm_up, cool_down_s=cool_down) == expected


@pytest.mark.parametrize(
    ("until", "warm_up", "cool_down"),
    [
        pytest.param(None, 600.0, 400.0, id="they-meet"),
        pytest.param(300.0, 300.0, None, id="warm-up-to-the-end"),
        pytest.param(None, None, 1000.0, id="cool-down-from-the-start"),
    ],
)
def test_a_window_of_nothing_is_refused(until: float | None, warm_up: float | None, cool_down: float | None) -> None:
    with pytest.raises(WindowError, match="leaves no time to measure: the last job arrives at"):
        window_of(WORKS, start=5.0, until=until, warm_up_s=warm_up, cool_down_s=cool_down)


def test_what_is_there_at_the_start_stays_there() -> None:
    scene = Scene((), (job("backlog", 1, at=0.0), job("later", 1, at=5.0)))
    found = {work.key: work.arrival_s for work in shaken(scene, 20.0, np.random.default_rng(1)).works}
    backlog, later = (found[work.key] for work in scene.works)
    assert backlog == 0.0 and later not in (0.0, 5.0)


def test_arrivals_move_by_seed_and_no_further_than_said() -> None:
    scene = Scene((), tuple(job(f"j{i}", 1, at=5.0 * i) for i in range(200)))
    one, two, other = (shaken(scene, 20.0, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == two != other
    moved = {work.key: work.arrival_s for work in one.works}
    by = np.array([moved[work.key] - work.arrival_s for work in scene.works])
    assert min(moved.values()) >= 0 and abs(by).max() <= 20
    assert by[4:].min() < -15 and by[4:].max() > 15 and abs(by[4:].mean()) < 3
    assert [work.arrival_s for work in one.works] == sorted(moved.values())
    assert all(work.duration_s == 60 for work in one.works)
