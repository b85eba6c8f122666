"""The queue that is placed next is chosen as if pending jobs were passed over one by one, for fewer steps."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import F64
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine import single_task
from pumice.kai.engine.budget import steps_of
from pumice.kai.engine.job_order import Entry
from pumice.kai.engine.next_queue import NextQueue
from pumice.kai.engine.parts import Part
from pumice.kai.engine.points import QueueRequest
from pumice.kai.engine.replacement import Replacement
from pumice.kai.engine.solve import solve
from pumice.kai.engine.tree_order import best_leaf
from pumice.model.events import Object
from pumice.state.store import Store
from tests.unit.kai.cluster import cycle, job, node, policy, queue, store

STEPS = {"maxSearchSteps": 2000}
POLICY = policy(("consolidation", "reclaim"), consolidation=STEPS, reclaim=STEPS)


def world(seed: int) -> Store:
    """Nodes full of running jobs, of which some have pods that wait, and pending jobs, over a tree of queues."""
    dice, parents = Random(seed), ["", "", "d0", "d1", "e0"]
    objects: list[Any] = [node(f"n{i}", 4) for i in range(4)]
    objects += [queue("d0", 8.0), queue("d1", 8.0), queue("e0", 4.0, "d0")]
    leaves = [f"q{i}" for i in range(dice.randint(3, 7))]
    for name in leaves:
        objects.append(queue(name, dice.choice((0.0, 1.0, 3.0, 5.0)), dice.choice(parents)))
    for i in range(16):
        tasks = [f"n{i // 4}", *([""] if dice.random() < 0.2 else [])]
        priority = dice.choice((10, 50))
        objects += job(f"r{i}", dice.choice(leaves), tasks, minimum=1, priority=priority, age=float(i))
    for i in range(dice.randint(8, 24)):
        size, gpus = dice.randint(1, 3), dice.choice((1, 1, 2, 3))
        objects += job(
            f"w{i}", dice.choice(leaves), [""] * size, gpus, priority=dice.choice((10, 50, 60)), age=50.0 - i
        )
    return store(*objects)


class OneByOne:
    """Chooses as KAI does, by a comparison of all queues after each pending job. ``at``: by queue, how many of them
    were passed over."""

    def __init__(self, choice: NextQueue) -> None:
        self.choice, self.at = choice, dict.fromkeys(choice._waiting.leaves, 0)
        self.passed_over = 0

    def choose(self) -> int:
        entries = self.choice._entries
        while True:
            pending: dict[int, Entry] = {}
            requests = {}
            for leaf in {**self.at, **entries}:
                request = self.request(leaf, pending)
                if request is not None:
                    requests[leaf] = QueueRequest(leaf, request)
            leaf = best_leaf(self.choice._ssn, requests)
            if leaf not in pending:
                return leaf
            self.at[leaf] += 1
            self.passed_over += 1

    def request(self, leaf: int, pending: dict[int, Entry]) -> F64 | None:
        waiting, entries = self.choice._waiting.line(leaf), self.choice._entries.get(leaf)
        while self.at.get(leaf, 0) < len(waiting) and waiting[self.at[leaf]][1] in self.choice._own:
            self.at[leaf] += 1
        at = self.at.get(leaf, 0)
        if at < len(waiting) and (not entries or waiting[at] < entries[-1]):
            pending[leaf] = waiting[at]
            return np.array(self.choice._waiting.request(waiting[at][1]))
        return self.choice._request(entries[-1][1]) if entries else None


class Compared:
    """Compares each choice with that of passing over one by one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plain: list[OneByOne] = []
        self.choices = 0
        choose = NextQueue.choose

        def chosen(choice: NextQueue) -> int:
            if not self.plain or self.plain[-1].choice is not choice:
                self.plain.append(OneByOne(choice))
            wanted, leaf = self.plain[-1].choose(), choose(choice)
            # Below 0: the search was cut.
            assert leaf in (wanted, -1)
            self.choices += 1
            return leaf

        monkeypatch.setattr(NextQueue, "choose", chosen)


@pytest.mark.parametrize("seed", range(40))
def test_each_choice_is_that_of_passing_over_pending_jobs_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = Compared(monkeypatch)
    cycle(world(seed), POLICY)
    assert compared.choices


def test_the_worlds_have_pending_jobs_that_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Compared(monkeypatch)
    for seed in range(10):
        cycle(world(seed), POLICY)
    assert sum(plain.passed_over > 0 for plain in compared.plain) > 0.1 * len(compared.plain)


@pytest.mark.parametrize("queues", [["storm"], ["mine"], ["old0"]])
@pytest.mark.parametrize("parents", [("", ""), ("d0", "d1")])
def test_pending_jobs_of_others_cost_a_search_once_and_not_once_for_each_set_of_victims(
    queues: list[str], parents: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets, steps = _searched(storm(queues, 40, parents), monkeypatch)
    _, calm = _searched(storm(queues, 0, parents), monkeypatch)
    assert sets > 10
    # Each is passed over once, for the steps of two comparisons, and more of siblings.
    assert steps < calm + 6 * 40


def storm(queues: list[str], jobs: int, parents: tuple[str, str]) -> Store:
    """A gang for which 16 pods of two queues leave one by one, and pending jobs of unlike requests before it."""
    objects: list[Object] = [node(f"n{i}", 4) for i in range(8)]
    objects += [queue(name, quota) for name, quota in zip(parents, (64.0, 0.0), strict=True) if name]
    objects += [queue(name, 64.0, parents[0]) for name in ("mine", "storm")]
    objects += [queue(name, 0.0, parents[1]) for name in ("old0", "old1")]
    for i in range(32):
        objects += job(f"r{i}", f"old{i % 2}", [f"n{i // 4}"], priority=10, age=float(i))
    for i in range(jobs):
        objects += job(f"s{i:02}", queues[i % len(queues)], ["", ""], 5 + i, priority=60, age=100.0 - i)
    return store(*objects, *job("mine", "mine", [""] * 8, 2, priority=50))


def _searched(found: Store, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return how many sets of victims the search for the gang that fits tries, and how many steps it takes."""
    steps, sets, solved, run = list[int](), list[int](), solve, Replacement.run

    def counted(ssn: Session, stmt: Statement, part: Part, *rest: Any) -> Any:
        solution = solved(ssn, stmt, part, *rest)
        if ssn.tables.jobs.uids[part.job].endswith("mine"):
            steps.append(steps_of(ssn).taken)
        return solution

    def ran(placement: Replacement) -> bool:
        sets.append(placement._part.job)
        return run(placement)

    with monkeypatch.context() as patched:
        patched.setattr(single_task, "solve", counted)
        patched.setattr(Replacement, "run", ran)
        assert cycle(found, policy(("reclaim",))).evicted
    return len(sets), steps[0]
