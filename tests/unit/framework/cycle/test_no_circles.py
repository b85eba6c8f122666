"""A cycle leaves nothing that only the garbage collector could free, such as its session with all pods."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from pumice.framework.cycle.session import Session
from pumice.model.events import Object
from pumice.testing.build import cluster, node, podgroup, pods, queue, run


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def sessions() -> int:
    return sum(isinstance(each, Session) for each in gc.get_objects())


@pytest.mark.parametrize("action", ["allocate", "preempt", "reclaim", "gangpreempt", "gangreclaim", "backfill"])
def test_a_session_is_freed_when_its_cycle_has_ended(action: str, without_collector: None) -> None:
    before = sessions()
    runs: list[Object] = [podgroup("old", 2, phase="Running"), *pods("old", 2, cpu=1, on="n", phase="Running")]
    waits: list[Object] = [podgroup("new", 3, phase="Inqueue"), *pods("new", 3, cpu=1)]
    plugins = "{name: gang}, {name: priority}, {name: predicates}, {name: proportion}, {name: network-topology-aware}"
    conf = f'actions: "{action}"\ntiers:\n- plugins: [{plugins}]\n'
    run(cluster([queue("default"), node("n", cpu=2), *runs, *waits]), conf)
    assert sessions() == before
