"""A cycle leaves nothing that only the garbage collector could free, such as its session with all pods."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.model.blockers import Shortage
from pumice.model.events import Object
from pumice.reasons.blockers import Blockers
from pumice.testing.build import cluster, node, podgroup, pods, queue, run


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive(kind: type) -> int:
    return sum(isinstance(each, kind) for each in gc.get_objects())


@pytest.mark.parametrize("action", ["allocate", "preempt", "reclaim", "gangpreempt", "gangreclaim", "backfill"])
def test_a_session_is_freed_when_its_cycle_has_ended(action: str, without_collector: None) -> None:
    before = alive(Session)
    runs: list[Object] = [podgroup("old", 2, phase="Running"), *pods("old", 2, cpu=1, on="n", phase="Running")]
    waits: list[Object] = [podgroup("new", 3, phase="Inqueue"), *pods("new", 3, cpu=1)]
    plugins = "{name: gang}, {name: priority}, {name: predicates}, {name: proportion}, {name: network-topology-aware}"
    conf = f'actions: "{action}"\ntiers:\n- plugins: [{plugins}]\n'
    run(cluster([queue("default"), node("n", cpu=2), *runs, *waits]), conf)
    assert alive(Session) == before


def test_an_outcome_is_freed_after_blockers_of_equal_jobs_were_read(without_collector: None) -> None:
    before = alive(Outcome)
    waits: list[Object] = []
    for name in ("new", "newer"):
        waits += [podgroup(name, 3, phase="Inqueue"), *pods(name, 3, cpu=4)]
    found = run(cluster([queue("default"), node("n", cpu=2), *waits]))
    blockers = Blockers(found.outcome)
    assert [type(blockers.nearest(job)) for job in blockers.waiting.tolist()] == [Shortage, Shortage]
    del blockers, found
    assert alive(Outcome) == before
