"""Gangs that hold nodes below their minimum: who they are, since when, and which gives way."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.cycle.session import Session
from pumice.model.events import Object
from pumice.model.node import Taint
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.volcano.gangs.partially_bound import gang_to_evict, partially_bound_gangs, partially_bound_since

CONF = "tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]"


def half(name: str, on: str, since: float = 0.0, **waits: Any) -> list[Object]:
    """A gang of two that has one of them on a node."""
    runs = pod(f"{name}-0", name, on=on, start_time=since, creation=since)
    return [podgroup(name, 2, phase="Running", creation=since), runs, pod(f"{name}-1", name, creation=since, **waits)]


def opened(*objects: Any, now: float = 100.0) -> Session:
    return session(cluster(*objects), CONF, now=now)


def name_of(ssn: Session, job: int) -> str:
    return str(ssn.tables.jobs.uids[job]).removeprefix("ns/") if job >= 0 else ""


@pytest.mark.parametrize(
    ("job", "is_half"),
    [
        pytest.param(half("g", "n"), True, id="holds one of two"),
        pytest.param([podgroup("g", 2), *pods("g", 2)], False, id="holds none"),
        pytest.param([podgroup("g", 1), pod("g-0", "g", on="n"), pod("g-1", "g")], False, id="has its minimum"),
        pytest.param([podgroup("g", 2), pod("g-0", "g", on="n")], False, id="nobody waits who would complete it"),
        pytest.param([podgroup("g", 2, "gone"), pod("g-0", "g", on="n"), pod("g-1", "g")], False, id="has no queue"),
    ],
)
def test_who_is_a_half(job: list[Object], is_half: bool) -> None:
    ssn = opened(node("n"), job)
    assert [name_of(ssn, row) for row in partially_bound_gangs(ssn).tolist()] == (["g"] if is_half else [])


def test_since_the_last_of_its_pods_began_or_was_made() -> None:
    runs = pod("g-0", "g", on="n", start_time=50.0, creation=10.0)
    for waits, since in ((pod("g-1", "g", creation=20.0), 50.0), (pod("g-1", "g", creation=70.0), 70.0)):
        ssn = opened(node("n"), podgroup("g", 2), runs, waits)
        assert partially_bound_since(ssn, list(ssn.tables.jobs.uids).index("ns/g")) == since


NODES = [node("n", 1), node("m", 1, creation=1.0)]


@pytest.mark.parametrize(
    ("objects", "who"),
    [
        pytest.param([NODES, half("a", "n"), half("b", "m", 10.0)], "b", id="the later one"),
        pytest.param([NODES, half("a", "n", 10.0), half("b", "m")], "a", id="whichever that is"),
        pytest.param([NODES, half("a", "n")], "", id="nobody for none"),
        pytest.param([NODES, half("a", "n"), half("b", "m", 41.0)], "", id="not before its time"),
        pytest.param([NODES, half("a", "n"), half("b", "m", 40.0)], "b", id="at its time"),
        pytest.param([NODES, half("a", "n", cpu=2), half("b", "m", 10.0)], "", id="it would not be room enough"),
        pytest.param(
            [[NODES[0], node("m", 1, taints=[Taint("t")])], half("a", "n"), half("b", "m", 10.0)],
            "",
            id="nor where the other may be",
        ),
        pytest.param(
            [NODES, half("a", "n"), half("b", "m", 10.0), half("c", "n", 50.0)], "b", id="one that is too young is left"
        ),
    ],
)
def test_which_gives_way_after_a_minute(objects: list[Any], who: str) -> None:
    ssn = opened(*objects)
    assert name_of(ssn, gang_to_evict(ssn, 60.0)) == who


def test_only_for_one_whose_waiting_pods_are_equal() -> None:
    """Whether a mixed gang would fit has not been computed."""
    mixed = [podgroup("a", 3), pod("a-0", "a", on="n"), pod("a-1", "a", "500m"), pod("a-2", "a", "400m")]
    ssn = opened(NODES, mixed, half("b", "m", 10.0))
    assert gang_to_evict(ssn, 60.0) == -1
