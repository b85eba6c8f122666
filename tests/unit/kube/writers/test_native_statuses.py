"""The condition of Kubernetes' own PodGroups after a cycle."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.writers.native_statuses import GroupNews, news_in_tree
from pumice.kube.writers.statuses import group_difference
from pumice.model.decisions import PodGroupUpdate
from pumice.model.resources import Resource
from pumice.model.workloads.composite import CompositePodGroup
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


def written(
    wanted: PodGroupStatus,
    *old: PodGroupCondition,
    version: str = "v1beta1",
    generation: int = 0,
    placed: int = 0,
    **found: str,
) -> list[dict[str, Any]]:
    """Return the conditions that are written, none if nothing is. ``placed``: number of pods on nodes. ``found``:
    ``error`` or ``eviction``."""
    native = NativeGroup(f"scheduling.k8s.io/{version}", generation=generation)
    group = PodGroup("n", "g", "u", status=PodGroupStatus(conditions=old), native=native)
    update = PodGroupUpdate("n/g", wanted, **found)  # type: ignore[arg-type]  # no times among them
    conditions: list[dict[str, Any]] = group_difference(group, update, NOW, placed).get("conditions", [])
    return conditions


def difference(wanted: PodGroupStatus, *old: PodGroupCondition, **more: Any) -> list[tuple[str, ...]]:
    found = written(wanted, *old, **more)
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


@pytest.mark.parametrize("wanted", [PodGroupStatus("Pending"), VOLCANO_WAITS, VOLCANO_RUNS, KAI_WAITS])
def test_an_error_of_the_scheduler_counts_before_what_the_language_says(wanted: PodGroupStatus) -> None:
    found = difference(wanted, error="a circle")
    assert found == [(BETA, "False", "SchedulerError", "a circle", "1970-01-01T00:16:40Z")]


def test_an_error_takes_nothing_back_from_a_group_that_was_scheduled() -> None:
    assert difference(VOLCANO_WAITS, condition(BETA, "True"), error="a circle") == []


def test_an_error_that_is_over_gives_way_to_the_reason_to_wait() -> None:
    old = PodGroupCondition(BETA, "False", "SchedulerError", "a circle", last_transition=500.0)
    assert difference(VOLCANO_WAITS, old) == [(BETA, "False", "Unschedulable", "no room", "1970-01-01T00:08:20Z")]


def test_a_group_that_is_evicted_whole_is_a_target_until_it_runs_again() -> None:
    ran = condition(BETA, "True")
    evicted = difference(VOLCANO_WAITS, ran, eviction="reclaim")
    message = "all its pods are evicted, because of reclaim"
    assert evicted[1:] == [("DisruptionTarget", "True", "PreemptionByScheduler", message, "1970-01-01T00:16:40Z")]
    target = PodGroupCondition("DisruptionTarget", "True", "PreemptionByScheduler", message, last_transition=500.0)
    assert difference(VOLCANO_WAITS, ran, target) == [], "it waits"
    assert difference(VOLCANO_RUNS, ran, target) == [], "the cycle began before the pods were gone"
    again = difference(VOLCANO_RUNS, ran, target, placed=1)
    assert again[1:] == [("DisruptionTarget", "False", "Scheduled", "", "1970-01-01T00:16:40Z")]


def test_conditions_name_the_generation_that_they_are_about() -> None:
    other = PodGroupCondition("Other", "True", "x", observed_generation=2)
    assert [each.get("observedGeneration") for each in written(VOLCANO_RUNS, other, generation=3)] == [2, 3]
    assert "observedGeneration" not in written(VOLCANO_RUNS)[0]


def test_each_group_of_a_tree_says_what_holds_for_itself() -> None:
    native = NativeGroup("scheduling.k8s.io/v1alpha3")
    members = (
        CompositePodGroup("n", "all", "u", "v", min_groups=2),
        CompositePodGroup("n", "half", "u", "v", parent="all", min_groups=1),
        CompositePodGroup("n", "empty", "u", "v", parent="all"),
        *(
            PodGroup("n", name, "u", min_member=2, native=replace(native, parent=parent))
            for name, parent in (("a", "half"), ("b", "half"), ("c", "all"))
        ),
    )
    found = news_in_tree(members, Counter(a=2, b=1), GroupNews(False, "no room"))
    assert {each.name: news.has_minimum for each, news in found} == {
        **{"half": True, "empty": False},
        **{"a": True, "b": False, "c": False},
    }
