"""The generators give the objects of the shared formulas, value for value."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from pumice.model.manifest import Decoder
from pumice.sim.demo import demo
from pumice.sim.workload import DIVERSE, build
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
