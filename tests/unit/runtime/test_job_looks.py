"""Looks at jobs after cycles."""

from __future__ import annotations

import asyncio

import pytest

from pumice.runtime import job_looks
from pumice.runtime.cycle_end import CycleEnd
from pumice.runtime.job_looks import JobLooks
from pumice.runtime.job_times import JobTimes
from pumice.testing.build import cluster, node, queue, run


async def test_a_look_that_fails_leaves_the_cycle_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise ValueError("x")

    monkeypatch.setattr(job_looks, "job_states", failing)
    looks = JobLooks(JobTimes(), asyncio.get_running_loop(), lambda: 1000.0)
    looks.take(CycleEnd(1, run(cluster(node("n"), queue())).outcome, [], "d"))
    assert "a cycle could not be looked at" in caplog.text
