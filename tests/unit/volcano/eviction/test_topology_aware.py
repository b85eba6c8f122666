"""Topology-aware preemption: the node whose victims matter least."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.pod import HostPort
from pumice.model.queue import PriorityClass
from pumice.testing.build import cluster, node, pod, podgroup, run
from pumice.volcano.eviction.topology_aware import Limits
from tests.unit.volcano.evicting import AWARE, LEVELS, PREEMPT, gang


def test_the_node_whose_victims_matter_least() -> None:
    """By score the first node is the best; there the victim is more important."""
    state = cluster(
        [*LEVELS, PriorityClass("middle", 5)],
        node("n0", 1),
        node("n1", 1),
        [podgroup("middle", 0, priority_class="middle"), pod("middle-0", "middle", on="n0", priority=5)],
        gang("low", 1, on="n1"),
        gang("high", 1, 1, level="high"),
    )
    assert run(state, PREEMPT).evicted == ["ns/middle-0"]
    assert run(state, AWARE).evicted == ["ns/low-0"]


def test_victims_that_need_not_go_are_spared_the_most_important_first() -> None:
    """The small pod would go first and is not enough; once the large one has to go, it may stay."""
    members = [pod("low-0", "low", on="n", cpu=3, priority=1), pod("low-1", "low", on="n", priority=1)]
    state = cluster(
        LEVELS, node("n", 4), podgroup("low", 0, priority_class="low"), members, gang("high", 1, 1, level="high", cpu=3)
    )
    assert run(state, PREEMPT).evicted == ["ns/low-1", "ns/low-0"]
    assert run(state, AWARE).evicted == ["ns/low-0"]


def test_of_equal_priorities_fewer_go_then_the_youngest() -> None:
    def low(name: str, on: str, start: float, cpu: int = 2) -> Any:
        return pod(name, "low", on=on, cpu=cpu, priority=1, start_time=start)

    machines = [node(name, 2) for name in ("n0", "n1", "n2")]
    members = [low("two-0", "n0", 9.0, 1), low("two-1", "n0", 9.0, 1), low("old", "n1", 1.0), low("young", "n2", 5.0)]
    group = podgroup("low", 0, priority_class="low")
    state = cluster(LEVELS, machines, group, members, gang("high", 1, 1, level="high", cpu=2))
    assert run(state, AWARE).evicted == ["ns/young"]


def test_nobody_leaves_for_pods_that_filters_keep_apart() -> None:
    """Both want the same port, and there is one node: hooks that are asked about its pods being gone say nothing of
    ports."""
    ports = {"host_ports": (HostPort(80),)}
    state = cluster(LEVELS, node("n", 2), gang("low", 2, on="n"), gang("high", 2, 2, level="high", **ports))
    assert run(state, AWARE).evicted == []


@pytest.mark.parametrize(
    ("nodes", "compared"),
    [
        pytest.param(1000, 100, id="a percentage"),
        pytest.param(50, 20, id="no fewer than"),
        pytest.param(5000, 200, id="no more than"),
        pytest.param(7, 7, id="no more than there are"),
    ],
)
def test_how_many_nodes_are_compared(nodes: int, compared: int) -> None:
    assert Limits(10, 20, 200).of(nodes) == compared
