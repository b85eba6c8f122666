"""scoredSearch of reclaim: placements of a whole gang across nodes, within what queues have to give back."""

from __future__ import annotations

import random

import pytest

from bench.reclaim_search import Case, case_of, cluster_of, makes_room, policy_of, solvable
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.blockers import CannotEvict, SearchCut
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import run
from pumice.volcano.eviction import scored_search

#: The first task takes the first node, which is the only one that the second could use.
LARGE_LAST = Case(nodes=(8, 4), held=((4, 4), (2, 2)), kept=(0, 0), deserved=0, gang=(2, 8))
#: Any two of four victims may leave: a third would take queue a below its share.
TWO_VICTIMS = Case(nodes=(8, 8), held=((4, 4), (4, 4)), kept=(0, 0), deserved=11, gang=(4, 4))


def limited(steps: int) -> Policy:
    """Return the policy of ``policy_of`` with a bound on the steps of the search."""
    tiers = [
        {"plugins": [{"name": name} for name in tier]} for tier in (("priority", "gang"), ("predicates", "capacity"))
    ]
    switch = {"name": "reclaim", "arguments": {"scoredSearch": True, "maxSearchSteps": steps}}
    return read_policy({"actions": "reclaim", "tiers": tiers, "configurations": [switch]}, builtin_registry())


def test_a_small_task_leaves_the_large_node_to_a_large_one() -> None:
    assert solvable(LARGE_LAST)
    assert not makes_room(LARGE_LAST, policy_of(scored=False))
    found = run(cluster_of(LARGE_LAST), policy_of(scored=True))
    assert found.pipelined == {"ns/g-0": "n1", "ns/g-1": "n0"}
    # One of the two pods on the small node is enough.
    assert len(found.evicted) == 3


def test_no_more_leaves_than_a_queue_has_to_give_back() -> None:
    found = run(cluster_of(TWO_VICTIMS), policy_of(scored=True))
    assert len(found.evicted) == 2 and len(found.pipelined) == 2


def test_where_there_is_no_room_nothing_leaves_and_the_reason_is_that_of_the_plain_search() -> None:
    none = Case(nodes=(4, 4), held=((4,), (4,)), kept=(0, 0), deserved=7, gang=(4, 4))
    assert not solvable(none)
    plain, scored = (run(cluster_of(none), policy_of(scored=on)) for on in (False, True))
    assert scored.evicted == [] and scored.pipelined == {}
    reasons = [[entry.finding for entry in each.outcome.entries] for each in (plain, scored)]
    assert reasons[0] == reasons[1] and isinstance(reasons[0][-1], CannotEvict)


def test_a_large_gang_is_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored_search, "TASKS_MAX", 1)
    assert not makes_room(LARGE_LAST, policy_of(scored=True))


def test_the_search_ends_at_its_bound() -> None:
    found = run(cluster_of(LARGE_LAST), limited(150))
    assert found.evicted == []
    assert any(isinstance(entry.finding, SearchCut) for entry in found.outcome.entries)
    assert len(run(cluster_of(LARGE_LAST), limited(20_000)).pipelined) == 2


def test_of_random_gangs_most_that_can_get_room_do() -> None:
    dice, policies = random.Random(7), [policy_of(scored=on) for on in (False, True)]
    cases = [case for case in (case_of(dice) for _ in range(60)) if solvable(case)]
    plain, scored = ([makes_room(case, policy) for case in cases] for policy in policies)
    assert sum(scored) >= 0.85 * len(cases) > sum(plain)
    assert all(now or not before for before, now in zip(plain, scored, strict=True)), "a gang lost its room"
