"""What holds is told again, and who waits for a queue that is not there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.kube.api.kinds import PODS, QUEUES, Kind
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.informers.unparsable import Unparsable
from pumice.kube.writers.reminders import Reminders
from pumice.model.events import Seen
from pumice.model.pod import PodCondition
from pumice.model.workloads.podgroup import PodGroupCondition, PodGroupStatus
from pumice.runtime.controllers.writes import Ref
from pumice.testing import build

_WAITS = PodCondition("PodScheduled", "False", "Unschedulable", "no room")
_LACKS = PodGroupCondition("Unschedulable", "True", "NotEnoughResources", "2/3 tasks", "s", 1.0)


class Case:
    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.unparsable: list[tuple[Kind, Unparsable]] = []
        self.cache = InformerCache(lambda: None)
        self.reminders = Reminders(self.cache, self, lambda: self.unparsable)  # type: ignore[arg-type]  # tells like one

    def record(self, ref: Ref, kind: str, reason: str, message: str) -> None:
        assert kind == "Warning"
        self.told.append((f"{ref.kind} {ref.namespace}/{ref.name}", reason, message))


@pytest.fixture
def case() -> Case:
    return Case()


def test_pods_and_groups_that_wait_are_told_why_again(case: Case) -> None:
    waiting = build.pod("p", conditions=(_WAITS,))
    others = [
        build.pod("bound", on="n", conditions=(_WAITS,)),
        build.pod("gone", conditions=(_WAITS,), deletion=1.0),
        build.pod("gated", conditions=(_WAITS,), gates=("g",)),
        build.pod("new"),
    ]
    group = replace(build.podgroup("g"), status=PodGroupStatus("Inqueue", (_LACKS,)))
    ready = replace(build.podgroup("ready"), status=PodGroupStatus("Running", (_LACKS,)))
    case.cache.hear(Seen(each) for each in (waiting, *others, group, ready))
    case.reminders.remind()
    assert case.told == [
        ("Pod ns/p", "FailedScheduling", "no room"),
        ("PodGroup ns/g", "Unschedulable", "2/3 tasks"),
    ]


def test_objects_that_cannot_be_read_are_told_of_again(case: Case) -> None:
    case.unparsable = [
        (PODS, Unparsable("ns/p", "u", "1", "spec: found a list", 0.0)),
        (QUEUES, Unparsable("q", "u", "1", "weight: found x", 0.0)),
        (PODS, Unparsable("(no name)", "", "", "no JSON", 0.0)),
    ]
    case.reminders.remind()
    assert case.told == [
        ("Pod ns/p", "Unreadable", "spec: found a list"),
        ("Queue /q", "Unreadable", "weight: found x"),
    ]


def test_a_group_whose_queue_is_not_there_is_told_once_and_again(case: Case) -> None:
    objects = [build.node("n"), build.queue(), build.podgroup("lost", queue="nowhere"), build.podgroup("found")]
    outcome = build.run(build.cluster(*objects)).outcome
    case.reminders.note(outcome)
    case.reminders.note(outcome)
    text = "queue 'nowhere' does not exist: create it, or name another in spec.queue"
    assert case.told == [("PodGroup ns/lost", "QueueNotFound", text)]
    case.reminders.remind()
    assert len(case.told) == 2
    case.reminders.note(build.run(build.cluster(*objects, build.queue("nowhere"))).outcome)
    case.reminders.remind()
    assert len(case.told) == 2
