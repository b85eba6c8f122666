"""Preempt on nodes that have nothing to evict: filters are asked about all of them together."""

from __future__ import annotations

import pytest

from pumice.model.pod import HostPort
from pumice.testing.build import cluster, node, pod, podgroup, policy, run
from pumice.volcano.eviction.node_search import NodeSearch
from tests.unit.volcano.evicting import LEVELS

CONF = "actions: preempt\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]"
NODES = 64


def test_a_task_that_filters_refuse_everywhere_costs_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node runs a pod that takes the host port and has no lower priority, so it cannot be evicted."""
    asked: list[int] = []
    passing = NodeSearch.passing

    def counted(self: NodeSearch, task: object, nodes: object) -> object:
        asked.append(len(nodes))  # type: ignore[arg-type]
        return passing(self, task, nodes)  # type: ignore[arg-type]

    monkeypatch.setattr(NodeSearch, "passing", counted)
    ports = (HostPort(80),)
    nodes = [node(f"n{i:02d}", 4, creation=float(i)) for i in range(NODES)]
    there = [podgroup("there", 1, phase="Running")]
    there += [pod(f"there-{i}", "there", on=f"n{i:02d}", host_ports=ports, priority=10) for i in range(NODES)]
    waits = [podgroup("waits", 1, phase="Inqueue"), pod("waits-0", "waits", host_ports=ports, priority=10)]
    result = run(cluster(LEVELS, nodes, there, waits), policy(CONF))
    assert result.decisions == []
    assert sum(asked) >= NODES, "the filters were not asked about each node"
    assert len(asked) <= 8
