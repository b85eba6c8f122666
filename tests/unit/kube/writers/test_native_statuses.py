"""The condition of Kubernetes' own PodGroups after a cycle."""

from __future__ import annotations

import pytest

from pumice.kube.writers.statuses import group_difference
from pumice.model.resources import Resource
from pumice.model.workloads.gang import GroupResources, SchedulingCondition
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus

NOW = 1_000.0
ONE = Resource.from_list({"cpu": "1"})
NONE = Resource.from_list({})
BETA, ALPHA = "PodGroupInitiallyScheduled", "PodGroupScheduled"
VOLCANO_WAITS = PodGroupStatus(
    "Inqueue", (PodGroupCondition("Unschedulable", "True", "NotEnoughResources", "no room"),)
)
VOLCANO_RUNS = PodGroupStatus("Running")
KAI_WAITS = PodGroupStatus(scheduling=(SchedulingCondition("default", "no room"),))
KAI_RUNS = PodGroupStatus(resources=GroupResources(ONE, NONE, ONE))


def difference(wanted: PodGroupStatus, *old: PodGroupCondition, version: str = "v1beta1") -> list[tuple[str, ...]]:
    native = NativeGroup(f"scheduling.k8s.io/{version}")
    group = PodGroup("n", "g", "u", status=PodGroupStatus(conditions=old), native=native)
    found = group_difference(group, wanted, NOW).get("conditions", [])
    return [(c["type"], c["status"], c["reason"], c["message"], c["lastTransitionTime"]) for c in found]


def condition(type_: str, status: str, message: str = "", at: float = 500.0) -> PodGroupCondition:
    reason = "Scheduled" if status == "True" else "Unschedulable"
    return PodGroupCondition(type_, status, reason, message, last_transition=at)


@pytest.mark.parametrize(("version", "type_"), [("v1beta1", BETA), ("v1alpha3", BETA), ("v1alpha2", ALPHA)])
@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        pytest.param(VOLCANO_WAITS, ("False", "Unschedulable", "no room"), id="volcano waits"),
        pytest.param(VOLCANO_RUNS, ("True", "Scheduled", ""), id="volcano runs"),
        pytest.param(KAI_WAITS, ("False", "Unschedulable", "no room"), id="kai waits"),
        pytest.param(KAI_RUNS, ("True", "Scheduled", ""), id="kai runs"),
    ],
)
def test_a_new_condition(wanted: PodGroupStatus, said: tuple[str, ...], version: str, type_: str) -> None:
    assert difference(wanted, version=version) == [(type_, *said, "1970-01-01T00:16:40Z")]


def test_a_group_of_which_nothing_is_known_yet_has_none() -> None:
    assert difference(PodGroupStatus("Pending")) == []


@pytest.mark.parametrize("wanted", [VOLCANO_WAITS, KAI_WAITS])
def test_initially_scheduled_is_never_taken_back(wanted: PodGroupStatus) -> None:
    assert difference(wanted, condition(BETA, "True")) == []


def test_in_v1alpha2_it_is() -> None:
    found = difference(VOLCANO_WAITS, condition(ALPHA, "True"), version="v1alpha2")
    assert found == [(ALPHA, "False", "Unschedulable", "no room", "1970-01-01T00:16:40Z")]


def test_another_reason_to_wait_keeps_the_time_of_the_transition() -> None:
    found = difference(VOLCANO_WAITS, condition(BETA, "False", "other"))
    assert found == [(BETA, "False", "Unschedulable", "no room", "1970-01-01T00:08:20Z")]


def test_the_same_reason_is_not_written_again() -> None:
    assert difference(VOLCANO_WAITS, condition(BETA, "False", "no room")) == []


def test_conditions_of_others_stay() -> None:
    found = difference(VOLCANO_RUNS, condition("DisruptionTarget", "True", "x"))
    assert [each[0] for each in found] == ["DisruptionTarget", BETA]
