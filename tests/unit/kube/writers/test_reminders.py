"""What still holds is reported again, and so are jobs that wait for a queue that does not exist."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.kube.api.kinds import PODS, QUEUES, Kind
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.informers.unparsable import Unparsable
from pumice.kube.writers.reminders import Reminders
from pumice.model.events import Seen
from pumice.model.pod import PodCondition
from pumice.model.workloads.podgroup import PodGroupCondition, PodGroupStatus
from pumice.runtime.controllers.writes import Ref
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.conf import policy_of
from pumice.state.store import Store
from pumice.testing import build
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

_WAITS = PodCondition("PodScheduled", "False", "Unschedulable", "no room")
_LACKS = PodGroupCondition("Unschedulable", "True", "NotEnoughResources", "2/3 tasks", "s", 1.0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Case:
    def __init__(self) -> None:
        self.reports: list[tuple[str, str, str]] = []
        self.unparsable: list[tuple[Kind, Unparsable]] = []
        self.cache = InformerCache(lambda: None)
        self.clock = Clock()
        self.reminders = Reminders(self.cache, self, lambda: self.unparsable, clock=self.clock)  # type: ignore[arg-type]  # tells like one

    def record(self, ref: Ref, kind: str, reason: str, message: str) -> None:
        assert kind == "Warning"
        self.reports.append((f"{ref.kind} {ref.namespace}/{ref.name}", reason, message))


@pytest.fixture
def case() -> Case:
    return Case()


def test_the_reason_of_waiting_pods_and_groups_is_repeated(case: Case) -> None:
    waiting = build.pod("p", conditions=(_WAITS,))
    others = [
        build.pod("bound", on="n", conditions=(_WAITS,)),
        build.pod("gone", conditions=(_WAITS,), deletion=1.0),
        build.pod("gated", conditions=(_WAITS,), gates=("g",)),
        build.pod("new"),
    ]
    group = replace(build.podgroup("g"), status=PodGroupStatus("Inqueue", (_LACKS,)))
    ready = replace(build.podgroup("ready"), status=PodGroupStatus("Running", (_LACKS,)))
    case.cache.apply(Seen(each) for each in (waiting, *others, group, ready))
    case.reminders.remind()
    assert case.reports == [
        ("Pod ns/p", "FailedScheduling", "no room"),
        ("PodGroup ns/g", "Unschedulable", "2/3 tasks"),
    ]


def test_the_problem_of_an_unreadable_object_is_repeated(case: Case) -> None:
    case.unparsable = [
        (PODS, Unparsable("ns/p", "u", "1", "spec: found a list", 0.0)),
        (QUEUES, Unparsable("q", "u", "1", "weight: found x", 0.0)),
        (PODS, Unparsable("(no name)", "", "", "no JSON", 0.0)),
    ]
    case.reminders.remind()
    assert case.reports == [
        ("Pod ns/p", "Unreadable", "spec: found a list"),
        ("Queue /q", "Unreadable", "weight: found x"),
    ]


def test_a_group_whose_queue_is_not_there_is_reported_once_and_again(case: Case) -> None:
    objects = [build.node("n"), build.queue(), build.podgroup("lost", queue="nowhere"), build.podgroup("found")]
    outcome = build.run(build.cluster(*objects)).outcome
    case.reminders.note(outcome)
    case.reminders.note(outcome)
    text = "queue 'nowhere' does not exist: create it, or name another in spec.queue"
    assert case.reports == [("PodGroup ns/lost", "QueueNotFound", text)]
    case.reminders.remind()
    assert len(case.reports) == 2
    case.reminders.note(build.run(build.cluster(*objects, build.queue("nowhere"))).outcome)
    case.reminders.remind()
    assert len(case.reports) == 2


def test_a_gang_that_holds_nodes_below_its_minimum_is_warned_of_after_ever_longer_times(case: Case) -> None:
    store = Store()
    objects = build.node("n", cpu=2), build.queue(), build.podgroup("g", minimum=3, phase="Inqueue")
    for each in (*objects, *(build.pod(f"g-{i}", "g", cpu=1, on="n" if i < 2 else "") for i in range(3))):
        store.apply(Seen(each))
    policy = policy_of(DEFAULT_CONF, volcano_registry())
    outcome = run_cycle(store.snapshot(), policy, 0.0, ListPlanner())
    reports: list[tuple[float, str]] = []
    for now in range(0, 200, 10):
        case.clock.now = float(now)
        case.reminders.note(outcome)
        reports += [(now, message) for _, reason, message in case.reports if reason == "BelowMinimum"]
        case.reports.clear()
    assert reports == [(at, f"below its minimum for {at} s: 2 of its 3 pods hold nodes") for at in (30, 60, 120)]
    assert case.reminders.below_minimum.longest_s(190.0) == 190.0
