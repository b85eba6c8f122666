"""The tree of queues is what the queues say, whoever was asked about first."""

from __future__ import annotations

import pytest

from pumice.columns.views import Queue
from pumice.framework.session import Session
from pumice.testing.build import cluster, node, podgroup, pods, queue, session
from pumice.volcano import points
from pumice.volcano.share_tree import PATH, WEIGHTS

CONF = """
actions: "allocate"
tiers:
- plugins:
  - {name: drf, enabledHierarchy: true}
"""


def four_queues(order: int) -> Session:
    queues = [
        queue("busy", annotations={PATH: "root/dev/busy", WEIGHTS: "1/4/1"}),
        queue("idle", annotations={PATH: "root/dev/idle", WEIGHTS: "1/9/1"}),
        queue("empty", annotations={PATH: "root/empty", WEIGHTS: "1/1"}),
        queue("other", annotations={PATH: "root/other", WEIGHTS: "1/2"}),
    ]
    gangs = [podgroup("a", 1, queue="busy", phase="Inqueue"), podgroup("b", 1, queue="other", phase="Inqueue")]
    held = [pods("a", 1, cpu=2, on="n"), pods("b", 1, cpu=1, on="n")]
    waiting = [pods("a", 1, first=1), pods("b", 1, first=1)]
    return session(cluster(node("n"), queues[::order], gangs, held, waiting), CONF)


def first_of(ssn: Session, left: str, right: str) -> str:
    names = ssn.tables.queues.names.tolist()
    found = ssn.ask(points.queue_order, *(Queue(ssn.tables, names.index(name)) for name in (left, right)))
    return left if found < 0 else right if found > 0 else ""


def test_a_queue_without_jobs_is_saturated_before_it_was_asked_about_and_after() -> None:
    ssn = four_queues(1)
    assert [first_of(ssn, "empty", "other"), first_of(ssn, "empty", "other")] == ["other", "other"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_node_that_two_queues_weigh_otherwise_has_the_weight_of_the_first_by_name(order: int) -> None:
    """2 cpu by 4 is as much as 1 cpu by 2; by 9 dev would come first."""
    ssn = four_queues(order)
    assert first_of(ssn, "idle", "busy") == "busy"
    assert first_of(ssn, "busy", "other") == ""
