"""A hook that raises, or answers what its point does not take, is a fault of its plugin, in random clusters.

No cycle ends with an error, and no other plugin is blamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import pytest

from pumice.api import plugin
from pumice.cycle import run_cycle
from pumice.framework.plugin.point import Point
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.kai.table import KAI
from pumice.model.events import Seen
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.clusters import small_cluster
from pumice.testing.dialects import SURROUNDINGS
from pumice.volcano.table import VOLCANO

NOW = 1_000_000.0
SEEDS = range(240)
#: Worlds that are tried at least.
ENOUGH = 3
ACTIONS = {
    "volcano": "enqueue, allocate, preempt, reclaim, gangpreempt, gangreclaim, backfill, shuffle, kai/consolidation",
    "kai": "allocate, consolidation, reclaim, preempt, stalegangeviction",
}
DIALECTS = {"volcano": VOLCANO, "kai": KAI}
#: Points that the clusters of tests/unit/framework/every_point.py and of the test of KAI's do not ask; each form of all
#: others is asked there.
ASKED_HERE = {"volcano": {"consolidate_victims"}, "kai": {"keeps_placement"}}


def raising() -> Any:
    raise KeyError("user")


def generator() -> Iterator[float]:
    yield 1.0


ANSWERS: dict[str, Callable[[], Any]] = {
    "raising": raising,
    "object": object,
    "text": lambda: "x",
    "generator": generator,
    "wrong shape": lambda: np.zeros((7, 7)),
    "objects": lambda: np.array([object(), None], dtype=object),
    "NaN": lambda: float("nan"),
}


def forms(dialect: str) -> Iterator[Any]:
    for name, point in sorted(DIALECTS[dialect].points.items()):
        for form in point.forms if name in ASKED_HERE[dialect] else ():
            yield pytest.param(dialect, name, form, id=f"{dialect} {name} ({', '.join(form)})")


def hook_of(form: tuple[str, ...], answer: Callable[[], Any], asked: list[int]) -> Callable[..., Any]:
    """A hook with these parameters, as an author writes it."""

    def say() -> Any:
        asked.append(1)
        return answer()

    names = [f"a{i}" for i in range(len(form))]
    found: Callable[..., Any] = eval(f"lambda {', '.join(['ssn', *names])}: say()", {"say": say})
    found.__annotations__ = {"ssn": "Session", **dict(zip(names, form, strict=True))}
    found.__name__ = found.__qualname__ = "mine"
    return found


def policy(dialect: str, point: Point[Any, Any, Any], form: tuple[str, ...], answer: Any, asked: list[int]) -> Policy:
    mine = plugin("mine")(point(hook_of(form, answer, asked)))
    named = [{"name": "mine"}, *({"name": name} for name in SURROUNDINGS[dialect].beside)]
    conf = {"dialect": dialect, "actions": ACTIONS[dialect], "tiers": [{"plugins": named}]}
    return read_policy(conf, builtin_registry().with_plugins(dialect, [mine]))


@lru_cache
def cluster(dialect: str, seed: int) -> Store:
    store, around = Store(scheduler_names=("volcano", "kai-scheduler")), SURROUNDINGS[dialect]
    for obj in [*small_cluster(Random(seed), alter=around.alter(None)), *around.more]:
        store.apply(Seen(obj))
    return store


@pytest.mark.parametrize(("dialect", "name", "form"), [*forms("volcano"), *forms("kai")])
def test_a_failure_is_a_fault_of_its_plugin(dialect: str, name: str, form: tuple[str, ...]) -> None:
    point, ever = DIALECTS[dialect].points[name], False
    # Consolidation is the last to be asked, in one world of fifty.
    for seed in SEEDS:
        snapshot = cluster(dialect, seed).snapshot()
        for what, answer in ANSWERS.items():
            asked: list[int] = []
            outcome = run_cycle(snapshot, policy(dialect, point, form, answer, asked), NOW, ListPlanner())
            assert {fault.plugin for fault in outcome.faults} <= {"mine"}, f"seed {seed}, {what}"
            # A world that does not ask with the first answer does not with the others.
            if not asked:
                break
            ever = True
            if what == "raising":
                assert outcome.faults, f"seed {seed}: it was asked and failed"
                assert outcome.faults[0].hook == "mine"
        if ever and seed >= ENOUGH:
            break
    assert ever, "does a world ask this point?"
