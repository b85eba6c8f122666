"""The place of a waiting job in its queue, and the jobs that hold what the queue may have."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.answers.explanation import Explanation, explain
from pumice.answers.in_queue import AGE, Holder, Place
from pumice.answers.plain import described
from pumice.answers.seen import as_seen, hidden_of
from pumice.answers.world import World
from pumice.model.queue import PriorityClass
from pumice.model.resources import Resource
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import node, podgroup, pods, queue
from pumice.volcano.table import DEFAULT_CONF


def world(*, high: str = "") -> World:
    """Return a queue that may hold 8 cores, of which two jobs hold 6, and three jobs of 4 cores that wait.

    ``high``: the one with a higher priority."""
    objects = [
        node("n0", cpu=64),
        replace(queue("team"), capability=Resource(milli_cpu=8_000.0)),
        PriorityClass("p", 9),
    ]
    for number, (name, cpu) in enumerate([("a", 4), ("b", 2), ("w1", 4), ("w2", 4), ("w3", 4)]):
        runs = name in ("a", "b")
        group = podgroup(name, 1, queue="team", phase="Running" if runs else "Inqueue")
        priority = "p" if name == high else ""
        objects.append(replace(group, creation=100.0 + number, priority_class_name=priority))
        (pod,) = pods(name, 1, cpu=cpu)
        objects.append(replace(pod, node_name="n0", phase="Running") if runs else pod)
    return World(objects, policy_of(DEFAULT_CONF, builtin_registry()), 1_000.0, ("volcano",))


def explained(asked: World, job: str) -> Explanation:
    return explain(asked, job, ways=False)


def test_a_limit_names_the_jobs_that_hold_most_of_it() -> None:
    (part,) = explained(world(), "ns/w1").parts
    assert part.holders == (Holder("ns/a", "cpu", 4_000.0), Holder("ns/b", "cpu", 2_000.0))


@pytest.mark.parametrize(
    ("high", "expected"),
    [("", Place(3, 3, ("ns/w2", "ns/w1"), AGE)), ("w2", Place(3, 3, ("ns/w1", "ns/w2"), AGE)), ("w3", Place(1, 3))],
)
def test_older_jobs_are_ahead_and_those_of_higher_priority(high: str, expected: Place) -> None:
    found = explained(world(high=high), "ns/w3")
    assert (found.place, found.waited_s) == (expected, 896.0)


def test_the_plugin_is_named_whose_order_decides() -> None:
    assert explained(world(high="w3"), "ns/w1").place == Place(2, 3, ("ns/w3",), "priority")


def test_programs_read_the_place_and_the_holders() -> None:
    said = described(explained(world(), "ns/w2"), "d")
    assert said["place"] == {"number": 2, "of": 3, "ahead": ["ns/w1"], "by": "age"}
    assert said["each_asks"] == {"resource": "cpu", "amount": 4_000.0}
    assert said["reason"][0]["held_by"][0] == {"job": "ns/a", "resource": "cpu", "amount": 4_000.0}


def test_jobs_of_namespaces_that_are_not_seen_are_not_named() -> None:
    asked = world()
    seen = as_seen(explained(asked, "ns/w2"), hidden_of(asked, frozenset()))
    assert seen.place is not None and "ns/w1" not in seen.place.ahead
    assert all("ns/" not in each.job for part in seen.parts for each in part.holders)
