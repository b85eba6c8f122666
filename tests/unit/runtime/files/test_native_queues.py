"""Kubernetes' own groups in files that name no queue: that of the scheduler which their pods name, as on a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.model.queue import Queue
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.files.manifests import load_manifests

Raw = dict[str, Any]
_HEAD: Raw = {"apiVersion": "scheduling.k8s.io/v1alpha3"}


def group(name: str, parent: str = "", **metadata: Any) -> Raw:
    spec: Raw = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    spec |= {"parentCompositePodGroupName": parent} if parent else {}
    return {**_HEAD, "kind": "PodGroup", "metadata": {"name": name, "namespace": "ml", **metadata}, "spec": spec}


def composite(name: str, parent: str = "", **metadata: Any) -> Raw:
    spec: Raw = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}
    spec |= {"parentCompositePodGroupName": parent} if parent else {}
    metadata = {"name": name, "namespace": "ml", **metadata}
    return {**_HEAD, "kind": "CompositePodGroup", "metadata": metadata, "spec": spec}


def pod(of: str, scheduler: str) -> Raw:
    spec = {"schedulerName": scheduler, "schedulingGroup": {"podGroupName": of}, "containers": [{"name": "c"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{of}-0", "namespace": "ml"}, "spec": spec}


def queues(tmp_path: Path, *objects: Raw) -> tuple[dict[str, str], list[str]]:
    """Return the queue of each gang, and the queues that there are."""
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    found = load_manifests([tmp_path]).objects
    gangs = {each.name: each.queue for each in found if isinstance(each, PodGroup)}
    return gangs, sorted(each.name for each in found if isinstance(each, Queue))


@pytest.mark.parametrize(
    ("scheduler", "metadata", "queue"),
    [
        ("volcano", {}, "default"),
        ("kai-scheduler", {}, "default-queue"),
        ("kai-scheduler", {"labels": {"kai.scheduler/queue": "a"}}, "a"),
        ("kai-scheduler", {"annotations": {"scheduling.volcano.sh/queue-name": "default"}}, "default"),
        ("volcano", {"annotations": {"scheduling.volcano.sh/queue-name": "b"}}, "b"),
    ],
)
def test_a_group_that_names_no_queue_is_in_the_default_one_of_its_scheduler(
    tmp_path: Path, scheduler: str, metadata: Raw, queue: str
) -> None:
    found, made = queues(tmp_path, group("g", **metadata), pod("g", scheduler))
    assert found == {"g": queue}
    assert made == (["default-parent-queue", "default-queue"] if queue == "default-queue" else [])


def test_a_tree_is_in_the_queue_of_the_scheduler_of_its_pods(tmp_path: Path) -> None:
    tree = composite("all"), composite("inner", "all"), group("g", "inner"), composite("other"), group("h", "other")
    found, _ = queues(tmp_path, *tree, pod("g", "kai-scheduler"), pod("h", "volcano"))
    assert found == {"composite:all": "default-queue", "composite:other": "default"}


def test_a_default_queue_in_the_files_is_used_as_it_is(tmp_path: Path) -> None:
    own = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "default-queue"}, "spec": {}}
    assert queues(tmp_path, own, group("g"), pod("g", "kai-scheduler"))[1] == ["default-queue"]


def test_parents_in_a_circle_end_the_walk(tmp_path: Path) -> None:
    circle = composite("a", "b"), composite("b", "a"), group("g", "a")
    assert queues(tmp_path, *circle, pod("g", "kai-scheduler"))[0] == {"g": "default-queue"}
