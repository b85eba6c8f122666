"""Admitted groups without pods hold their queue for a time at most, if the policy says so (volcano#2143, #2633)."""

from __future__ import annotations

from random import Random

import pytest

from pumice.columns.jobs import INQUEUE_PHASE
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Seen
from pumice.reasons.hints import hints
from pumice.reasons.nearest import NearestBlockers
from pumice.state.store import Store
from pumice.testing.build import Ran, cluster, node, podgroup, pods, policy, queue, resource, run
from tests.plain_models import MANY_WORLDS

NOW = 1_000_000.0
PLUGINS = ("proportion", "capacity", "overcommit")
CONF = "actions: enqueue\ntiers: [{plugins: [{name: gang, arguments: {emptyGroupsHoldFor: 10m}}, {name: %s}]}]"
FOR_EVER = "actions: enqueue\ntiers: [{plugins: [{name: gang}, {name: %s}]}]"


def step(store: Store, under: Policy, memo: Memo, after_s: float) -> Ran:
    ran = run(store, under, memo=memo, now=NOW + after_s)
    store.remember(ran.outcome.writes)
    return ran


def is_admitted(ran: Ran, name: str) -> bool:
    jobs = ran.outcome.tables.jobs
    return bool(jobs.phase[jobs.uids.tolist().index(f"ns/{name}")] == INQUEUE_PHASE)


def crowded() -> Store:
    """Make a queue of 4 cores that an admitted group without pods fills, and a group that waits for admission."""
    empty = podgroup("empty", 1, min_resources=resource(4), phase="Inqueue")
    waits = podgroup("waits", 1, min_resources=resource(4), creation=9.0)
    return cluster(node("n", 4), queue(capability=resource(4)), empty, waits)


@pytest.mark.parametrize("name", PLUGINS)
def test_room_is_given_back_after_the_time(name: str) -> None:
    store, memo, under = crowded(), Memo(), policy(CONF % name)
    seen = [is_admitted(step(store, under, memo, at), "waits") for at in (0.0, 599.0, 600.0)]
    assert seen == [False, False, True]


@pytest.mark.parametrize("name", PLUGINS)
def test_without_the_switch_it_is_kept_and_the_hint_names_the_holder(name: str) -> None:
    store, memo, under = crowded(), Memo(), policy(FOR_EVER % name)
    for at in (0.0, 600.0, 1e6):
        ran = step(store, under, memo, at)
        assert not is_admitted(ran, "waits")
    assert "ns/empty, which has no pods" in hints(NearestBlockers(ran.outcome))["ns/waits"]


def test_a_group_whose_pods_come_holds_its_queue_again() -> None:
    store, memo, under = crowded(), Memo(), policy(CONF % "capacity")
    step(store, under, memo, 0.0)
    for each in pods("empty", 1, cpu=4):
        store.apply(Seen(each))
    assert not is_admitted(step(store, under, memo, 900.0), "waits")


def test_the_time_begins_when_a_group_is_admitted_and_the_cycle_is_due_when_it_ends() -> None:
    store = cluster(node("n", 4), podgroup("g", 1, min_resources=resource(4)))
    assert step(store, policy(CONF % PLUGINS[0]), Memo(), 0.0).outcome.wakes_at == NOW + 600.0


@MANY_WORLDS
def test_what_is_admitted_is_what_a_plain_sum_admits(seeds: range) -> None:
    """Groups in order of creation, admitted while what those before hold and ask for is within the limit."""
    under, refused, freed = policy(CONF % "capacity"), 0, 0
    for seed in seeds:
        dice = Random(seed)
        limit, groups = dice.randint(4, 12), list[tuple[str, int, bool, bool]]()
        for i in range(dice.randint(2, 6)):
            groups.append((f"g{i}", dice.randint(1, 4), dice.random() < 0.6, dice.random() < 0.4))
        store, memo = cluster(node("n", 99), queue(capability=resource(limit))), Memo()
        for i, (name, cpu, inqueue, has_pods) in enumerate(groups):
            phase = "Inqueue" if inqueue else "Pending"
            store.apply(Seen(podgroup(name, 1, min_resources=resource(cpu), phase=phase, creation=float(i))))
            for each in pods(name, 1, cpu=cpu) if has_pods else ():
                store.apply(Seen(each))
        step(store, under, memo, 0.0)
        ran = run(store, under, memo=memo, now=NOW + 900.0)
        held = sum(cpu for _, cpu, inqueue, has_pods in groups if inqueue and has_pods)
        everything = sum(cpu for _, cpu, inqueue, _ in groups if inqueue)
        for name, cpu, inqueue, _ in groups:
            if inqueue:
                continue
            fits = held + cpu <= limit
            assert is_admitted(ran, name) == fits, (seed, name)
            freed += fits and everything + cpu > limit
            held, everything, refused = held + cpu * fits, everything + cpu * fits, refused + (not fits)
    assert refused > len(seeds) / 10
    assert freed > len(seeds) / 10
