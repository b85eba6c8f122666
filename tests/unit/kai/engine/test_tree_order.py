"""Queues kept in order are chosen as if all were compared for each choice."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pumice.kai.engine import tree_order
from pumice.state.store import Store
from tests.unit.kai.cluster import PLUGINS, cycle, job, node, opened, policy, queue, store


def world(seed: int) -> Store:
    """Jobs of one to three pods over a tree of queues with few distinct quotas, so that many have equal keys."""
    dice = Random(seed)
    objects: list[Any] = [node(f"n{i}", dice.randint(1, 8)) for i in range(3)]
    names: list[str] = []
    for i in range(dice.randint(2, 9)):
        parent = dice.choice(["", *names[:2]]) if i > 1 else ""
        limit = dice.choice((None, None, 1.0, 4.0))
        more = {"priority": dice.choice((100, 100, 200)), "creation": float(dice.randint(0, 2))}
        objects.append(queue(f"q{i}", dice.choice((None, 0.0, 2.0)), parent, limit=limit, **more))
        names.append(f"q{i}")
    for i in range(dice.randint(4, 20)):
        size, gpus = dice.randint(1, 3), dice.choice((0, 1, 1, 2))
        objects += job(f"j{i}", dice.choice(names), [""] * size, gpus, minimum=dice.randint(1, size), age=float(i))
    return store(*objects)


class Compared:
    """Compares each choice of a ranking with that of all queues."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.choices, self.ranked = 0, 0
        plain, first = tree_order.TreeOrder._best_leaf, tree_order.Ranking.first

        def ranked(ranking: tree_order.Ranking) -> int:
            leaf = first(ranking)
            self.ranked += leaf >= 0
            return leaf

        def chosen(order: tree_order.TreeOrder) -> int:
            leaf, self.choices = plain(order), self.choices + 1
            requests = {each: order._request(each, line) for each, line in order._lines.items()}
            assert leaf == tree_order.best_leaf(order._ssn, requests)
            return leaf

        monkeypatch.setattr(tree_order.Ranking, "first", ranked)
        monkeypatch.setattr(tree_order.TreeOrder, "_best_leaf", chosen)


@pytest.mark.parametrize("seed", range(60))
def test_each_choice_is_that_of_comparing_all_queues(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Compared(monkeypatch)
    cycle(world(seed), policy())
    assert compared.choices


def test_most_choices_need_no_comparison_in_pairs_and_some_do(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Compared(monkeypatch)
    for seed in range(30):
        cycle(world(seed), policy())
    assert 0.5 * compared.choices < compared.ranked < compared.choices


def test_queues_are_not_kept_in_order_without_keys() -> None:
    assert tree_order.Ranking.applies(opened(world(1), policy()))
    without = policy(plugins=[name for name in PLUGINS if name != "proportion"])
    assert not tree_order.Ranking.applies(opened(world(1), without))
