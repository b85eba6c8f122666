"""Hints on PodGroups: there while a gang waits, at most once in a while, and over when it runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.framework.cycle.outcome import Outcome
from pumice.kube.writers.event_recorder import EventRecorder
from pumice.kube.writers.hint_conditions import AGAIN_S, GROUPS_MAX, HINT, HintConditions, without_hint
from pumice.model.decisions import PodGroupUpdate
from pumice.model.events import Object
from pumice.model.queue import QueueSharing, Quota
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.reasons.blockers import Blockers
from pumice.runtime.controllers.writes import Ref
from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import node, pod, podgroup, policy, queue, resource

NOW = 1_000.0


def outcome_of(*groups: PodGroup, cpu: int = 4) -> Outcome:
    """A cycle in which nothing has to be written: what it would write is said already."""
    pods = [pod(f"{group.name}-0", group.name, cpu=8) for group in groups]
    objects: list[Object] = [node("n", cpu=cpu), queue(), *pods]
    first = schedule_once([*objects, *groups], policy(), NOW)
    said = [replace(group, status=first.statuses[group.key]) for group in groups]
    return schedule_once([*objects, *said], policy(), NOW).outcome


class Recorder(EventRecorder):
    """Keeps what is emitted."""

    def __init__(self) -> None:
        self.emitted: list[tuple[str, str, str, str]] = []

    def record(self, ref: Ref, kind: str, reason: str, message: str) -> None:
        self.emitted.append((ref.name, kind, reason, message))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def waiting(name: str) -> PodGroup:
    return podgroup(name, 1, phase="Inqueue")


def said(updates: list[PodGroupUpdate]) -> dict[str, str]:
    return {u.job: c.message for u in updates for c in u.status.conditions if c.type == HINT}


def test_a_gang_that_waits_says_what_would_help() -> None:
    outcome = outcome_of(waiting("g"))
    (update,) = HintConditions(lambda _: False, Recorder(), Clock()).updates(outcome)
    assert said([update]) == {"ns/g": "asks for 8 cores a pod; the largest node has 4"}
    assert [c.reason for c in update.status.conditions if c.type == HINT] == ["Shortage"]
    assert {c.type for c in update.status.conditions} == {"Unschedulable", HINT}, "Volcano's own stay"


def test_it_is_not_said_again_for_a_while_and_only_where_it_differs() -> None:
    clock = Clock()
    hints = HintConditions(lambda _: False, Recorder(), clock)
    (first,) = hints.updates(outcome_of(waiting("g")))
    reports = replace(waiting("g"), status=first.status)
    assert hints.updates(outcome_of(reports, cpu=6)) == []
    clock.now = AGAIN_S
    assert said(hints.updates(outcome_of(reports, cpu=6))) == {"ns/g": "asks for 8 cores a pod; the largest node has 6"}
    clock.now = 2 * AGAIN_S
    assert hints.updates(outcome_of(reports)) == []


def test_an_event_says_each_new_code_once() -> None:
    clock, recorder = Clock(), Recorder()
    hints = HintConditions(lambda _: False, recorder, clock)
    too_small = ("g", "Warning", "Shortage", "asks for 8 cores a pod; the largest node has 4")
    for clock.now in (0.0, AGAIN_S, 2 * AGAIN_S):
        hints.updates(outcome_of(waiting("g")))
    assert recorder.emitted == [too_small]
    clock.now = 3 * AGAIN_S
    hints.updates(outcome_of(replace(waiting("g"), min_member=2)))
    assert recorder.emitted == [too_small, ("g", "Warning", "GangIncomplete", "1 of the 2 pods of minMember exist")]


def test_a_gang_of_kai_gets_the_event_alone() -> None:
    machine, recorder = node("n", cpu=4), Recorder()
    groups = [replace(podgroup(name, 1), gang=Gang()) for name in ("small", "large")]
    asks = [replace(pod(f"{each.name}-0", each.name, cpu=8), scheduler_name="kai-scheduler") for each in groups]
    asks[0] = replace(asks[0], spec=replace(asks[0].spec, request=resource(cpu=1)), node_name="n", phase="Running")
    kai = policy_of("dialect: kai\n", builtin_registry())
    free = Quota(None, None, 1.0)
    line = replace(queue(), sharing=QueueSharing(free, free, free))
    outcome = schedule_once([machine, line, *groups, *asks], kai, NOW, ("kai-scheduler",)).outcome
    assert HintConditions(lambda _: False, recorder, Clock()).updates(outcome) == []
    assert [each[:3] for each in recorder.emitted] == [("large", "Warning", "Shortage")]


def test_hints_take_a_small_part_of_the_time_and_each_group_has_its_turn() -> None:
    clock, work = Clock(), Clock()

    def cpu() -> float:
        work.now += 0.01 * GROUPS_MAX
        return work.now

    names = [f"g{i:03d}" for i in range(GROUPS_MAX + 5)]
    hints, outcome = HintConditions(lambda _: False, Recorder(), clock, cpu), outcome_of(*map(waiting, names))
    assert len(hints.updates(outcome)) == GROUPS_MAX, "what one of them costs is not known before"
    clock.now = 2.0
    assert len(hints.updates(outcome)) == 4, "0.01 s for each of them, of 0.02 s in each second"
    clock.now = 2.1
    assert len(hints.updates(outcome)) == 1, "at least one, whatever it costs"


def test_what_is_being_written_to_a_group_is_not_written_over() -> None:
    outcome = outcome_of(waiting("a"), waiting("b"))
    assert set(said(HintConditions(lambda key: key == "ns/a", Recorder(), Clock()).updates(outcome))) == {"ns/b"}


def test_a_cycle_asks_about_the_groups_that_it_examines_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = outcome_of(*(waiting(f"g{i:03d}") for i in range(GROUPS_MAX + 5)))
    made, asked = list[Outcome](), list[str]()

    class Counted(Blockers):
        def __init__(self, outcome: Outcome) -> None:
            made.append(outcome)
            super().__init__(outcome)

    def is_busy(key: str) -> bool:
        asked.append(key)
        return key == "ns/g000"

    monkeypatch.setattr("pumice.reasons.nearest.Blockers", Counted)
    assert len(HintConditions(is_busy, Recorder(), Clock()).updates(outcome)) == GROUPS_MAX
    assert (len(made), len(asked)) == (1, GROUPS_MAX + 1)


def test_the_status_that_the_cycle_writes_goes_first() -> None:
    first = schedule_once([node("n", cpu=4), queue(), waiting("g"), pod("g-0", "g", cpu=8)], policy(), NOW).outcome
    assert first.groups and HintConditions(lambda _: False, Recorder(), Clock()).updates(first) == []


def test_it_is_over_when_the_gang_runs() -> None:
    hint = PodGroupCondition(HINT, "True", "QueueClosed", "queue team: is closed")
    runs = without_hint(PodGroupUpdate("ns/g", PodGroupStatus("Running", (hint,))))
    assert runs.status.conditions == (replace(hint, status="False", reason="Scheduled", message=""),)
    waits = PodGroupUpdate("ns/g", PodGroupStatus("Inqueue", (hint,)))
    assert without_hint(waits) is waits
