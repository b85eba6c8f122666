"""Second tries: a gang of different pods that finds no place pod by pod is packed, then searched, and placed whole."""

from __future__ import annotations

import random

import pytest

from bench.native_groups import Case, case_of, exists
from bench.second_tries import cluster_of, policy_of
from pumice.framework.plugin.policy_file import read_policy
from pumice.model.blockers import SearchCut
from pumice.placing import small_gangs
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, node, podgroup, pods, queue, resource, run

#: 3 and 6 cores on nodes of 4 and 8: pod by pod, the small ones take the large nodes.
MISSED = Case((((8, 64), (0, 0)), ((4, 64), (0, 0))), ((3, 1), (6, 1)))


def binds(case: Case, *, second_tries: bool) -> dict[str, str]:
    return run(cluster_of(case), policy_of(second_tries=second_tries)).binds


def test_a_gang_that_fits_only_in_another_order_is_placed() -> None:
    assert not binds(MISSED, second_tries=False)
    assert binds(MISSED, second_tries=True) == {"ns/g-0": "n1", "ns/g-1": "n0"}


@pytest.mark.parametrize(("dialect", "placed"), [("pumice", 2), ("volcano", 0)])
def test_they_are_on_in_our_language_alone(dialect: str, placed: int) -> None:
    plugins = [{"name": name} for name in ("gang", "predicates")]
    policy = read_policy(
        {"dialect": dialect, "actions": "allocate", "tiers": [{"plugins": plugins}]}, builtin_registry()
    )
    assert len(run(cluster_of(MISSED), policy).binds) == placed


def test_they_place_whatever_an_exact_solver_places() -> None:
    dice = random.Random(5)
    cases = [case for case in (case_of(dice) for _ in range(60)) if exists(case)]
    assert all(len(binds(case, second_tries=True)) == len(case.pods) for case in cases)
    assert not all(binds(case, second_tries=False) for case in cases)


def test_a_pod_beyond_the_minimum_may_be_refused() -> None:
    plugins = [{"name": name} for name in ("gang", "proportion", "predicates", "nodeorder")]
    second_tries = [{"name": "allocate", "arguments": {"secondTries": True}}]
    conf = {"actions": "allocate", "tiers": [{"plugins": plugins}], "configurations": second_tries}
    nodes = [node(f"n{i}", cpu=cpu) for i, cpu in enumerate((8, 8, 4, 4))]
    gang = [*pods("g", 2, cpu=3), *pods("g", 2, first=2, cpu=6)]
    found = cluster(*nodes, queue(capability=resource(cpu=12)), podgroup("g", 3, phase="Inqueue"), *gang)
    # Pod by pod, those of 3 cores take the large nodes. All four fit, but the queue may have 12 cores.
    assert run(found, read_policy(conf, builtin_registry())).binds.keys() == {"ns/g-0", "ns/g-1", "ns/g-2"}


def test_gangs_too_large_for_the_search_are_packed() -> None:
    nodes = [node(f"n{i}", cpu=8 if i < 20 else 4) for i in range(40)]
    small, large = pods("g", 20, cpu=3), pods("g", 20, first=20, cpu=6)
    found = cluster(*nodes, podgroup("g", 40, phase="Inqueue"), *small, *large)
    assert len(small + large) > small_gangs.PODS_MAX
    assert not run(found, policy_of(second_tries=False)).binds
    assert len(run(found, policy_of(second_tries=True)).binds) == 40


def test_no_search_begins_where_counting_refutes_the_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a search began")

    monkeypatch.setattr(small_gangs, "assign", fail)
    monkeypatch.setattr(small_gangs, "best_fit", fail)
    nodes = [node("n0", cpu=8), node("n1", cpu=4)]
    for needs in ((3, 10), (5, 8)):  # one pod fits nowhere; together they want more than there is
        gang = [pod for i, cpu in enumerate(needs) for pod in pods("g", 1, first=i, cpu=cpu)]
        found = run(cluster(*nodes, podgroup("g", 2, phase="Inqueue"), *gang), policy_of(second_tries=True))
        assert not found.binds and not found.outcome.faults


def test_a_search_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_gangs, "STEPS_MAX", 3)
    # Two nodes of 6 hold 3 + 3 and 2 + 2 + 2, and packing puts 3 + 2 on both.
    case = Case((((6, 64), (0, 0)), ((7, 64), (0, 0))), ((3, 1), (3, 1), (2, 1), (2, 1), (2, 1), (1, 1)))
    found = run(cluster_of(case), policy_of(second_tries=True))
    cut = [entry for entry in found.outcome.entries if isinstance(entry.finding, SearchCut)]
    assert bool(cut) != bool(found.binds)
