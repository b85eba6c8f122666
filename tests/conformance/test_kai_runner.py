"""The runner of KAI's cases builds the clusters that they describe, and says what is missing for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pumice.framework.plugin.policy_file import Policy
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.kai.compare import compare_places
from tests.conformance.runner.kai.objects import pod_group
from tests.conformance.runner.kai.run import Cluster
from tests.conformance.runner.kai.seen import Place, places_in

SHARED = Path(os.environ.get("PUMICE_SHARED") or Path(__file__).parents[3] / "shared")
FOLDERS = [SHARED / "conformance" / name for name in ("kai", "kai-generated")]
SOME = [path for folder in FOLDERS for path in sorted(folder.rglob("*.yaml"))[::25]]

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not SOME, reason=f"no recorded cases below {SHARED}: put `shared` beside the checkout or set PUMICE_SHARED"
    ),
]


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(), yaml.CSafeLoader)
    return found


@pytest.mark.parametrize("path", SOME, ids=lambda path: f"{path.parent.name}/{path.stem[:30]}")
def test_the_cluster_is_the_one_that_the_case_describes(path: Path) -> None:
    case = read(path)
    tables = Cluster(case, Policy((), ())).store().snapshot().tables
    wanted = {
        task["id"]: Place(task["state"], task["node"] if task["state"] in ("Running", "Releasing") else "")
        for job in case["jobs"]
        for task in job["tasks"]
        if task["state"] != "Pipelined"
    }
    found = places_in(tables)
    assert {name: found[name] for name in wanted} == wanted
    assert len(tables.jobs.live) == len(case["jobs"])
    assert [len(rows) for rows in tables.jobs.tasks if rows is not None] == [len(job["tasks"]) for job in case["jobs"]]
    assert not np.isnan(tables.nodes.idle).any()


@pytest.mark.parametrize("constraint", [None, {}, {"topology": "t"}, {"topology": "", "required": ""}])
def test_a_topology_constraint_without_levels_is_none(constraint: dict[str, str] | None) -> None:
    podset = {"name": "s", "min_available": 1, "topology_constraint": constraint}
    tree = {"podsets": [podset], "topology_constraint": constraint}
    found = pod_group({"name": "j", "queue": "q", "preemptible": True, "priority": 1, "age_s": 0, "subgroups": tree})
    assert found.gang is not None
    assert (found.gang.topology, found.gang.sub_groups[0].topology) == (None, None)


def case_of_one_task(**expected: Any) -> dict[str, Any]:
    return {"jobs": [{"name": "j", "tasks": [{"id": "j-0"}]}], "expected": {"jobs": {"j": expected}}}


@pytest.mark.parametrize(
    ("expected", "place", "line"),
    [
        ({"status": "Running", "node": "a"}, Place("Running", "a"), ""),
        ({"status": "Running"}, Place("Running", "b"), ""),
        ({"status": "Running", "node": "a"}, Place("Running", "b"), "j-0: expected Running@a, found Running@b"),
        ({"status": "Pending", "node": "a"}, Place("Pending"), ""),
        ({"status": "Binding", "node": "a"}, Place("Pending"), "j-0: expected Binding@a, found Pending"),
        ({"node": "a"}, Place("Pending"), ""),
    ],
)
def test_states_and_nodes_are_compared_where_they_are_given(expected: Any, place: Place, line: str) -> None:
    found = Differences()
    compare_places(case_of_one_task(**expected), {"j-0": place}, found)
    assert found.text == line
