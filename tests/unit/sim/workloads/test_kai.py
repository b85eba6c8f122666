"""The generators for KAI's language give the clusters of the shared formulas, value for value."""

from __future__ import annotations

import importlib.util
import json
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.model.devices.claims import ResourceSlice
from pumice.sim.workloads.kai import KAI_SCENARIOS, KaiWorkload, build_kai
from tests.unit.sim.kit import SHARED, WITHOUT_SHARED

FORMULAS = SHARED / "bench" / "kai_workloads.py"
GPU = "nvidia.com/gpu"


def formulas() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shared_kai_workloads", FORMULAS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def described(made: KaiWorkload) -> dict[str, Any]:
    """A workload in the words of the formulas."""
    priorities = {"train": 50, "build": 100}
    by_group: dict[str, list[Any]] = {}
    for pod in made.pods:
        by_group.setdefault(pod.group_key, []).append(pod)
    jobs = []
    newest = max(group.creation for group in made.groups)
    for group in made.groups:
        pods = by_group[group.key]
        request = pods[0].spec.request
        topology = group.gang.topology if group.gang else None
        jobs.append(
            {
                "name": group.name,
                "queue": group.queue,
                "gpus": request.get(GPU) / 1000,
                "cpu": request.milli_cpu / 1000,
                "memory": request.memory,
                "priority": priorities[group.priority_class_name],
                "younger": (newest - group.creation) / 60,
                "min": group.min_member,
                "topology": topology and (topology.topology, topology.required, topology.preferred),
                "tasks": [(pod.phase, pod.node_name) for pod in pods],
            }
        )
    nodes = [
        (n.name, n.allocatable.get(GPU) / 1000, n.allocatable.milli_cpu / 1000, n.allocatable.memory, dict(n.labels))
        for n in made.nodes
    ]
    queues = [
        (q.name, q.parent, (q.sharing.gpu.quota or 0) / 1000, q.sharing.gpu.limit, q.sharing.gpu.over_quota_weight)
        for q in made.queues
        if q.sharing
    ]
    return {"jobs": jobs, "nodes": nodes, "queues": queues, "topologies": [(t.name, t.levels) for t in made.topologies]}


def wanted(theirs: dict[str, Any]) -> dict[str, Any]:
    youngest = min(job["age_minutes"] for job in theirs["jobs"])
    return {
        "jobs": [
            {
                "name": job["name"],
                "queue": job["queue"],
                "gpus": job["gpus_per_task"],
                "cpu": job["cpu_per_task"],
                "memory": job["memory_per_task"],
                "priority": job["priority"],
                "younger": job["age_minutes"] - youngest,
                "min": job["min_available"],
                "topology": job["topology"] and tuple(job["topology"].values()),
                "tasks": [(task["state"], task["node"]) for task in job["tasks"]],
            }
            for job in theirs["jobs"]
        ],
        "nodes": [(n["name"], n["gpus"], n["cpu"], n["memory"], n["labels"]) for n in theirs["nodes"]],
        "queues": [
            (q["name"], q["parent"], q["gpu_quota"], None, q["gpu_over_quota_weight"]) for q in theirs["queues"]
        ],
        "topologies": [(t["name"], tuple(t["levels"])) for t in theirs["topologies"]],
    }


#: Scenarios that the shared formulas do not have.
OWN = ("kai-claims", "kai-numa", "kai-native")
SMALL = ("--nodes", "4", "--pods", "32", "--gang", "8", "--json")
CASES = [
    ("kai-alloc", (12, 64, 8), lambda f: f.alloc(12, 64, 8)),
    ("kai-reclaim", (10, 20, 2), lambda f: f.reclaim(10, 20, 2)),
    ("kai-reclaimbig", (20, 2, 2), lambda f: f.reclaim_big(20)),
    ("kai-consolidate", (12, 3, 1), lambda f: f.consolidate(12, 3)),
    ("kai-preempt", (5, 7, 1), lambda f: f.preempt(5, 7)),
    ("kai-topology", (80, 64, 8), lambda f: f.topology(80, 8, 8)),
    ("kai-topology", (80, 64, 16), lambda f: f.topology(80, 4, 16)),
    ("kai-unschedulable", (6, 9, 1), lambda f: f.unschedulable(6, 9)),
    ("kai-full", (6, 9, 1), lambda f: f.full(6, 9)),
]


@pytest.mark.skipif(not FORMULAS.is_file(), reason=WITHOUT_SHARED)
@pytest.mark.parametrize(("scenario", "sizes", "theirs"), CASES, ids=lambda part: str(part)[:20])
def test_the_same_as_the_formulas(scenario: str, sizes: tuple[int, int, int], theirs: Any) -> None:
    assert described(build_kai(scenario, *sizes)) == wanted(theirs(formulas()))


def test_every_scenario_is_compared() -> None:
    assert {scenario for scenario, *_ in CASES} | set(OWN) == set(KAI_SCENARIOS)


@pytest.mark.parametrize("scenario", OWN)
def test_pods_that_ask_in_newer_ways_are_all_placed(scenario: str) -> None:
    """Four nodes of 8 devices for 32 pods; with NUMA zones, 4 in each of two."""
    told = CliRunner().invoke(main, ["bench", "--scenario", scenario, *SMALL])
    found = json.loads(told.stdout)
    assert (found["bound"], found["evicted"]) == (32, 0)


def test_of_claims_each_pod_names_the_template_and_no_node_has_gpus_besides() -> None:
    made = build_kai("kai-claims", 2, 4, 2)
    assert {each.spec.resource_claims for each in made.pods} == {("template/one",)}
    assert not any(node.allocatable.get(GPU) for node in made.nodes)
    assert sum(len(each.devices) for each in made.others if isinstance(each, ResourceSlice)) == 16


def test_pods_in_numa_zones_are_guaranteed_and_native_groups_are_no_groups_of_kai() -> None:
    assert {each.spec.qos for each in build_kai("kai-numa", 2, 4, 2).pods} == {"Guaranteed"}
    assert all(group.native is not None for group in build_kai("kai-native", 2, 4, 2).groups)


@pytest.mark.parametrize(
    ("scenario", "sizes", "why"),
    [
        ("kai-gangs", (1, 1, 1), "scenario: found 'kai-gangs', wanted one of kai-alloc"),
        ("kai-alloc", (0, 1, 1), "nodes: found 0, wanted 1 to 10,000,000"),
        ("kai-reclaimbig", (10, 2, 1), "gang: found 1, wanted 2: it is one gang"),
    ],
)
def test_sizes_that_make_no_workload(scenario: str, sizes: tuple[int, int, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        build_kai(scenario, *sizes)
