"""Decisions do not depend on the rows that a store gives to objects, and so not on the order in which it met them."""

from __future__ import annotations

from random import Random
from typing import cast

import pytest
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.decisions import Bind
from pumice.model.events import Object, Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import Pod
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.fuzz.case import FuzzCase, draw
from pumice.sim.scenes.manifests import scene_of
from pumice.state.store import Store

REGISTRY = builtin_registry()
NOW = 1_767_225_600.0
CYCLES = 2

#: What a cycle decides, what it says of whom, and the statuses of PodGroups that it writes.
Decided = tuple[list[str], list[tuple[str, str]], list[str]]


def crowded(case: FuzzCase, policy: Policy) -> list[Object]:
    """Return the objects of a world in which every second job has been placed, as far as there was room."""
    decoder = Decoder()
    scene = scene_of(decoder.decode(raw) for raw in case.objects)
    jobs = [work.expand(0.0) for work in scene.works]
    first, rest = ([each for group, pods in some for each in (group, *pods)] for some in (jobs[::2], jobs[1::2]))
    there = cast(list[Object], [*scene.objects, *first])
    planner = ListPlanner()
    run_cycle(store_of(there, policy).snapshot(NOW - 60), policy, NOW - 60, planner)
    nodes = {each.pod: each.node for each in planner.taken if isinstance(each, Bind)}
    placed = [
        replace(each, node_name=nodes[each.key], phase="Running", start_time=NOW - 60)
        if isinstance(each, Pod) and each.key in nodes
        else each
        for each in there
    ]
    return cast(list[Object], [*placed, *rest])


def store_of(objects: list[Object], policy: Policy) -> Store:
    found = Store(scheduler_names=(policy.dialect.scheduler,), default_queue=policy.dialect.default_queue)
    for each in objects:
        found.apply(Seen(each))
    return found


def decided(objects: list[Object], policy: Policy) -> list[Decided]:
    """Return what some cycles decide, of which nothing is carried out."""
    store, memo, found = store_of(objects, policy), Memo(), list[Decided]()
    for k in range(CYCLES):
        planner = ListPlanner()
        outcome = run_cycle(store.snapshot(NOW + k), policy, NOW + k, planner, memo=memo)
        store.remember(outcome.writes)
        entries = [(entry.subject, repr(entry.finding)) for entry in outcome.entries]
        found.append(([*map(repr, planner.taken)], entries, [*map(repr, outcome.groups)]))
    return found


@pytest.mark.parametrize("language", ["volcano", "kai"])
@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(1000), marks=pytest.mark.long)])
def test_the_order_in_which_objects_come_decides_nothing(seeds: range, language: str) -> None:
    evicting = 0
    for seed in seeds:
        case = draw(seed, REGISTRY, dialect=language)
        policy = read_policy(case.conf, REGISTRY)
        objects = crowded(case, policy)
        first = decided(objects, policy)
        Random(seed).shuffle(objects)
        assert decided(objects, policy) == first, f"seed {seed}"
        evicting += any("Evict(" in each for decisions, _, _ in first for each in decisions)
    assert evicting, "no world has evictions, and so none proves anything about their order"
