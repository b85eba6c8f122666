"""The whole simulator against schedulers of a few lines: where all of a policy is known, every start is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import pumice
from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.model.queue import Queue as QueueObject
from pumice.model.resources import PODS, Resource
from pumice.runtime.policy.conf import policy_of
from pumice.sim.run import simulate
from pumice.sim.scenes.scene import Scene
from pumice.sim.settings import SimSettings
from pumice.sim.traces import swf
from pumice.sim.workloads.work import SimJob, SimTask
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.simulation.plain import Job, easy, fcfs, greedy, mean_wait_h
from tests.unit.sim.kit import SHARED, WITHOUT_SHARED

FCFS_CONF = 'actions: "allocate"\ntiers: [{plugins: [{name: fcfs}]}]\n'
EASY_CONF = (
    'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: ours/reserve, arguments: {after: 0s}}, {name: gang}]}]\n'
)
BRIEF_S = 1e-5  # a period in which nothing else happens
THETA = SHARED / "traces" / "theta-alcf"
with_theta = pytest.mark.skipif(not THETA.is_dir(), reason=WITHOUT_SHARED)


@plugin("fcfs")
class Fcfs:
    """First come, first served: a round that places nothing is the final one."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self.waiting = -1

    @points.overused
    def overused(self, queue: Queue) -> bool:
        waiting = int(self.ssn.tables.jobs.waits.sum())
        in_vain, self.waiting = waiting == self.waiting, waiting
        return in_vain


def simulated(jobs: Sequence[Job], processors: int, conf: str, period_s: float) -> list[float | None]:
    """When each job starts on one node with so many cores; a job is one pod."""
    room = Resource(1000.0 * processors, 0.0, {PODS: 1e6}, 10**6)
    specs = {size: PodSpec(Resource(1000.0 * size, 0.0, {PODS: 1.0})) for size in {job.size for job in jobs}}
    admission = conf != FCFS_CONF
    works = tuple(
        SimJob(
            "ns",
            f"job-{i:06d}",
            "default",
            (SimTask("all", 1, specs[job.size]),),
            1,
            job.seconds,
            job.arrival,
            waits_for_admission=admission,
        )
        for i, job in enumerate(jobs)
    )
    scene = Scene((Node("machine", room, room, uid="machine"), QueueObject("default", uid="default")), works)
    policy = policy_of(conf, volcano_registry().with_plugins("volcano", [Fcfs]))
    ran = simulate(scene, policy, SimSettings(period_s=period_s))
    started = {record.key: record.started for record in ran.history.jobs}
    return [started[work.key] for work in works]


def random_jobs(seed: int, processors: int, within_s: float, count: int = 150) -> list[Job]:
    """So many jobs, which come within so many seconds."""
    rng = np.random.default_rng(seed)
    arrivals = np.sort(rng.uniform(0, within_s, count).round(2))
    sizes = np.minimum(2 ** rng.integers(0, 7, count), processors)
    return [
        Job(*job) for job in zip(arrivals.tolist(), sizes.tolist(), rng.uniform(0, 900, count).tolist(), strict=True)
    ]


def theta(year: int) -> tuple[list[Job], int]:
    trace = swf.read(THETA / f"theta_{year}.swf")
    jobs = sorted(trace.jobs, key=lambda job: (job.arrival_s, job.key))
    assert trace.nodes is not None
    return [Job(j.arrival_s, j.size, j.duration_s, j.estimate_s or j.duration_s) for j in jobs], len(trace.nodes)


@pytest.mark.parametrize("seed", range(3))
def test_fcfs(seed: int) -> None:
    jobs = random_jobs(seed, 64, 4_000.0, count=60)
    expected = fcfs(jobs, 64)
    assert mean_wait_h(jobs, expected) > 0.1
    assert simulated(jobs, 64, FCFS_CONF, BRIEF_S) == pytest.approx(expected, abs=100 * BRIEF_S)


@pytest.mark.parametrize("seed", range(3))
def test_the_default_policy_is_greedy_with_admission(seed: int) -> None:
    jobs = random_jobs(seed, 64, 20_000.0)
    expected = greedy(jobs, 64, 1.0)
    assert mean_wait_h(jobs, expected) > 0.01
    assert simulated(jobs, 64, DEFAULT_CONF, 1.0) == pytest.approx(expected, abs=1e-6)


@with_theta
@pytest.mark.parametrize("conf", [FCFS_CONF, DEFAULT_CONF], ids=["fcfs", "default"])
def test_the_first_jobs_of_theta(conf: str) -> None:
    jobs, processors = theta(2022)
    jobs = jobs[:200]
    expected = fcfs(jobs, processors) if conf == FCFS_CONF else greedy(jobs, processors, 1.0)
    assert mean_wait_h(jobs, expected) > 0.1
    period_s = BRIEF_S if conf == FCFS_CONF else 1.0
    assert simulated(jobs, processors, conf, period_s) == pytest.approx(expected, abs=1e-2)


@pytest.mark.long
@with_theta
def test_fcfs_on_a_year_of_theta() -> None:
    jobs, processors = theta(2022)
    starts = simulated(jobs, processors, FCFS_CONF, BRIEF_S)
    assert starts == pytest.approx(fcfs(jobs, processors), abs=1e-2)
    assert mean_wait_h(jobs, starts) == pytest.approx(42.25, abs=0.005)


@pytest.mark.long
@with_theta
def test_the_default_policy_on_a_year_of_theta() -> None:
    jobs, processors = theta(2022)
    assert simulated(jobs, processors, DEFAULT_CONF, 1.0) == pytest.approx(greedy(jobs, processors, 1.0), abs=1e-6)


@with_theta
def test_easy_backfilling_starts_jobs_when_a_loop_does() -> None:
    """Two days of pods on one node: in the second, jobs start on places that the reserved job leaves over."""
    jobs, processors = theta(2023)
    machine = f"1:cpu={64 * processors},memory=1024Ti,pods=1000000"
    run = pumice.load(f"swf:{THETA / 'theta_2023.swf'}", nodes=machine).simulate(EASY_CONF, until="42h", events=False)
    came = sorted(zip(run.jobs["submitted_s"], run.jobs["job"], run.jobs["started_s"], strict=True))
    # Jobs that come after the end of the simulation change no start before it.
    starts = easy(jobs[:200], processors)
    pairs = [(found, start) for (_, _, found), start in zip(came, starts, strict=False) if found is not None]
    assert len(pairs) == 65
    # A cycle a second, admission in one and places in the next.
    assert [found for found, _ in pairs] == pytest.approx([start for _, start in pairs], abs=5.0)


@with_theta
def test_what_one_run_proves() -> None:
    """EASY on a year of jobs: each arrival moved by at most a minute moves the mean wait by more than an hour."""
    jobs, processors = theta(2023)
    assert mean_wait_h(jobs, easy(jobs, processors)) == pytest.approx(9.3, abs=0.05)
    waits = []
    for seed in range(10):
        dice = np.random.default_rng(seed)
        moved = [j._replace(arrival=dice.uniform(max(j.arrival - 60, 0), j.arrival + 60)) for j in jobs]
        moved.sort(key=lambda job: job.arrival)
        waits.append(mean_wait_h(moved, easy(moved, processors)))
    assert (min(waits), max(waits)) == pytest.approx((8.7, 10.3), abs=0.05)
