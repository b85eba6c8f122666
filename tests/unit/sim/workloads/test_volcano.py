"""The generators give the objects of the shared formulas, value for value."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from pumice.model.manifest import Decoder
from pumice.sim.workloads.demo import demo
from pumice.sim.workloads.volcano import DIVERSE, build
from tests.unit.sim.kit import SHARED, WITHOUT_SHARED

FORMULAS = SHARED / "bench" / "workloads.py"


def formulas() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shared_workloads", FORMULAS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not FORMULAS.is_file(), reason=WITHOUT_SHARED)
@pytest.mark.parametrize(
    ("scenario", "nodes", "pods", "gang", "queues", "tier"),
    [
        ("gang", 100, 1000, 10, 1, 0),
        ("gang", 33, 700, 7, 10, 0),
        ("topo", 1000, 800, 20, 1, 0),
        ("topo", 500, 400, 20, 1, 2),
        ("preempt", 20, 50, 10, 1, 0),
        ("reclaim", 25, 100, 10, 2, 0),
        *((kind, 45, 1300, 10, 1, 0) for kind in DIVERSE),
    ],
)
def test_the_same_as_the_formulas(scenario: str, nodes: int, pods: int, gang: int, queues: int, tier: int) -> None:
    theirs = formulas()
    decoder = Decoder()
    wanted = [
        decoder.decode(each) for each in theirs.manifests(theirs.build(scenario, nodes, pods, gang, queues, tier))
    ]
    assert list(build(scenario, nodes, pods, gang, queues, tier).objects()) == wanted


def test_gangs_that_reclaim_stay_within_a_hypernode_and_those_that_starve_are_admitted() -> None:
    within = build("gangreclaim", 500, 128, 64, tier=1)
    assert [group.topology.highest_tier for group in within.groups if group.topology is not None] == [1, 1]
    assert {hypernode.tier for hypernode in within.hypernodes} == {1, 2, 3}
    starving = build("starving", 10, 20, 10)
    assert [(group.status.phase, group.min_resources) for group in starving.groups[-2:]] == [("Inqueue", None)] * 2
    assert {pod.spec.priority for pod in starving.pods if pod.node_name} == {1000}


def test_a_thousand_queues_are_a_tree_of_six_levels_in_which_nobody_deserves_more_than_its_parent() -> None:
    made = build("tree", 100, 1000, 10, 1000)
    parents, level = {queue.name: queue.parent for queue in made.queues}, {"root": 0}
    for queue in made.queues[:-1]:
        level[queue.name] = 1 + level[queue.parent]
    assert max(level.values()) == 6
    assert {group.queue for group in made.groups}.isdisjoint(parents.values())
    whole, leaves = made.queues[0].deserved, [q.deserved for q in made.queues if q.name not in parents.values()]
    assert whole is not None
    assert whole.milli_cpu == sum(each.milli_cpu for each in leaves if each is not None)


def test_pods_of_one_shape_share_their_spec() -> None:
    made = build("gang", 10, 10_000, 10)
    assert len({id(pod.spec) for pod in made.pods}) == len({pod.spec for pod in made.pods}) == 16


@pytest.mark.parametrize(("kind", "specs"), [("equal", 1), ("unique", 5000), ("anti", 500), ("preferred", 50)])
def test_how_many_specs_the_pods_of_diverse_gangs_have(kind: str, specs: int) -> None:
    made = build(kind, 10, 5000, 10)
    assert len({id(pod.spec) for pod in made.pods}) == len({pod.spec for pod in made.pods}) == specs


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scenario": "gangs"}, "scenario: found 'gangs', wanted one of gang, topo, equal, .*, preempt, reclaim"),
        ({"nodes": 0}, "nodes: found 0"),
        ({"pods": -1}, "pods: found -1"),
        ({"gang": 0}, "gang: found 0"),
        ({"queues": 10**18}, "queues: found"),
        ({"tier": 4}, "tier: found 4"),
    ],
)
def test_sizes_that_make_no_workload(changes: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        build(**{"scenario": "gang", "nodes": 1, "pods": 1, "gang": 1, **changes})  # type: ignore[arg-type]


def test_the_demo_is_whole() -> None:
    scene = demo()
    assert len(scene.works) == len({work.key for work in scene.works}) == 120
    assert len(scene.objects) == 2 + 3 + 12 + 3 + 1
