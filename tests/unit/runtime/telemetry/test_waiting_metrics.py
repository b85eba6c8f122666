"""What waits, by the code of the reason."""

from __future__ import annotations

import pytest

from pumice.answers.codes import Code
from pumice.answers.world import Trials, World
from pumice.framework.cycle.outcome import Outcome
from pumice.runtime.telemetry.metrics import Metrics
from pumice.runtime.telemetry.waiting_metrics import WaitingMetrics
from pumice.testing.build import node, pod, podgroup, policy, queue

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: proportion}]
"""


def outcome(*, cordoned: bool = False) -> Outcome:
    """Return a cycle in which a gang of three asks for more GPUs than there are, and one lacks a pod."""
    objects = [queue("default"), node("n0", 4, gpu=4, unschedulable=cordoned), podgroup("gang", 3, phase="Inqueue")]
    objects += [pod(f"gang-{i}", "gang", gpu=2) for i in range(3)]
    objects += [podgroup("part", 2, phase="Inqueue"), pod("part-0", "part")]
    return Trials(World(objects, policy(CONF), 100.0, ("volcano",)), 1).base.outcome


class At:
    def __init__(self) -> None:
        self.now, self.step, self.metrics = 1000.0, 0.0, Metrics()
        self.waiting = WaitingMetrics(self.metrics, self.clock)

    def clock(self) -> float:
        self.now += self.step
        return self.now

    def found(self, name: str) -> dict[str, float]:
        """Return the series that are not 0."""
        values = {labels[0]: self.metrics.value(name, *labels) for labels in self.metrics.series(name)}
        return {code: value for code, value in values.items() if value}


def test_jobs_pods_and_gpus_by_code() -> None:
    at = At()
    at.waiting.take(outcome())
    assert at.found("waiting_jobs") == {"Shortage": 1, "GangIncomplete": 1}
    assert at.found("waiting_pods") == {"Shortage": 3, "GangIncomplete": 1}
    assert at.found("waiting_gpus") == {"Shortage": 6}


@pytest.mark.parametrize("name", ["waiting_jobs", "waiting_pods", "waiting_gpus"])
def test_each_code_has_a_series_and_nothing_else_has(name: str) -> None:
    at = At()
    at.waiting.take(outcome())
    assert at.metrics.series(name) == [(code.value,) for code in Code]


def test_a_change_is_reported_when_a_hundred_times_as_long_has_passed() -> None:
    at = At()
    at.step = 0.5
    at.waiting.take(outcome())
    at.step = 0.0
    at.waiting.take(outcome(cordoned=True))
    assert at.found("waiting_gpus") == {"Shortage": 6}
    at.now += 100.0
    at.waiting.take(outcome(cordoned=True))
    assert at.found("waiting_gpus") == {"Taint": 6}


def test_a_cycle_that_wrote_nothing_is_not_counted_again() -> None:
    at, same = At(), outcome()
    at.waiting.take(same)
    at.metrics.replace("waiting_jobs", {})
    at.waiting.take(same)
    assert at.metrics.series("waiting_jobs") == []


def test_a_process_that_decides_no_longer_has_no_series() -> None:
    at = At()
    at.waiting.take(outcome())
    at.waiting.forget()
    assert at.metrics.series("waiting_jobs") == []
    at.waiting.take(outcome())
    assert at.found("waiting_jobs")
