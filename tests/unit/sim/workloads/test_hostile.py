"""What a tenant may create: it is read as it is meant, and the figures measure all of it."""

from __future__ import annotations

import pytest
from msgspec.json import encode

from bench.figures import FIGURES
from pumice.cli.commands import bench
from pumice.cycle import run_cycle
from pumice.model.decisions import Bind
from pumice.model.devices.claims import ResourceClaim
from pumice.model.events import Seen
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.fuzz.dice import Dice
from pumice.sim.workloads.hostile import HOSTILE, KAI, SCHEDULERS, VOLCANO, build_hostile
from pumice.sim.workloads.hostile_gangs import UNLIKE
from pumice.state.store import Store

DIALECTS = {
    VOLCANO: 'actions: "allocate"\n'
    "tiers:\n- plugins: [{name: gang}, {name: predicates}, {name: network-topology-aware}]",
    KAI: 'dialect: kai\nactions: "allocate"\n'
    "tiers:\n- plugins: [{name: predicates}, {name: topology}, {name: dynamicresources}]",
}
EACH = [(name, language) for name, scenario in HOSTILE.items() for language in scenario.languages]
#: Of gangs that differ in one field, those of some kinds fit.
FITTING = {f"hostile-{kind}" for kind in {*UNLIKE} - {"one-too-large", "all-too-large", "queues"}}
HOPELESS = [each for each in EACH if each[0] not in ("hostile-lists", "hostile-cel", *FITTING)]


def test_the_figures_measure_each_scenario_in_each_language() -> None:
    wanted = {name if language == VOLCANO else f"kai-{name}" for name, language in EACH}
    assert {*bench.HOSTILE, *bench.KAI_HOSTILE} == wanted
    # Gangs that differ in one field are swept by hand: 56 figures would take an hour.
    alone = {f"{prefix}hostile-{kind}{full}" for kind in UNLIKE for prefix in ("", "kai-") for full in ("", "-full")}
    assert {figure.name for figure in FIGURES if "hostile" in figure.name} == wanted - alone


@pytest.mark.parametrize(("scenario", "language"), EACH)
def test_pods_belong_to_groups_of_their_size(scenario: str, language: str) -> None:
    made = list(build_hostile(scenario, language, 20, 40))
    groups = {each.key: each for each in made if isinstance(each, PodGroup)}
    pods = [each for each in made if isinstance(each, Pod)]
    assert pods or "no-pods" in scenario
    for key, group in groups.items():
        count = sum(pod.group_key == key for pod in pods)
        assert count == group.min_member or any(kind in scenario for kind in ("elastic", "no-pods", "mixed"))
    claims = {each.key for each in made if isinstance(each, ResourceClaim)}
    assert bool(claims) == HOSTILE[scenario].devices


@pytest.mark.parametrize(("scenario", "language"), HOPELESS)
def test_no_pod_of_the_tenant_can_be_placed(scenario: str, language: str) -> None:
    store, planner = Store(scheduler_names=(SCHEDULERS[language],)), ListPlanner()
    for obj in build_hostile(scenario, language, 12, 9):
        store.apply(Seen(obj))
    run_cycle(store.snapshot(), policy_of(DIALECTS[language], builtin_registry()), 1_704_070_000.0, planner)
    assert not [each for each in planner.taken if isinstance(each, Bind)]


@pytest.mark.parametrize("kind", UNLIKE)
def test_gangs_of_a_kind_differ(kind: str) -> None:
    # Queues are few, so that gangs repeat there; sizes of elastic gangs differ in what their pods ask for.
    made = [UNLIKE[kind](Dice(1), i) for i in range(50)]
    assert len({encode(each) for each in made}) >= (3 if kind == "queues" else 45)
    assert made == [UNLIKE[kind](Dice(1), i) for i in range(50)]


@pytest.mark.parametrize(("scenario", "nodes"), [("hostile-none", 1), ("hostile-lists", 0)])
def test_what_makes_no_workload_is_refused(scenario: str, nodes: int) -> None:
    with pytest.raises(ValueError, match="wanted"):
        list(build_hostile(scenario, VOLCANO, nodes, 1))


def test_a_scenario_of_one_language_is_refused_in_the_other() -> None:
    with pytest.raises(ValueError, match="hostile-tries"):
        list(build_hostile("hostile-tries", VOLCANO, 1, 1))
