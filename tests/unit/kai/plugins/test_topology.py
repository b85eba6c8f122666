"""Domains of a Topology for gangs: which are offered, and how often they are looked for."""

from __future__ import annotations

import pytest

from pumice.kai.plugins import topology
from pumice.model.topology import Topology
from pumice.model.workloads.gang import TopologyConstraint
from tests.unit.kai.cluster import cycle, job, node, policy, queue, store

WITHIN = TopologyConstraint("topo", "rack")


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of tasks of each group for which domains were looked for."""
    found: list[int] = []
    subsets = topology._Search.subsets

    def counted(search: topology._Search) -> object:
        found.append(len(search._group.rows))
        return subsets(search)

    monkeypatch.setattr(topology._Search, "subsets", counted)
    return found


def test_equal_gangs_of_different_queues_find_no_domain_once_while_nothing_moves(searches: list[int]) -> None:
    nodes = [node(f"n{i}", 2, labels={"rack": f"r{i}"}) for i in range(2)]
    queues = [queue(f"q{i}", 8) for i in range(3)]
    # 4 GPUs are free, 2 in each rack.
    large = [job(f"large{i}", f"q{i}", [""] * 3, topology=WITHIN, age=9.0) for i in range(3)]
    ran = cycle(store(nodes, queues, Topology("topo", ("rack",)), *large), policy(("allocate",)))
    assert (ran.binds, searches) == ({}, [3])


def test_domains_are_looked_for_again_once_something_moved(searches: list[int]) -> None:
    nodes = [node(f"n{i}", 2, labels={"rack": f"r{i}"}) for i in range(2)]
    queues = [queue(f"q{i}", 8) for i in range(2)]
    objects = [
        job("large0", "q0", [""] * 3, topology=WITHIN, age=9.0),
        job("small", "q0", [""], age=8.0, priority=40),
        job("large1", "q0", [""] * 3, topology=WITHIN, age=7.0, priority=30),
    ]
    ran = cycle(store(nodes, queues, Topology("topo", ("rack",)), *objects), policy(("allocate",)))
    assert (list(ran.binds), searches) == (["small-0"], [3, 3])
