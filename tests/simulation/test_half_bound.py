"""A gang of which a part was bound when its scheduler crashed: it becomes whole, or goes whole, and stays no half."""

from __future__ import annotations

import pytest

from pumice.runtime.conf import policy_of
from pumice.runtime.loop import Loop
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Engine
from pumice.state.store import Store
from pumice.testing import build
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

NOW = 1_000.0


@pytest.mark.parametrize(("halves_first", "whole"), [("true", "early"), ("false", "later")])
def test_a_half_bound_gang_goes_before_equals(halves_first: str, whole: str) -> None:
    """A scheduler died after two binds of four. A gang of equal priority came later and would take what room is left:
    then one holds two nodes for nothing, for ever, while the other runs."""
    cluster = SimCluster(Engine(NOW))
    early = build.podgroup("early", minimum=4, creation=NOW - 60)
    later = build.podgroup("later", minimum=4, creation=NOW - 30)
    half = [build.pod(f"early-{i}", "early", cpu=1, on="n" if i < 2 else "") for i in range(4)]
    other = [build.pod(f"later-{i}", "later", cpu=1) for i in range(4)]
    for obj in (build.node("n", cpu=6), build.queue(), early, later, *half, *other):
        cluster.put(obj)
    conf = DEFAULT_CONF.replace("name: gang", f"name: gang\n    arguments: {{halvesFirst: {halves_first}}}")
    loop = Loop(Store(), policy_of(conf, volcano_registry()), cluster)
    for cycle in range(3):
        loop.step(NOW + cycle)
    nodes = {pod.key for pod in cluster.pods.values() if pod.node_name}
    assert {f"ns/{whole}-{i}" for i in range(4)} <= nodes
