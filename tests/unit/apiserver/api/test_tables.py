"""What ``kubectl get`` prints."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.api.jsonpath import lookup
from pumice.apiserver.api.tables import age, table
from pumice.apiserver.cluster import Cluster
from tests.unit.apiserver.worlds import START, cluster, node, pod, queue

STAMP = "2027-01-15T08:00:00Z"


@pytest.fixture(scope="module")
def world() -> Cluster:
    return cluster()


def cells(world: Cluster, full_name: str, obj: dict[str, Any]) -> dict[str, Any]:
    resource = world.registry.of_table(full_name)
    assert resource is not None
    found = table(resource, [obj], {}, START, "None")
    (row,) = found["rows"]
    return dict(zip((c["name"] for c in found["columnDefinitions"]), row["cells"], strict=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (4 * 3600 + 60, "4h1m"),
        (10 * 3600, "10h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
    ],
)
def test_age(seconds: int, text: str) -> None:
    assert age(STAMP, START + seconds) == text


@pytest.mark.parametrize("stamp", [None, "yesterday", 7])
def test_an_age_that_is_unknown(stamp: Any) -> None:
    assert age(stamp, START) == "<unknown>"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".a.b", [1], id="fields"),
        pytest.param("{.a.b}", [1], id="in braces"),
        pytest.param(".a['b']", [1], id="quoted"),
        pytest.param(".c[0].n", ["x"], id="index"),
        pytest.param(".c[-1].n", ["y"], id="index from the end"),
        pytest.param(".c[7].n", [], id="index beyond"),
        pytest.param(".c[*].n", ["x", "y"], id="all"),
        pytest.param('.c[?(@.n=="y")].v', [2], id="filter"),
        pytest.param(r".d\.e", [3], id="a dot in a name"),
        pytest.param(".none.b", [], id="absent"),
        pytest.param(".a[", [], id="no path"),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    obj = {"a": {"b": 1}, "c": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "d.e": 3}
    assert lookup(obj, path) == found


@pytest.mark.parametrize(
    ("more", "status", "word"),
    [
        pytest.param({}, {"phase": "Pending"}, "Pending", id="waits for a scheduler"),
        pytest.param({"nodeName": "n"}, {"phase": "Pending"}, "ContainerCreating", id="bound"),
        pytest.param({"nodeName": "n"}, {"phase": "Running"}, "Running", id="runs"),
        pytest.param({"nodeName": "n"}, {"phase": "Succeeded"}, "Completed", id="ended"),
        pytest.param({"nodeName": "n"}, {"phase": "Failed"}, "Error", id="failed"),
        pytest.param({}, {"phase": "Failed", "reason": "Evicted"}, "Evicted", id="with a reason"),
        pytest.param(
            {},
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
            id="gated",
        ),
    ],
)
def test_the_word_for_a_pod(world: Cluster, more: dict[str, Any], status: dict[str, Any], word: str) -> None:
    assert cells(world, "pods", {**pod("a", **more), "status": status})["Status"] == word


def test_a_pod_that_is_being_deleted(world: Cluster) -> None:
    obj = pod("a") | {"status": {"phase": "Running"}}
    obj["metadata"]["deletionTimestamp"] = STAMP
    assert cells(world, "pods", obj)["Status"] == "Terminating"


def test_a_node(world: Cluster) -> None:
    obj = node("n") | {"spec": {"unschedulable": True}}
    obj["metadata"]["labels"] = {"node-role.kubernetes.io/gpu": "", "other": "x"}
    obj["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    shown = cells(world, "nodes", obj)
    assert (shown["Status"], shown["Roles"]) == ("NotReady,SchedulingDisabled", "gpu")


def test_columns_of_a_definition(world: Cluster) -> None:
    shown = cells(world, "queues.scheduling.volcano.sh", queue("q", weight=3, parent="root"))
    assert (shown["Name"], shown["PARENT"], shown["WEIGHT"], shown["STATE"]) == ("q", "root", 3, None)
