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


@pytest.mark.skip(reason="core, issue 11 §2.4: by its share a half-bound gang comes after the later one")
def test_a_half_bound_gang_goes_before_equals() -> None:
    """A scheduler died after two binds of four. A gang of equal priority came later and would take what room is left:
    then one holds two nodes for nothing, for ever, while the other runs."""
    cluster = SimCluster(Engine(NOW))
    early = build.podgroup("early", minimum=4, creation=NOW - 60)
    later = build.podgroup("later", minimum=4, creation=NOW - 30)
    half = [build.pod(f"early-{i}", "early", cpu=1, on="n" if i < 2 else "") for i in range(4)]
    whole = [build.pod(f"later-{i}", "later", cpu=1) for i in range(4)]
    for obj in (build.node("n", cpu=6), build.queue(), early, later, *half, *whole):
        cluster.put(obj)
    loop = Loop(Store(), policy_of(DEFAULT_CONF, volcano_registry()), cluster)
    for cycle in range(3):
        loop.step(NOW + cycle)
    nodes = {pod.key for pod in cluster.pods.values() if pod.node_name}
    assert nodes == {f"ns/early-{i}" for i in range(4)}
