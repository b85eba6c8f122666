"""What is logged of a cycle: Volcano's words, each at its level, and about the right job."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from pumice.kube.scheduler import logs
from pumice.kube.scheduler.cycle_log import log_cycle
from pumice.state.store import Store
from pumice.testing.build import cluster, hypernode, node, pod, podgroup, pods, queue, resource, run

WITH_ENQUEUE = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: overcommit}, {name: proportion}, {name: network-topology-aware}]
"""


def one_fits() -> Store:
    """A gang that fits, one that does not, and one for which half of the room is there."""
    return cluster(
        node("n", cpu=4),
        podgroup("a", 1),
        pods("a", 1),
        podgroup("b", 9, creation=1.0),
        pods("b", 9, creation=1.0),
    )


def too_big() -> Store:
    return cluster(node("n0", cpu=4), node("n1", cpu=4), podgroup("a", 1), pods("a", 1, cpu=5))


def leaving() -> Store:
    """A node that a pod leaves."""
    return cluster(node("n", cpu=2), pod("old", cpu=2, on="n", deletion=1.0), podgroup("a", 1), pods("a", 1))


def nowhere() -> Store:
    """What no session has."""
    lost = podgroup("lost", queue="nowhere")
    return cluster(node("n"), queue(), lost, pods("lost", 1), pods("headless", 1), pod("alone"))


def odd() -> Store:
    """Pods that allocate does not look at, beside one that it does."""
    ours = [pod("g-0", "g", gates=("wait",)), pod("g-1", "g", cpu=0, memory=0), pod("g-2", "g")]
    return cluster(node("n", unschedulable=True), podgroup("g", 2), ours)


def racks() -> Store:
    nodes = [node("n0"), node("n1")]
    tree = [hypernode("r0", 1, ["n0"]), hypernode("r1", 1, ["n1"]), hypernode("top", 2, hypernodes=["r0", "r1"])]
    return cluster(nodes, tree, podgroup("a", 2, tier=1), pods("a", 2))


def turned_down() -> Store:
    return cluster(node("n", cpu=1), podgroup("a", min_resources=resource(50)), pods("a", 1))


def invalid() -> Store:
    return cluster(node("n"), podgroup("a", 3), pods("a", 2))


SEEN = [
    pytest.param(
        one_fits, 3, "Open Session session-1 with 2 Job and 1 Queues. HyperNodesReadyToSchedule: ", id="session"
    ),
    pytest.param(one_fits, 3, "Close Session session-", id="end of session"),
    pytest.param(one_fits, 3, "Try to enqueue PodGroup to 1 Queues", id="enqueue"),
    pytest.param(one_fits, 3, "Try to allocate resource to 1 Queues", id="allocate"),
    pytest.param(one_fits, 3, "There are <1> nodes for Job <ns/a>", id="tried"),
    pytest.param(one_fits, 3, "SubJob ready, return statement: Job <ns/a>", id="ready"),
    pytest.param(one_fits, 3, "Committing operations ... Job <ns/a>: 1 tasks", id="committed"),
    pytest.param(one_fits, 3, "Discarding operations ... Job <ns/b>: 3 tasks", id="discarded"),
    pytest.param(one_fits, 3, "Remove Task <ns/b-2> on node <n>", id="taken back"),
    pytest.param(
        too_big,
        3,
        "Predicates failed: Task <ns/a-0>: 0/2 nodes are unavailable: 2 Insufficient cpu.",
        id="no node fits",
    ),
    pytest.param(one_fits, 3, "Binding Task <ns/a-0> to node <n>", id="bound"),
    pytest.param(
        one_fits,
        3,
        "After allocated Task <ns/a-0> to Node <n>: idle <cpu 3000.00, memory 33285996544.00, pods 109.00>, used"
        " <cpu 1000.00, memory 1073741824.00, pods 1.00>, releasing <cpu 0.00, memory 0.00>",
        id="what a node has left",
    ),
    pytest.param(leaving, 3, "Pipelining Task <ns/a-0> to node <n>", id="promised"),
    pytest.param(leaving, 3, "SubJob pipelined, return statement: Job <ns/a>", id="promised as a whole"),
    pytest.param(leaving, 3, "After pipelined Task <ns/a-0> to Node <n>: ", id="promised room"),
    pytest.param(nowhere, 3, "The Queue <nowhere> of Job <ns/lost> does not exist, ignore it.", id="no queue"),
    pytest.param(racks, 3, "Allocate job to hyperNode success: Job <ns/a> hyperNode <r", id="hypernode"),
    pytest.param(nowhere, 4, "Job <ns/headless> has no PodGroup, ignore it.", id="no PodGroup"),
    pytest.param(nowhere, 4, "Pod <ns/alone> names no PodGroup, ignore it.", id="no annotation"),
    pytest.param(one_fits, 4, "Start scheduling ...", id="start"),
    pytest.param(one_fits, 4, "End scheduling ...", id="end"),
    pytest.param(one_fits, 4, "Job <ns/b> waits: ", id="why"),
    pytest.param(one_fits, 4, "The attributes of queue <default> in proportion: deserved <cpu 4000.00, ", id="queue"),
    pytest.param(odd, 4, "Task <ns/g-0> has scheduling gates, skip it.", id="gate"),
    pytest.param(odd, 4, "Task <ns/g-1> is BestEffort, skip it.", id="best effort"),
    pytest.param(
        turned_down,
        4,
        "Job <ns/a> Queue <default> skip enqueue, reason: resource in cluster is overused: overused cpu",
        id="turned down",
    ),
    pytest.param(invalid, 4, "Job <ns/a> Queue <default> skip allocate, reason: Not enough valid tasks", id="invalid"),
    pytest.param(one_fits, 5, "Enter Allocate ...", id="action"),
    pytest.param(one_fits, 5, "Leaving Allocate ...", id="end of action"),
    pytest.param(one_fits, 5, "Node <n>: idle <cpu 3000.00", id="node"),
]


@pytest.mark.parametrize(("store", "level", "line"), SEEN)
def test_a_line_is_written_at_its_level_and_above(
    caplog: pytest.LogCaptureFixture, store: Callable[[], Store], level: int, line: str
) -> None:
    ran = run(store(), WITH_ENQUEUE)
    for verbosity in (2, 3, 4, 5):
        caplog.clear()
        caplog.set_level(logs.level_of(verbosity), "pumice.cycle")
        log_cycle(ran.outcome, ran.decisions)
        said = [record.getMessage() for record in caplog.records]
        assert sum(each.startswith(line) for each in said) == (level <= verbosity), (verbosity, said)


def test_what_was_not_tried_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of one job's troubles is said of another's."""
    caplog.set_level(logging.DEBUG, "pumice.cycle")
    ran = run(one_fits(), WITH_ENQUEUE)
    log_cycle(ran.outcome, ran.decisions)
    of_a = [record.getMessage() for record in caplog.records if "ns/a" in record.getMessage()]
    assert not [line for line in of_a if "Discarding" in line or "failed" in line or "Remove" in line]
