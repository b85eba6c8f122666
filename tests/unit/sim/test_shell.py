"""The scheduler of a simulation: what a live one writes on pods is there in the next cycle."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pumice.framework.plugin.policy_file import read_policy
from pumice.model.events import Object
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Engine
from pumice.sim.shell import Shell
from pumice.testing import build
from tests.unit.kai import cluster as kai
from tests.unit.volcano import evicting as volcano

VOLCANO = (
    {"actions": "allocate, preempt", "tiers": [{"plugins": [{"name": name} for name in ("priority", "gang")]}]},
    [*volcano.LEVELS, build.node("a", 1), build.queue()],
    volcano.gang("old", 1, on="a"),
    volcano.gang("new", 1, 1, level="high"),
)
KAI = (
    {"dialect": "kai", "actions": "allocate, preempt"},
    [kai.node("a", 1), kai.queue("q")],
    kai.job("old", "q", ["a"]),
    kai.job("new", "q", [""], priority=75),
)


@pytest.mark.parametrize(("conf", "world", "old", "new"), [VOLCANO, KAI], ids=["volcano", "kai"])
def test_whom_others_left_for_is_nominated_until_it_is_bound(
    conf: dict[str, object], world: Iterable[Object], old: Iterable[Object], new: Iterable[Object]
) -> None:
    cluster = SimCluster(Engine(), grace_s=30.0)
    for obj in (*world, *old, *new):
        cluster.put(obj)
    shell = Shell(cluster, read_policy(conf, builtin_registry()))
    shell.cycle(0.0)
    assert cluster.pods["ns/new-0"].nominated_node == "a"
    assert cluster.pods["ns/old-0"].deletion is not None
    cluster.engine.advance(30.0)
    shell.cycle(30.0)
    bound = cluster.pods["ns/new-0"]
    assert (bound.node_name, bound.nominated_node) == ("a", "")
