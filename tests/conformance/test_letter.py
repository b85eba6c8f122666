"""What KAI 0.17's rules say in numbers and shapes that no recorded case has, each derived from its source by hand.

A row has the name of the rule, a cluster in few words, and where every pod must be after the actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.runtime.policy.languages import builtin_registry
from tests.conformance.runner.kai.run import run_kai_case

Raw = dict[str, Any]
#: The rows of all files, each of which has one subject.
ROWS: list[Raw] = [
    row
    for file in sorted(Path(__file__).with_name("letter").glob("*.yaml"))
    for row in yaml.safe_load(file.read_text())
]
_ROOMY = {"cpu_milli": 1_000_000, "memory": 10**12, "pods": 110, "gpu_memory": 100}
_OPEN = {"quota": -1, "limit": -1, "over_quota_weight": 1}


def case_of(row: Raw) -> Raw:
    """Return the case that a row describes."""
    nodes = [{"name": name, **_ROOMY, **_node(node)} for name, node in row["nodes"].items()]
    queues = [{"name": "root", "created_s": 0, "gpu": _OPEN}]
    for i, (name, gpu) in enumerate(row.get("queues", {"q": {}}).items(), start=1):
        place = {"parent": gpu.pop("parent", "root"), **({"cpu": gpu.pop("cpu")} if "cpu" in gpu else {})}
        queues.append({"name": name, "created_s": i, **place, "gpu": {**_OPEN, **gpu}})
    jobs = [_job(name, job, len(row["jobs"]) - i) for i, (name, job) in enumerate(row["jobs"].items())]
    tasks = {task: _place(place) for task, place in row["then"].items()}
    assert tasks.keys() == {task["id"] for job in jobs for task in job["tasks"]}, "every pod has a place"
    return {
        "format": "kai-case/1",
        "mode": "single",
        "actions": row["actions"].split(),
        "config": {"plugins": "default", "k8s_predicates": True, "staleness_grace_s": 60, **row.get("config", {})},
        "nodes": nodes,
        "queues": queues,
        "jobs": jobs,
        **({"dra": _devices(row["devices"])} if "devices" in row else {}),
        "expected": {"tasks": tasks},
    }


def _node(node: int | Raw) -> Raw:
    """Return a node: a number of GPUs, or its fields, with the amounts of its zones in short."""
    found: Raw = {"gpus": node} if isinstance(node, int) else {"gpus": 0, **node}
    if "zones" in found:
        policy, *zones = found.pop("zones")
        listed = [{"id": f"zone-{i}", "allocatable": zone, "available": zone} for i, zone in enumerate(zones)]
        found["numa"] = {"policy": policy, "scope": "pod", "zones": listed}
    return found


def _devices(words: Raw) -> Raw:
    """Return devices to be claimed. ``of_nodes``: how many each has, ``claims``: a class and how many, by name."""
    slices = [
        {"name": f"slice-{on}", "class": "gpu.nvidia.com", "node": on, "devices": n}
        for on, n in words["of_nodes"].items()
    ]
    claims = [
        {"namespace": "default", "name": name, "class": of, "count": count, "labels": {"kai.scheduler/queue": "q"}}
        for name, (of, count) in words["claims"].items()
    ]
    return {"device_classes": ["gpu.nvidia.com"], "slices": slices, "claims": claims}


def _job(name: str, job: Raw, age: int) -> Raw:
    """Return a job. ``pods``: of each pod its state, its node or "-", and its sub-group if it has one."""
    tasks = []
    for i, words in enumerate(job.pop("pods")):
        state, node, *sub = words.split()
        where = {} if node == "-" else {"node": node}
        tasks.append({"id": f"{name}-{i}", "state": state, **where, **({"subgroup": sub[0]} if sub else {})})
    tasks = [task | (job.get("of_pods") or {}).get(task["id"], {}) for task in tasks]
    job.pop("of_pods", None)
    gpus = {"gpus": 1} if "request" not in job else {}
    request = {"cpu_milli": 0, "memory": 0, **gpus, **job.pop("request", {})}
    runs = any(task["state"] == "Running" for task in tasks)
    priority = job.get("priority", 50)
    given = {"queue": "q", "priority": priority, "preemptible": priority < 100, "age_s": 60 * age}
    given |= {"last_start_age_s": 60} if runs else {}
    given |= {} if "subgroups" in job else {"min_available": 1}
    return {"name": name, **given, "request": request, **job, "tasks": tasks}


def _place(words: str) -> Raw:
    """Return where a pod is: its status, its node, and its zones as in ``0,1``."""
    status, *rest = words.split()
    found: Raw = {"status": status, **({"node": rest[0]} if rest else {})}
    return found | ({"numa_zones": [int(each) for each in rest[1].split(",")]} if len(rest) > 1 else {})


def names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(row["rule"]) for row in rows]


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_pods_are_where_the_rule_puts_them(row: Raw) -> None:
    found = run_kai_case(case_of(row), builtin_registry())
    assert not found, found.text
