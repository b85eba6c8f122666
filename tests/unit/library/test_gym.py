"""The gymnasium environment: its contract, a random agent, and one that serves the oldest job first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pumice
from pumice.gym import JobOrder

Agent = Callable[[Any], int]


def episode(agent: Agent, seed: int = 1, **more: Any) -> tuple[float, int, pumice.Run]:
    """Return (return, steps, the run) of an episode."""
    env = JobOrder("examples/demo", until="2h", jobs_max=8, **more)
    observation, _ = env.reset(seed=seed)
    total, steps = 0.0, 0
    while True:
        observation, reward, is_over, truncated, info = env.step(np.int64(agent(observation)))
        assert env.observation_space.contains(observation) and not truncated
        total, steps = total + reward, steps + 1
        if is_over:
            return total, steps, info["run"]


def random_agent(seed: int) -> Agent:
    dice = np.random.default_rng(seed)
    return lambda observation: int(dice.integers(8))


def oldest(observation: Any) -> int:
    return 0


def waited_h(run: pumice.Run) -> float:
    """Hours that all jobs waited together, by the table of jobs."""
    rows = [row for row in run.jobs if row["state"] != "to come"]
    return sum((7200 if row["started_s"] is None else row["started_s"]) - row["submitted_s"] for row in rows) / 3600


@pytest.mark.parametrize("agent", [oldest, random_agent(3)], ids=["oldest", "random"])
def test_the_return_is_the_hours_that_jobs_waited(agent: Agent) -> None:
    total, steps, run = episode(agent)
    assert steps > 20 and total == pytest.approx(-waited_h(run))


def test_equal_seeds_and_actions_give_equal_runs() -> None:
    digests = [episode(random_agent(3), seed)[2].digest for seed in (5, 5, 6)]
    assert digests[0] == digests[1] != digests[2]


def test_the_job_that_an_agent_names_goes_first(tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    rows = "".join(f"j{i},{i},{duration},4\n" for i, duration in enumerate((1000, 900, 60)))
    table.write_text(f"job,submit,duration,gpus\n{rows}")
    cluster = pumice.load(table, nodes="1x4gpu")  # one job at a time

    def order(agent: Agent) -> list[str]:
        env = JobOrder(cluster, shake=None, jobs_max=4)
        observation, _ = env.reset(seed=0)
        is_over, info = False, {}
        while not is_over:
            observation, _, is_over, _, info = env.step(np.int64(agent(observation)))
        return [row["job"] for row in sorted(info["run"].jobs, key=lambda row: row["started_s"])]

    assert order(oldest) == ["csv/j0", "csv/j1", "csv/j2"]
    assert order(lambda observation: int(observation[:-1, 4].sum()) - 1) == ["csv/j0", "csv/j2", "csv/j1"]


def test_the_environment_keeps_the_contract_of_gymnasium() -> None:
    check_env(JobOrder("examples/demo", until="20m", jobs_max=4), skip_render_check=True)


def test_the_oldest_jobs_are_the_first_rows() -> None:
    env = JobOrder("examples/demo", until="1h", jobs_max=4)
    env.reset(seed=0)
    for _ in range(30):
        observation, _, is_over, _, _ = env.step(np.int64(0))
        if is_over:
            break
        there = observation[:-1][observation[:-1, 4] == 1]
        assert len(there) == min(observation[-1, 0], 4)
        assert all(np.diff(there[:, 0]) <= 0)  # those that waited longest first
    env.close()


def test_an_environment_can_be_closed_in_the_middle() -> None:
    env = JobOrder("examples/demo", until="1h")
    env.reset(seed=0)
    env.step(np.int64(0))
    env.close()
    env.close()
    with pytest.raises(AssertionError, match="reset comes before step"):
        env.step(np.int64(0))


def test_what_is_wrong_is_raised_at_reset() -> None:
    with pytest.raises(pumice.InputError, match="until: found '2x'"):
        JobOrder("examples/demo", until="2x").reset(seed=0)
