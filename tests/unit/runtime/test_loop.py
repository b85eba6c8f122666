"""The loop around the cycle: what is taken in when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pumice.model.decisions import Decision, GateRemoval, PodGroupUpdate, PodNotice, Refusal
from pumice.model.events import Event, Gone
from pumice.model.pod import Pod
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.loop import Loop
from pumice.runtime.telemetry.cycle_metrics import report_cycle
from pumice.runtime.telemetry.metrics import Metrics
from pumice.testing.build import cluster, node, pod, podgroup, policy


class Vanishing:
    """A cluster where a pod that gets its node is gone at once, and its PodGroup with it."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def drain(self) -> list[Event]:
        heard, self.heard = self.heard, []
        return heard

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        for decision in decisions:
            self.heard += [Gone(Pod, decision.pod), Gone(PodGroup, decision.job)]
        return {}

    def write_group(self, update: PodGroupUpdate) -> None:
        """Nobody reads it."""

    def write_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> None:
        """Nobody reads it."""

    def take_off_gate(self, removal: GateRemoval) -> None:
        """Nobody reads it."""

    def notice(self, notice: PodNotice) -> None:
        """Nobody reads it."""


def test_a_job_that_goes_during_a_cycle_is_still_in_its_outcome() -> None:
    loop = Loop(cluster(node("n"), podgroup("g"), pod("p", "g")), policy(), Vanishing())

    outcome = loop.step(0.0)
    metrics = Metrics()
    report_cycle(metrics, outcome)

    assert metrics.value("unschedule_task_count", "g") == 0.0
    assert loop.take_in() == 2
    assert loop.store.snapshot().tables.jobs.alive.sum() == 0
