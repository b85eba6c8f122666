"""Jobs that make room as the one before them did fare as if each was searched for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from pumice.framework.plugin.policy_file import Policy
from pumice.kai.engine.counters import TriedSets
from pumice.kai.engine.placement.best_nodes import BestNodes
from pumice.kai.engine.single_task import Following
from pumice.model.events import Object
from pumice.state.store import Store
from tests.unit.kai.cluster import PLUGINS, Ran, cycle, job, node, policy, queue, store

WORLDS = 10
CONSIDERATE = (*PLUGINS, {"name": "minruntime", "arguments": {"defaultReclaimMinRuntime": "3s"}})


def result(ran: Ran) -> tuple[Any, ...]:
    counts: Counter[Hashable] = Counter()
    for key, count in ran.outcome.trace.counts.items():
        # Repeating takes fewer steps, which is its purpose.
        counts[structs.replace(key, steps=0) if isinstance(key, TriedSets) else key] += count
    return ran.decisions, ran.states, list(ran.outcome.entries), ran.outcome.writes, counts


def searched_for(
    monkeypatch: pytest.MonkeyPatch, found: Store, under: Policy | None = None, refuses: Iterable[str] = ()
) -> Ran:
    """A cycle in which no solution is repeated, and the only node with room is weighed like any other."""
    with monkeypatch.context() as patch:
        patch.setattr(Following, "_is_led", lambda self, part: False)
        patch.setattr(BestNodes, "_sole", lambda self, cls, within: -1)
        return cycle(found, under, refuses)


def count_followers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The victims of those that followed, as they come; -1 of those that had to be searched for after all."""
    followed: list[int] = []
    follow = Following._follow
    monkeypatch.setattr(Following, "_follow", lambda self, *args: followed.append(follow(self, *args)) or followed[-1])
    return followed


def full_nodes(count: int, of: str, **more: Any) -> list[Object]:
    """Nodes of four GPUs, each of which a job of one has."""
    found: list[Object] = [node(f"n{i}", 4) for i in range(count)]
    for i in range(4 * count):
        found += job(f"old{i:02d}", of, [f"n{i // 4}"], age=100 - i, **more)
    return found


def waiting(count: int, of: str, **more: Any) -> list[Object]:
    return [each for i in range(count) for each in job(f"new{i}", of, [""], age=10 - i, **more)]


def test_equal_reclaimers_follow_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found = store(queue("p", 4), queue("q", 8), *full_nodes(3, "p"), *waiting(6, "q"))
    twin = searched_for(monkeypatch, found)
    followed = count_followers(monkeypatch)
    ran = cycle(found)
    assert ran.evicted == [f"old{i:02d}-0" for i in range(11, 5, -1)]
    assert result(ran) == result(twin)
    assert len(followed) == 5
    assert min(followed) >= 0


def test_equal_preemptors_follow_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found = store(queue("q", 12), *full_nodes(3, "q"), *waiting(6, "q", priority=100))
    twin = searched_for(monkeypatch, found)
    followed = count_followers(monkeypatch)
    ran = cycle(found)
    assert len(ran.evicted) == 6
    assert result(ran) == result(twin)
    assert len(followed) == 5
    assert min(followed) >= 0


def test_nobody_follows_beyond_the_share_of_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    found = store(queue("p", 10), queue("q", 2), *full_nodes(3, "p"), *waiting(6, "q"))
    followed = count_followers(monkeypatch)
    ran = cycle(found)
    assert len(ran.evicted) == 2
    assert len(followed) == 1


def test_where_one_leaves_room_behind_nobody_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    big = [each for i in range(3) for each in (node(f"n{i}", 4), *job(f"old{i}", "p", [f"n{i}"], gpus=4, age=9 - i))]
    found = store(queue("p", 4), queue("q", 8), *big, *waiting(6, "q"))
    twin = searched_for(monkeypatch, found)
    followed = count_followers(monkeypatch)
    assert result(cycle(found)) == result(twin)
    assert followed == []


def test_after_a_refusal_the_next_one_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found, refuses = store(queue("p", 4), queue("q", 8), *full_nodes(3, "p"), *waiting(5, "q")), ["old10-0"]
    twin = searched_for(monkeypatch, found, refuses=refuses)
    followed = count_followers(monkeypatch)
    ran = cycle(found, refuses=refuses)
    assert result(ran) == result(twin)
    assert followed[0] >= 0
    assert followed[1] == -1, "who stayed goes first, and leaves no room for both"


def random_world(seed: int) -> list[Object]:
    """Full nodes whose jobs differ in size, age and priority, in three queues, and jobs that want their places."""
    dice = np.random.default_rng(seed)
    found: list[Object] = [queue("p", int(dice.integers(0, 6))), queue("q", int(dice.integers(2, 12)))]
    found.append(queue("r", int(dice.integers(0, 6))))
    for i in range(5):
        found.append(node(f"n{i}", 4))
        left, several = 4, dice.random() < 0.3
        while left:
            gpus = int(dice.choice([1, 1, 2])) if left > 1 and several else 1
            of, level = str(dice.choice(["p", "p", "p", "q", "r"])), int(dice.choice([40, 50, 50]))
            age = int(dice.integers(0, 6))
            found += job(f"old{i}{left}", of, [f"n{i}"], gpus=gpus, age=age, priority=level, last_start=1e6 - age)
            left -= gpus
    kinds = dice.choice([1, 1, 1, 1, 2], size=14).tolist()
    of = dice.choice(["q", "q", "q", "r"], size=14).tolist()
    for i, gpus in enumerate(kinds):
        tasks = [""] * int(dice.choice([1, 1, 1, 1, 2]))
        level = int(dice.choice([50, 50, 50, 60, 100]))
        minimum = 1 if dice.random() < 0.3 else None
        found += job(
            f"new{i:02d}", of[i], tasks, gpus=gpus, age=int(dice.integers(0, 3)), priority=level, minimum=minimum
        )
    return found


def test_in_any_world_they_fare_as_if_each_was_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = [policy(), policy(("allocate", "preempt", "reclaim"), CONSIDERATE)]
    followed = count_followers(monkeypatch)
    for seed in range(WORLDS):
        found, under = store(*random_world(seed)), policies[seed % 2]
        assert result(cycle(found, under)) == result(searched_for(monkeypatch, found, under)), f"seed {seed}"
    assert sum(row >= 0 for row in followed) >= WORLDS
    assert -1 in followed
