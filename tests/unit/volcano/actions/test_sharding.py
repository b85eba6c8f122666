"""Shards in every action: hard ones are kept to, in soft ones the own nodes come first (spec 05 §15)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.columns.snapshot import Shard
from pumice.model.events import Seen
from pumice.state.store import Store
from pumice.testing.build import cluster, node, podgroup, pods, queue, run
from tests.unit.volcano.evicting import LEVELS, gang

CONF = """
actions: "{action}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}, {{name: predicates}}, {{name: proportion}}]
configurations:
- {{name: preempt, arguments: {{enableTopologyAwarePreemption: {aware}, minCandidateNodesPercentage: 100}}}}
"""
#: Actions, and whether they compare the harm that is done.
BY_TASK = [("preempt", False), ("preempt", True), ("reclaim", False)]
EVICTING = [*BY_TASK, ("gangpreempt", False), ("gangreclaim", False)]


def full(action: str) -> Store:
    """Two nodes that pods fill who may have to leave; the node of the other shard comes first by row."""
    theirs = "other" if "reclaim" in action else "default"
    low = [each for i in range(2) for each in gang(f"low{i}", 4, of=theirs, on=f"n{i}", creation=float(i))]
    return cluster(
        LEVELS, [queue("default"), queue("other")], [node(f"n{i}", 4, creation=float(i)) for i in range(2)], low
    )


def ran(state: Store, action: str, aware: bool, *, hard: bool) -> Any:
    state.shard = Shard(frozenset({"n1"}), hard)
    return run(state, CONF.format(action=action, aware=str(aware).lower()))


@pytest.mark.parametrize(
    ("action", "aware", "hard"), [*((*each, True) for each in EVICTING), *((*each, False) for each in BY_TASK)]
)
def test_others_leave_the_own_shard_first(action: str, aware: bool, hard: bool) -> None:
    """In a soft shard gang actions choose victims from a whole domain, as in Volcano."""
    state = full(action)
    for each in gang("high", 2, 2, level="high", creation=9.0):
        state.apply(Seen(each))
    found = ran(state, action, aware, hard=hard)
    assert set(found.pipelined.values()) == {"n1"}
    assert {key[:-2] for key in found.evicted} == {"ns/low1"}


@pytest.mark.parametrize(("action", "aware"), EVICTING)
def test_nobody_leaves_another_shard_where_that_is_hard(action: str, aware: bool) -> None:
    """Six pods do not fit the own shard: all or nothing."""
    state = full(action)
    for each in gang("high", 6, 6, level="high", creation=9.0):
        state.apply(Seen(each))
    found = ran(state, action, aware, hard=True)
    assert (found.evicted, found.pipelined) == ([], {})


@pytest.mark.parametrize("action", ["allocate", "backfill"])
@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
def test_pods_go_to_the_own_shard_first(action: str, hard: bool) -> None:
    count = 1 if action == "allocate" else 3
    more = {"cpu": 0, "memory": 0} if action == "backfill" else {}
    state = cluster(
        [node(f"n{i}", 1, creation=float(i)) for i in range(2)],
        podgroup("g", 1, phase="Inqueue"),
        pods("g", count, **more),
    )
    assert set(ran(state, action, False, hard=hard).binds.values()) == {"n1"}


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
@pytest.mark.parametrize("hard", [False, True])
def test_gangs_go_to_the_own_shard_where_victims_leave_both(action: str, hard: bool) -> None:
    """In a soft shard the bundle of one job may be on both nodes; the gang is promised the own one all the same."""
    theirs = "other" if action == "gangreclaim" else "default"
    low = gang("low", 4, of=theirs)
    low[1:] = [replace(each, node_name=f"n{i % 2}", phase="Running") for i, each in enumerate(low[1:])]
    state = cluster(
        LEVELS,
        [queue("default"), queue("other")],
        [node(f"n{i}", 2, creation=float(i)) for i in range(2)],
        low,
        gang("high", 2, 2, level="high", creation=9.0),
    )
    found = ran(state, action, False, hard=hard)
    assert found.pipelined == {"ns/high-0": "n1", "ns/high-1": "n1"}
    assert sorted(found.evicted) == (["ns/low-1", "ns/low-3"] if hard else [f"ns/low-{i}" for i in range(4)])
