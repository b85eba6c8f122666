"""Keys that nothing reads are named: those of the definitions are all known, and all others are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.model.manifest.reading.keys import AMOUNTS, SPEC_KEYS, UNKNOWN_MAX, Keys, UnknownKey, unknown_keys

DEFINITIONS = Path(__file__).resolve().parents[3] / "deploy" / "crds"


def keys_of(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The keys of a definition, as SPEC_KEYS has them."""
    if schema.get("type") == "array":
        return keys_of(schema.get("items", {}))
    fields = schema.get("properties")
    if not fields or schema.get("x-kubernetes-preserve-unknown-fields"):
        return None
    return {name: keys_of(below) for name, below in fields.items()}


def defined(keys: Keys | None) -> dict[str, Any] | None:
    """The keys as a definition has them: it does not list the names of resources."""
    return None if keys is None or keys is AMOUNTS else {name: defined(below) for name, below in keys.items()}


@pytest.mark.parametrize("known", SPEC_KEYS, ids=lambda known: known[1])
def test_the_keys_are_those_of_the_definitions(known: tuple[str, str]) -> None:
    group_version, kind = known
    group, version = group_version.split("/")
    for file in DEFINITIONS.glob("*.yaml"):
        spec = yaml.safe_load(file.read_text())["spec"]
        if (spec["group"], spec["names"]["kind"]) != (group, kind):
            continue
        (schema,) = [each["schema"] for each in spec["versions"] if each["name"] == version]
        assert defined(SPEC_KEYS[known]) == keys_of(schema["openAPIV3Schema"]["properties"]["spec"])
        return
    pytest.fail(f"no definition of {kind}")


JOB: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "x", "anything": 1},
}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({"spec": {"tasks": [{"name": "a", "template": {"spec": {"what": 1}}}]}}, [], id="nothing-unknown"),
        pytest.param({"spec": {"task": [{"name": "a"}]}}, [UnknownKey("spec.task", "tasks")], id="task-for-tasks"),
        pytest.param({"spce": {}}, [UnknownKey("spce", "spec")], id="top"),
        pytest.param(
            {"spec": {"tasks": [{"replica": 1}, {"replica": 2, "minavailable": 1}]}},
            [UnknownKey("spec.tasks[].replica", "replicas"), UnknownKey("spec.tasks[].minavailable", "minAvailable")],
            id="of-tasks-once",
        ),
        pytest.param({"spec": {"xyzzy": 1}}, [UnknownKey("spec.xyzzy", None)], id="like-none"),
        pytest.param({"spec": 7}, [], id="no-object"),
        pytest.param({"spec": {"plugins": {"svc": [], "anything": []}}}, [], id="a-map-of-names"),
    ],
)
def test_unknown_keys(more: dict[str, Any], expected: list[UnknownKey]) -> None:
    assert unknown_keys(JOB | more) == expected


def test_names_of_resources_that_are_none_are_reported() -> None:
    amounts = {"mem": "4Gi", "cpu": 1, "pods": 9, "nvidia.com/gpu": 1, "hugepages-2Mi": 1, "deviceclass/a": 1}
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "spec": {"capability": amounts}}
    assert unknown_keys(queue) == [UnknownKey("spec.capability.mem", "memory")]


def test_a_tenant_can_only_make_so_many() -> None:
    assert len(unknown_keys(JOB | {"spec": {f"key-{i}": 1 for i in range(10_000)}})) == UNKNOWN_MAX


def test_other_kinds_are_left_alone() -> None:
    assert unknown_keys({"apiVersion": "v1", "kind": "Pod", "spce": 1}) == []
