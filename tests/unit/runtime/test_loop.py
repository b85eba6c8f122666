"""The loop around the cycle: what is taken in when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pumice.api import Queue, Session, UsageWindow, plugin, points
from pumice.columns.snapshot import Snapshot
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Decision, GateRemoval, PodGroupUpdate, PodNotice, Refusal
from pumice.model.events import Event, Gone, Seen
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
        """Do nothing."""

    def write_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> None:
        """Do nothing."""

    def remove_gate(self, removal: GateRemoval) -> None:
        """Do nothing."""

    def notice(self, notice: PodNotice) -> None:
        """Do nothing."""


def test_a_job_that_goes_during_a_cycle_is_still_in_its_outcome() -> None:
    loop = Loop(cluster(node("n"), podgroup("g"), pod("p", "g")), policy(), Vanishing())

    outcome = loop.step(0.0)
    metrics = Metrics()
    report_cycle(metrics, outcome)

    assert metrics.value("unschedule_task_count", "g") == 0.0
    assert loop.take_in() == 2
    assert loop.store.snapshot().tables.jobs.alive.sum() == 0


@plugin("keeping")
class Keeping:
    """Has the usage of users kept over some hours."""

    def __init__(self, ssn: Session, *, hours: float = 24.0) -> None:
        self.used = ssn.usage(UsageWindow("user", 3600 * hours))

    @staticmethod
    def keeps_usage(*, hours: float) -> list[UsageWindow]:
        return [UsageWindow("user", 3600 * hours)]

    @points.queue_order
    def order(self, queue: Queue) -> float:
        return 0.0


def test_the_usage_that_the_policy_in_force_names_is_kept() -> None:
    def under(hours: str) -> Policy:
        return policy(
            f"tiers: [{{plugins: [{{name: keeping, arguments: {{{hours}}}}}]}}]", actions="allocate", plugins=[Keeping]
        )

    cluster_, seen = Vanishing(), []

    def kept(snapshot: Snapshot) -> None:
        usages = snapshot.tables.label_usages
        rows = usages.alive.nonzero()[0].tolist()
        seen.append(
            {(usages.window_s[row], usages.label_value[row]): usages.amounts[row].sum(axis=0)[0] for row in rows}
        )

    loop = Loop(cluster(node("n")), under(""), cluster_)
    runs = pod("p", on="n", labels={"user": "ann"}, start_time=1000.0)
    cluster_.heard = [Seen(runs)]
    loop.step(1010.0, saw=kept)
    cluster_.heard = [Seen(replace(runs, phase="Succeeded", finish_time=1040.0))]
    loop.step(1050.0, saw=kept)
    loop.policy = under("hours: 1")
    loop.step(1060.0, saw=kept)
    loop.policy = policy("tiers: []", actions="allocate")
    loop.step(1070.0, saw=kept)
    assert seen == [{}, {(86_400.0, "ann"): 40_000.0}, {(3600.0, "ann"): 40_000.0}, {}]
