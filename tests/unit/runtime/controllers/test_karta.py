"""Gangs of kinds without a rule, as a Karta describes them, and the paths in it."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.runtime.controllers.kai.groups import GroupingSettings, group_for
from pumice.runtime.controllers.kai.karta import described_kind, karta_for
from pumice.runtime.controllers.kai.paths import PathError, values_at
from pumice.runtime.controllers.kai.plan import NoGang
from pumice.runtime.controllers.kai.rules import PodContext
from tests.unit.runtime.controllers.test_kai_groups import Obj, owner, pod, wanted

FLOW = owner("jobs.example.com/v1", "Flow", spec={"master": {"replicas": 1}, "worker": {"replicas": 2}})
RACK = {"topologyName": "cluster", "requiredTopologyLevel": "rack", "preferredTopologyLevel": ""}


def component(name: str, **more: Any) -> Obj:
    return {
        "name": name,
        "ownerRef": "flow",
        "scaleDefinition": {"replicasPath": f".spec.{name}.replicas"},
        "podSelector": {"componentTypeSelector": {"keyPath": ".metadata.labels.role", "value": name}},
        **more,
    }


def karta(gangs: Obj, *children: Obj, **metadata: Any) -> Obj:
    root = {"name": "flow", "kind": {"group": "jobs.example.com", "version": "v1", "kind": "Flow"}}
    listed = list(children) or [component("master"), component("worker")]
    spec = {
        "structureDefinition": {"rootComponent": root, "childComponents": listed},
        "optimizationInstructions": {"gangScheduling": gangs},
    }
    return {"apiVersion": "run.ai/v1alpha1", "kind": "Karta", "metadata": {"name": "flow", **metadata}, "spec": spec}


def by_components(*names: str, **more: Any) -> Obj:
    return {"podGroup": {"name": "training", "subGroups": [{"componentName": each} for each in names], **more}}


def by_keys(name: str, *paths: str, **more: Any) -> Obj:
    member = {"componentName": name, "groupByKeyPaths": list(paths), **more}
    return {"podGroups": [{"name": "g", "members": [member]}]}


def worker() -> Obj:
    return pod(labels={"role": "worker", "run": "r7"})


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        pytest.param(
            karta(by_components("master", "worker")),
            ("pg-uid-o-training", 2, {"master": 1, "worker": 2}, "train"),
            id="a sub-group for each component",
        ),
        pytest.param(karta(by_components()), ("pg-uid-o-training", 3, {}, "train"), id="all components together"),
        pytest.param(
            karta(by_keys("flow", ".metadata.labels.run")), ("pg-uid-o-r7", 3, {}, "train"), id="by a key of pods"
        ),
        pytest.param(
            karta(by_keys("worker", '.metadata.labels["other"] // "0"')),
            ("pg-uid-o-0", 2, {}, "train"),
            id="by a key with a default, of a component",
        ),
        pytest.param(
            karta(
                by_components("worker"),
                component("worker", scaleDefinition={"minReplicasPath": ".spec.least", "replicasPath": ".spec.most"}),
                component("inner", ownerRef="worker", scaleDefinition={"replicasPath": ".spec.worker.replicas"}),
            ),
            ("pg-uid-o-training", 1, {"worker": 2}, "train"),
            id="without a scale of its own it has that below it",
        ),
        pytest.param(
            karta(
                by_components("worker"),
                component("worker"),
                component("inner", ownerRef="worker", scaleDefinition={"replicasPath": ".spec.worker.replicas"}),
            ),
            ("pg-uid-o-training", 1, {"worker": 4}, "train"),
            id="its scale times that below it",
        ),
        pytest.param(
            karta(by_components(), component("master"), component("worker", ownerRef=None)),
            ("pg-uid-o-training", 3, {}, "train"),
            id="without an owner of its own it is below the root",
        ),
        pytest.param(
            karta(
                by_components("worker"),
                {"name": "worker", "ownerRef": "flow", "specDefinition": {"podSpecPath": ".spec"}},
            ),
            ("pg-uid-o-training", 1, {"worker": 1}, "train"),
            id="without any scale it counts components that have pods",
        ),
    ],
)
def test_the_gang_is_what_the_karta_says(definition: Obj, found: tuple[Any, ...]) -> None:
    assert wanted(worker(), FLOW, kartas=[definition]) == found


def test_a_pod_is_in_the_sub_group_of_its_component_and_places_are_kept() -> None:
    definition = karta(by_components("master", "worker", topology=RACK))
    definition["spec"]["optimizationInstructions"]["gangScheduling"]["podGroup"]["subGroups"][1]["topology"] = RACK
    found = group_for(worker(), PodContext((FLOW,), kartas=[definition]), GroupingSettings())
    assert found is not None and found.member == "worker"
    place = {"topology": "cluster", "requiredTopologyLevel": "rack"}
    spec = found.group["spec"]
    assert spec["topologyConstraint"] == place and spec["subGroups"][1]["topologyConstraint"] == place


@pytest.mark.parametrize(
    "kartas",
    [
        pytest.param([], id="none"),
        pytest.param([karta(by_components("worker")), karta(by_components("master"))], id="two"),
        pytest.param([karta({})], id="one without gangs"),
        pytest.param([karta(by_components("worker"), deletionTimestamp="now")], id="one that is being deleted"),
    ],
)
def test_without_one_karta_the_rule_for_unknown_kinds_counts(kartas: list[Obj]) -> None:
    assert karta_for(FLOW, kartas) is None
    assert wanted(worker(), FLOW, kartas=kartas) == ("pg-o-uid-o", 1, {}, "train")


@pytest.mark.parametrize(("group", "kind"), [("batch", "Job"), ("apps", "StatefulSet")])
def test_a_kind_with_a_rule_keeps_it(group: str, kind: str) -> None:
    job = owner(f"{group}/v1", kind, "j")
    definition = karta(by_components("worker"))
    of_kind = {"version": "v1", "group": group, "kind": kind}
    definition["spec"]["structureDefinition"]["rootComponent"]["kind"] = of_kind
    assert described_kind(definition) == (f"{group}/v1", kind)
    assert wanted(worker(), job, kartas=[definition])[0] == "pg-j-uid-j"


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        (karta(by_components("other")), "found component 'other', wanted one of its structureDefinition"),
        (
            karta(by_components("worker"), component("worker", scaleDefinition={"replicasPath": ".spec.none"})),
            "component worker: found no scale, wanted one in its scaleDefinition",
        ),
        (
            karta(by_components("worker"), component("worker", scaleDefinition={"replicasPath": ".a | length"})),
            "found '.a | length', wanted a path such as",
        ),
        (
            karta(by_components("worker", "Worker")),
            "found a component in two subGroups, wanted each in one: worker, Worker",
        ),
        (karta(by_keys("flow", ".metadata.labels.none")), ".metadata.labels.none of pod p: found 0 values"),
        (karta(by_keys("flow", filters=[".x"])), "found filters, wanted none"),
        (karta(by_keys("nowhere")), "found no member of a group with its component"),
        (karta(by_components("worker", topology={"topologyName": "t"})), "found a topology, wanted topologyName and a"),
        (
            karta(by_components("worker"), component("worker", ownerRef="worker", scaleDefinition={})),
            "component worker: found no scale",
        ),
        (
            karta(by_components("c0"), *(component(f"c{i}", ownerRef=f"c{i - 1}") for i in range(1000))),
            "found components more than 64 deep, wanted at most that",
        ),
    ],
)
def test_what_is_wrong_with_a_karta_is_named(definition: Obj, said: str) -> None:
    with pytest.raises(NoGang) as error:
        wanted(worker(), FLOW, kartas=[definition])
    assert str(error.value).startswith("Karta flow: ") and said in str(error.value)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".", [{"a": [{"b": 1}, {"b": 2}, {}], "c-d": {"e": "x"}, "n": None}]),
        (".a[].b", [1, 2]),
        (".a[1].b", [2]),
        (".a[7].b", []),
        ('.["c-d"].e', ["x"]),
        ('."c-d".e', ["x"]),
        (".n", []),
        (".n // 3", [3]),
        ('.x.y[]? // "z"', ["z"]),
        (".a[0].b // 9", [1]),
    ],
)
def test_a_path_finds_values(path: str, found: list[Any]) -> None:
    assert values_at(path, {"a": [{"b": 1}, {"b": 2}, {}], "c-d": {"e": "x"}, "n": None}) == found


@pytest.mark.parametrize("path", ["", "a.b", ".a | .b", ".a[", ".a // [1]", ".a // x", "any(.a[]; .b)", ".a-b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(PathError, match="wanted a path such as"):
        values_at(path, {"a": 1})


@pytest.mark.parametrize(
    ("path", "said"),
    [(".a" * 501, "found a path of 1002 characters, wanted at most 1000"), (".a // " + "[" * 990, "wanted a path")],
)
def test_a_path_is_read_whole_or_not_at_all(path: str, said: str) -> None:
    def deep(frames: int) -> None:
        with pytest.raises(PathError, match=said):
            values_at(path, {"a": 1})
        if frames:
            deep(frames - 1)

    deep(100)
