"""Wrong decisions that users of other schedulers reported, as files and commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.kit import Result, run

Obj = dict[str, Any]

LANGUAGES = ("volcano", "kai")
SCHEDULER = {"volcano": "volcano", "kai": "kai-scheduler"}
UNBOUND = {resource: {"quota": -1, "limit": -1} for resource in ("cpu", "memory", "gpu")}


def obj(api: str, kind: str, name: str, spec: Obj | None = None, **more: Any) -> Obj:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **({} if spec is None else {"spec": spec}), **more}


def node(name: str = "n1", cpu: str = "4", **more: Any) -> Obj:
    room = {"cpu": cpu, "memory": "64Gi", "pods": "110", **more}
    return obj("v1", "Node", name, status={"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]})


def container(cpu: str, name: str = "main", **more: Any) -> Obj:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}


def queue(language: str = "volcano", name: str = "q") -> list[Obj]:
    if language == "volcano":
        return [obj("scheduling.volcano.sh/v1beta1", "Queue", name, {"weight": 1})]
    parent = obj("scheduling.run.ai/v2", "Queue", "all", {"resources": UNBOUND})
    return [parent, obj("scheduling.run.ai/v2", "Queue", name, {"parentQueue": "all", "resources": UNBOUND})]


def gang(name: str, *specs: Obj, language: str = "volcano", of: str = "q", status: Obj | None = None) -> list[Obj]:
    """A group of all of ``specs`` in namespace ``ns``; pods with a node run there."""
    api = "scheduling.volcano.sh/v1beta1" if language == "volcano" else "scheduling.run.ai/v2alpha2"
    key = "scheduling.k8s.io/group-name" if language == "volcano" else "pod-group-name"
    inside = {"namespace": "ns"}
    found = [obj(api, "PodGroup", name, {"minMember": len(specs), "queue": of}, metadata=inside)]
    for i, spec in enumerate(specs):
        phase = {"phase": "Running" if spec.get("nodeName") else "Pending", **(status or {})}
        found.append(
            obj(
                *("v1", "Pod", f"{name}-{i}", {"schedulerName": SCHEDULER[language], **spec}),
                metadata={**inside, "annotations": {key: name}},
                status=phase,
            )
        )
    return found


def schedule(folder: Path, *objects: Obj, language: str = "volcano", conf: str = "") -> Result:
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    options: tuple[object, ...] = ()
    if conf or language == "kai":
        (folder / "policy").write_text(conf or "dialect: kai\n")
        options = ("--conf", folder / "policy")
    return run("schedule", folder / "all.json", *options, "--json")


def bound(result: Result) -> dict[str, str]:
    return {pod.partition("/")[2]: node for pod, node in result.json["binds"].items()}


# -- what a sidecar holds


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("waiting", "fits"), [("1", True), ("2", False)])
def test_a_sidecar_that_still_holds_more_than_its_spec_says_is_counted(
    tmp_path: Path, language: str, waiting: str, fits: bool
) -> None:
    """KAI#1894: 1 core of the container and 2 that the sidecar has not given back leave 1 of 4."""
    side = container("500m", "side", restartPolicy="Always")
    holds = {"name": "side", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
    old = {"nodeName": "n1", "containers": [container("1")], "initContainers": [side]}
    result = schedule(
        *(tmp_path, node(), *queue(language)),
        *gang("old", old, language=language, status={"initContainerStatuses": [holds]}),
        *gang("new", {"containers": [container(waiting)]}, language=language),
        language=language,
    )
    assert bound(result) == ({"new-0": "n1"} if fits else {})


# -- what admission fills in

PREEMPT = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: predicates}]
"""


@pytest.mark.parametrize("workload", ["pods", "job"])
@pytest.mark.parametrize(("policy", "leaves"), [("Never", []), ("PreemptLowerPriority", ["ns/old-0"])])
def test_the_preemption_policy_of_a_priority_class_holds_for_its_pods(
    tmp_path: Path, workload: str, policy: str, leaves: list[str]
) -> None:
    """volcano#3512: the pod names the class alone, as people write it."""
    high = {"priorityClassName": "high", "containers": [container("2")]}
    new = gang("new", high)
    new[0]["spec"]["priorityClassName"] = "high"
    if workload == "job":
        tasks = [{"name": "t", "replicas": 1, "template": {"spec": high}}]
        spec = {"queue": "q", "minAvailable": 1, "priorityClassName": "high", "tasks": tasks}
        new = [obj("batch.volcano.sh/v1alpha1", "Job", "new", spec, metadata={"namespace": "ns"})]
    old = gang("old", {"nodeName": "n1", "containers": [container("2")]})
    old[0]["spec"]["minMember"] = 0
    result = schedule(
        *(tmp_path, node(cpu="2"), *queue(), *old, *new),
        obj("scheduling.k8s.io/v1", "PriorityClass", "high", value=10, preemptionPolicy=policy),
        conf=PREEMPT,
    )
    assert result.json["evicts"] == leaves


# -- what cannot be read


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_minimum_that_cannot_be_read_is_no_number(tmp_path: Path, language: str) -> None:
    """It counts as the largest number, which is in no file."""
    group, *pods = gang("g", {"containers": [container("1")]}, language=language)
    group["spec"]["minMember"] = "banana"
    objects = [node(), *queue(language), group, *pods]
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (tmp_path / "policy").write_text("dialect: kai\n" if language == "kai" else "actions: allocate\n")
    shown = run("schedule", tmp_path / "all.json", "--conf", tmp_path / "policy").out
    assert "minMember unreadable" in shown
    assert "2147483647" not in shown.replace("an integer from 0 to 2147483647", "")
