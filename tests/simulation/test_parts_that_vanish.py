"""A gang of parts without a topology, of which a pod and its node vanish while nothing waits: the cycle that finds out
writes what follows, though a session in which nothing waits copies no column. (It was an internal error.)"""

from __future__ import annotations

import pytest

from pumice.model.events import Gone
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import SubGroupPolicy
from pumice.runtime.loop import Loop
from pumice.runtime.policy.conf import policy_of
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Engine
from pumice.state.store import Store
from pumice.testing import build
from pumice.volcano.table import volcano_registry
from tests.simulation.scenes import POLICIES

PARTS = (SubGroupPolicy("part", sub_group_size=1, match_label_keys=("part",)),)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("first", ["pod", "node"])
def test_what_vanishes_while_nothing_waits_is_taken_in(policy: str, first: str) -> None:
    cluster = SimCluster(Engine(1_000.0))
    group = build.podgroup("g", minimum=2, phase="Running", sub_groups=PARTS)
    pods = [build.pod(f"g-{i}", "g", cpu=1, on=f"n{i}", labels={"part": str(i)}) for i in range(2)]
    for obj in (build.node("n0"), build.node("n1"), build.queue(), group, *pods):
        cluster.put(obj)
    store = Store()
    loop = Loop(store, policy_of(POLICIES[policy], volcano_registry()), cluster)
    loop.step(1_000.0)
    gone = [Gone(Pod, "ns/g-0"), Gone(Node, "n0")]
    for number, event in enumerate(gone if first == "pod" else reversed(gone)):
        store.apply(event)
        outcome = loop.step(1_001.0 + number)
        assert outcome.faults == [] and loop.decisions == []
    assert store.snapshot().tables.nodes.facts.names == ["n1"]
