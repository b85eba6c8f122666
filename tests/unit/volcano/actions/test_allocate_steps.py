"""allocate: attempts on all nodes that fail take steps, so that a tenant's unlike gangs cannot fill a cycle."""

from __future__ import annotations

import pytest

from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.model.blockers import SearchCut
from pumice.model.decisions import Bind
from pumice.model.events import Object
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, policy, queue

#: An attempt of a gang of two kinds, of which one is placed and taken back, takes 33.
STEPS = 100
CONF = """\
actions: allocate
tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]
configurations: [{name: allocate, arguments: {maxSearchSteps: STEPS}}]
"""


def gang(name: str, *cores: float, namespace: str = "storm", of: str = "q", at: float = 0) -> list[Object]:
    group = podgroup(name, len(cores), of, namespace=namespace, phase="Inqueue", creation=at)
    return [group, *(pod(f"{name}-{i}", name, cpu, namespace=namespace) for i, cpu in enumerate(cores))]


def storm(count: int, unlike: float = 0.01) -> list[Object]:
    """Gangs of which one pod fits nowhere."""
    return [each for i in range(count) for each in gang(f"s{i}", 1 + unlike * i, 9, at=float(i))]


def store_of(*jobs: list[Object]) -> Store:
    return cluster(*(node(f"n{i}", 4) for i in range(3)), queue("q"), queue("r"), *jobs)


def cycle(store: Store, steps: int = STEPS, memo: Memo | None = None) -> tuple[set[str], Outcome]:
    """Return the pods that one cycle binds, and what it reports. Nothing is carried out."""
    planner = ListPlanner()
    found = policy(CONF.replace("STEPS", str(steps)))
    outcome = run_cycle(store.snapshot(), found, 100.0, planner, memo=memo)
    store.remember(outcome.writes)
    return {each.pod for each in planner.taken if isinstance(each, Bind)}, outcome


def cut(outcome: Outcome) -> list[str]:
    """Return the jobs that were not tried."""
    return sorted(each.subject for each in outcome.entries if isinstance(each.finding, SearchCut))


def test_unlike_gangs_that_fail_are_cut_and_go_on_in_the_next_cycle() -> None:
    store = store_of(storm(9))
    cuts = [cut(cycle(store)[1]) for _ in range(3)]
    assert cuts[0] == [f"storm/s{i}" for i in range(4, 9)]
    assert cuts[1] == ["storm/s0", "storm/s1", "storm/s2", "storm/s3", "storm/s8"]
    assert "storm/s8" not in cuts[2]


def test_equal_gangs_take_the_steps_of_one() -> None:
    assert cut(cycle(store_of(storm(30, unlike=0)))[1]) == []


@pytest.mark.parametrize("memo", [Memo(), Memo(keeps=False)])
def test_what_is_remembered_takes_the_same_steps(memo: Memo) -> None:
    store, plain = store_of(storm(9), storm_of_equal("t", 3)), store_of(storm(9), storm_of_equal("t", 3))
    for _ in range(3):
        assert cut(cycle(store, memo=memo)[1]) == cut(cycle(plain, memo=Memo())[1])


def storm_of_equal(name: str, count: int) -> list[Object]:
    return [each for i in range(count) for each in gang(f"{name}{i}", 2, 9, at=20.0 + i)]


def test_gangs_that_are_placed_take_no_steps() -> None:
    fits = [gang(f"f{i}", 0.1 + 0.01 * i, 0.2) for i in range(20)]
    bound, outcome = cycle(store_of(*fits))
    assert len(bound) == 40
    assert cut(outcome) == []


@pytest.mark.parametrize("of", ["q", "r"])
def test_a_gang_of_another_tenant_has_steps_of_its_own(of: str) -> None:
    other = gang("fits", 1, 1, namespace="other", of=of, at=99.0)
    bound, outcome = cycle(store_of(storm(9), other))
    assert bound == {"other/fits-0", "other/fits-1"}
    assert cut(outcome)


def test_what_one_queue_leaves_another_may_use() -> None:
    """Each of the two accounts has half of the steps; the second one needs none of its own."""
    fits = gang("fits", 1, 1, namespace="other", of="r")
    assert len(cut(cycle(store_of(storm(9), fits))[1])) == 5


def test_without_a_limit_all_are_tried() -> None:
    assert cut(cycle(store_of(storm(9)), steps=0)[1]) == []
