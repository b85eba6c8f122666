"""Who is evicted first."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, session
from pumice.volcano import points
from pumice.volcano.eviction.victim_order import eviction_order


@plugin("queues-say")
@points.victim_queue_order
def queues_say(ssn: Session, left: Queue, right: Queue, preemptor: Queue) -> int:
    """The queue whose weight is that of the preemptor's keeps its tasks."""
    return int(left.obj.weight == preemptor.obj.weight) - int(right.obj.weight == preemptor.obj.weight)


@pytest.mark.parametrize(
    ("preemptor", "conf", "order"),
    [
        pytest.param("x-0", "tiers: []", "late-1 late-0 early-1 early-0", id="of one queue: the last of the last job"),
        pytest.param("z-0", "tiers: []", "y-0 late-1 late-0 early-1 early-0", id="of two: the last queue first"),
        pytest.param(
            "z-0",
            "tiers: [{plugins: [{name: queues-say}]}]",
            "late-1 late-0 early-1 early-0 y-0",
            id="unless plugins say otherwise",
        ),
    ],
)
def test_who_is_evicted_first(preemptor: str, conf: str, order: str) -> None:
    queues = [queue("q1", 1), queue("q2", 2, creation=1.0), queue("q3", 2, creation=2.0)]
    gangs = {"early": ("q1", 2), "late": ("q1", 2), "x": ("q1", 1), "y": ("q2", 1), "z": ("q3", 1)}
    objects = [
        [podgroup(name, 1, of, creation=float(i)), pods(name, count, on="n", creation=float(i))]
        for i, (name, (of, count)) in enumerate(gangs.items())
    ]
    state = cluster(node("n"), *queues, *[each for pair in objects for each in pair])
    ssn = session(state, conf, plugins=[queues_say])
    row_of = {p.name: row for row, p in enumerate(ssn.tables.tasks.pods) if p is not None}
    order_found = eviction_order(ssn, [row_of[name] for name in sorted(order.split())], row_of[preemptor])
    name_of = {row: name for name, row in row_of.items()}
    assert [name_of[row] for row in order_found] == order.split()


def order_of(victims: dict[str, Any], preemptor: str) -> str:
    """Names in order of eviction; pods of gangs g and h (which is younger) and pods without a job run on one node."""
    groups = [podgroup("g", creation=1.0), podgroup("h", creation=2.0)]
    members = [pod(name, on="n", **more) for name, more in victims.items()]
    ssn = session(cluster(node("n"), groups, members), "tiers: []")
    row_of = {p.name: row for row, p in enumerate(ssn.tables.tasks.pods) if p is not None}
    order_found = eviction_order(ssn, [row_of[name] for name in sorted(victims)], row_of[preemptor])
    names = {row: name for name, row in row_of.items()}
    return " ".join(names[row] for row in order_found)


@pytest.mark.parametrize(
    ("victims", "preemptor", "order"),
    [
        pytest.param(
            {"a": {"group": "g", "creation": 1.0}, "b": {"group": "g", "creation": 2.0}}, "a", "b a", id="the youngest"
        ),
        pytest.param(
            {"a": {"group": "g", "priority": 5}, "loose": {}}, "a", "loose a", id="one without job before all others"
        ),
        pytest.param(
            {"a": {"group": "g"}, "b": {"group": "h"}, "loose": {}}, "loose", "loose b a", id="for one without job"
        ),
        pytest.param(
            {"late": {"creation": 9.0}, "early": {"creation": 1.0}}, "late", "late early", id="of those without job"
        ),
    ],
)
def test_tasks_without_job(victims: dict[str, Any], preemptor: str, order: str) -> None:
    assert order_of(victims, preemptor) == order
