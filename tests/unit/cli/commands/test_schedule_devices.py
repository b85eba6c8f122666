"""``pumice schedule``: devices of claims and shares in its answer, and KAI's language where it is meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.kit import Result, run

Raw = dict[str, Any]
CONF = 'actions: "allocate, consolidation"\ntiers:\n- plugins: [{name: predicates}, {name: proportion}]\n'
POD: Raw = {"apiVersion": "v1", "kind": "Pod"}
NAMES = {"volcano": "volcano", "kai": "kai-scheduler"}


def node(gpus: int = 0) -> Raw:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    metadata = {"name": "n1", "labels": {"nvidia.com/gpu.memory": "40000"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": amounts}}


def gang(minimum: int) -> list[Raw]:
    kinds = {
        "Queue": ("v2", {"name": "q"}, {"resources": {each: {"quota": -1, "limit": -1} for each in ("cpu", "gpu")}})
    }
    kinds["PodGroup"] = ("v2alpha2", {"name": "g", "namespace": "ns"}, {"minMember": minimum, "queue": "q"})
    return [
        {"apiVersion": f"scheduling.run.ai/{version}", "kind": kind, "metadata": metadata, "spec": spec}
        for kind, (version, metadata, spec) in kinds.items()
    ]


def pod(name: str, scheduler: str, annotations: dict[str, str], **spec: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": "ns", "uid": name, "annotations": annotations}
    return {**POD, "metadata": metadata, "spec": {"schedulerName": scheduler, "containers": [container], **spec}}


def sharers(count: int) -> list[Raw]:
    return [pod(f"p{i}", NAMES["kai"], {"pod-group-name": "g", "gpu-fraction": "0.5"}) for i in range(count)]


def partitions() -> list[Raw]:
    """A GPU of 80 GiB, whole and in halves, and a template for one half."""

    def device(name: str, memory: str) -> Raw:
        return {"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}]}

    spec = {
        "driver": "gpu.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
        "devices": [device("half-0", "40Gi"), device("half-1", "40Gi"), device("whole", "80Gi")],
    }
    asked = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.com"}}]}}
    head: Raw = {"apiVersion": "resource.k8s.io/v1"}
    return [
        head | {"kind": "DeviceClass", "metadata": {"name": "gpu.com"}, "spec": {}},
        head | {"kind": "ResourceSlice", "metadata": {"name": "n1-gpu"}, "spec": spec},
        head | {"kind": "ResourceClaimTemplate", "metadata": {"name": "t", "namespace": "ns"}, "spec": {"spec": asked}},
    ]


def schedule(folder: Path, objects: list[Raw], *options: str) -> Result:
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return run("schedule", folder, *options)


@pytest.mark.parametrize("language", NAMES)
def test_partitions_of_a_gpu_are_given_until_its_memory_is_used_up(tmp_path: Path, language: str) -> None:
    claims = {"resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}]}
    named = {"pod-group-name": "g"} if language == "kai" else {}
    pods = [pod(f"p{i}", NAMES[language], named, **claims) for i in range(3)]
    objects = [node(), *partitions(), *pods, *(gang(1) if language == "kai" else [])]
    found = schedule(tmp_path, objects, "--json").json
    assert found["devices"] == {
        "ns/p0": {"ns/p0/0": ["gpu.com/n1/half-0"]},
        "ns/p1": {"ns/p1/0": ["gpu.com/n1/half-1"]},
    }
    assert list(found["unscheduled"]) == ["ns/p2"]
    assert "p0: gpu.com/n1/half-0" in schedule(tmp_path, objects).out


@pytest.mark.parametrize("language", NAMES)
def test_an_extended_resource_that_a_class_backs_is_given_as_devices(tmp_path: Path, language: str) -> None:
    objects = [node(), *partitions(), *(gang(1) if language == "kai" else [])]
    objects[1]["spec"] = {"extendedResourceName": "example.com/gpu"}
    pods = [pod(f"p{i}", NAMES[language], {"pod-group-name": "g"} if language == "kai" else {}) for i in range(3)]
    for each in pods:
        each["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    found = schedule(tmp_path, [*objects, *pods], "--json").json
    assert found["devices"] == {f"ns/p{i}": {f"ns/p{i}/extended-resources": [f"gpu.com/n1/half-{i}"]} for i in range(2)}
    assert list(found["unscheduled"]) == ["ns/p2"]


def test_the_gpu_of_a_share_is_named_and_the_heading_says_bound(tmp_path: Path) -> None:
    objects = [node(gpus=1), *gang(1), *sharers(2)]
    found = schedule(tmp_path, objects, "--json").json
    assert found["devices"] == {"ns/p0": {"gpu_groups": ["p0-0"]}, "ns/p1": {"gpu_groups": ["p0-0"]}}
    lines = [" ".join(line.split()) for line in schedule(tmp_path, objects).out.splitlines()]
    assert "ns/g queue q, 2 pods, minMember 1, Bound" in lines
    assert "devices 2 p0, p1: shared GPU p0-0" in lines


def test_the_heading_says_how_far_a_gang_is_bound(tmp_path: Path) -> None:
    headings = {
        count: schedule(tmp_path, [node(gpus=1), *gang(minimum), *sharers(count)]).out
        for count, minimum in ((3, 1), (4, 4))
    }
    assert "minMember 1, Partly bound" in headings[3] and "minMember 4, Pending" in headings[4]


@pytest.mark.parametrize(
    ("conf", "note"),
    [(CONF, True), (f"---\n{CONF}", True), (f"dialect: kai\n{CONF}", False)],
)
def test_a_kai_conf_without_a_dialect_is_kais(tmp_path: Path, conf: str, note: bool) -> None:
    (tmp_path / "kai.conf").write_text(conf)
    found = schedule(tmp_path, [node(gpus=1), *gang(1), *sharers(1)], "--json")
    assert found.json["binds"] == {"ns/p0": "n1"}
    said = f"{tmp_path / 'kai.conf'} names no dialect and is read with dialect: kai, because of its name"
    assert (said in found.lines("note")) is note


def test_objects_of_kai_alone_are_scheduled_in_its_language(tmp_path: Path) -> None:
    found = schedule(tmp_path, [node(gpus=1), *gang(1), *sharers(1)], "--json")
    assert found.json["binds"] == {"ns/p0": "n1"}
    assert "policy: KAI's default, because queues and PodGroups are KAI's; choose another with --conf" in found.lines(
        "note"
    )


def test_a_kai_conf_that_names_another_dialect_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "kai.conf").write_text(f"dialect: volcano\n{CONF}")
    assert any('unknown action "consolidation"' in each for each in schedule(tmp_path, [node()]).lines("error"))
