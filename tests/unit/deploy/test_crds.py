"""The CRDs are structural and say what the spec's table says; a real API server has its word in tests/kube."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
FOLDERS = (DEPLOY / "crds", DEPLOY / "kai" / "crds")
Schema = dict[str, Any]

#: plural.group -> (version, kind, scope, has a status subresource, short names). Source: spec 06, first table, and KAI.
TABLE = {
    "podgroups.scheduling.volcano.sh": ("v1beta1", "PodGroup", "Namespaced", False, ["pg", "podgroup-v1beta1"]),
    "queues.scheduling.volcano.sh": ("v1beta1", "Queue", "Cluster", True, ["q", "queue-v1beta1"]),
    "hypernodes.topology.volcano.sh": ("v1alpha1", "HyperNode", "Cluster", True, ["hn"]),
    "numatopologies.nodeinfo.volcano.sh": ("v1alpha1", "Numatopology", "Cluster", False, ["numatopo"]),
    "nodeshards.shard.volcano.sh": ("v1alpha1", "NodeShard", "Cluster", True, ["nsh"]),
    "jobs.batch.volcano.sh": ("v1alpha1", "Job", "Namespaced", True, ["vcjob", "vj"]),
    "commands.bus.volcano.sh": ("v1alpha1", "Command", "Namespaced", False, []),
    "cronjobs.batch.volcano.sh": ("v1alpha1", "CronJob", "Namespaced", True, ["cronvcjob", "cronvj"]),
    "jobflows.flow.volcano.sh": ("v1alpha1", "JobFlow", "Namespaced", True, ["jf"]),
    "jobtemplates.flow.volcano.sh": ("v1alpha1", "JobTemplate", "Namespaced", True, ["jt"]),
    "queues.scheduling.run.ai": ("v2", "Queue", "Cluster", True, []),
    "podgroups.scheduling.run.ai": ("v2alpha2", "PodGroup", "Namespaced", True, ["pg"]),
    "bindrequests.scheduling.run.ai": ("v1alpha2", "BindRequest", "Namespaced", True, []),
    "topologies.kai.scheduler": ("v1alpha1", "Topology", "Cluster", False, []),
}
COLUMNS = {
    "podgroups.scheduling.volcano.sh": ["STATUS", "minMember", "RUNNINGS", "AGE", "QUEUE"],
    "hypernodes.topology.volcano.sh": ["Tier", "TierName", "NodeCount", "Age"],
    "jobs.batch.volcano.sh": ["STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE"],
    "queues.scheduling.run.ai": ["Priority", "Parent", "Children", "DisplayName"],
}
FORBIDDEN = {
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
    "$ref",
    "uniqueItems",
    "additionalItems",
}
TYPES = {"object", "array", "string", "integer", "number", "boolean"}
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


@functools.cache
def crds() -> dict[str, dict[str, Any]]:
    found = (
        yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
        for folder in FOLDERS
        for path in sorted(folder.glob("*.yaml"))
    )
    return {crd["metadata"]["name"]: crd for crd in found}


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema node that describes a value, with its path."""
    yield path, schema
    for key, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{key}")
    if isinstance(schema.get("items"), dict):
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def unstructural(path: str, schema: Schema) -> Iterator[str]:
    """What keeps one node from being structural. Source: Kubernetes, "Specifying a structural schema"."""
    keys = set(schema)
    if keys & FORBIDDEN:
        yield f"{path}: {sorted(keys & FORBIDDEN)} may not be used"
    if schema.get("x-kubernetes-int-or-string"):
        if "type" in keys or schema.get("anyOf") != INT_OR_STRING:
            yield f"{path}: int-or-string has no type, and anyOf integer, string"
    elif schema.get("type") not in TYPES:
        yield f"{path}: type {schema.get('type')}"
    elif keys & {"anyOf", "allOf", "oneOf", "not"}:
        yield f"{path}: say it with a rule"
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        yield f"{path}: an array has items"
    if "properties" in keys and "additionalProperties" in keys:
        yield f"{path}: properties or additionalProperties"
    if schema.get("additionalProperties") in (True, False):
        yield f"{path}: additionalProperties is a schema"
    if keys & {"properties", "required", "additionalProperties", "maxProperties"} and schema.get("type") != "object":
        yield f"{path}: properties of what is no object"
    absent = set(schema.get("required", ())) - set(schema.get("properties", ()))
    if absent:
        yield f"{path}: {sorted(absent)} required, but not described"
    if schema.get("x-kubernetes-list-type") == "map":
        inner = schema["items"]
        for key in schema["x-kubernetes-list-map-keys"]:
            if key not in inner.get("required", ()) and "default" not in inner["properties"][key]:
                yield f"{path}: key {key} is neither required nor defaulted"
    if schema.get("x-kubernetes-list-type") == "set" and schema["items"]["type"] in ("object", "array"):
        yield f"{path}: a set of what cannot be compared"


def invalid(path: str, value: Any, schema: Schema) -> Iterator[str]:
    """Why a value does not satisfy a schema, for the constraints that our CRDs use. Rules are left to the server."""
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, int) or (isinstance(value, str) and re.search(schema["pattern"], value))
        yield from () if fits else [f"{path}: {value!r} is no quantity"]
        return
    wanted = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "number": float}
    if not isinstance(value, wanted[schema["type"]]) or (schema["type"] == "integer" and isinstance(value, bool)):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not among {schema['enum']}"
    if isinstance(value, str) and ("pattern" in schema and not re.search(schema["pattern"], value)):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value} is out of range"
    if isinstance(value, dict):
        yield from (f"{path}: {key} is missing" for key in schema.get("required", ()) if key not in value)
        for key, child in value.items():
            inner = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
            yield from invalid(f"{path}.{key}", child, inner) if inner else [f"{path}.{key}: would be pruned"]
    if isinstance(value, list):
        for i, child in enumerate(value):
            yield from invalid(f"{path}[{i}]", child, schema["items"])


def schema_of(crd: dict[str, Any]) -> Schema:
    found: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def test_every_kind_of_the_table_and_no_other() -> None:
    found = {}
    for name, crd in crds().items():
        spec, (version,) = crd["spec"], crd["spec"]["versions"]
        names = spec["names"]
        assert name == f"{names['plural']}.{spec['group']}"
        assert names["listKind"] == f"{names['kind']}List" and names["singular"] == names["kind"].lower()
        assert version["served"] and version["storage"]
        status = "status" in version.get("subresources", {})
        found[name] = (version["name"], names["kind"], spec["scope"], status, names.get("shortNames", []))
    assert found == TABLE


@pytest.mark.parametrize("name", TABLE)
def test_schema_is_structural(name: str) -> None:
    found = [problem for path, node in nodes(schema_of(crds()[name])) for problem in unstructural(path, node)]
    assert found == []


@pytest.mark.parametrize("name", TABLE)
def test_root_leaves_metadata_to_the_server(name: str) -> None:
    properties = schema_of(crds()[name])["properties"]
    assert properties["metadata"] == {"type": "object"}
    assert properties["apiVersion"] == properties["kind"] == {"type": "string"}


@pytest.mark.parametrize("name", TABLE)
def test_defaults_satisfy_their_schema(name: str) -> None:
    found = [
        problem
        for path, node in nodes(schema_of(crds()[name]))
        if "default" in node
        for problem in invalid(path, node["default"], node)
    ]
    assert found == []


@pytest.mark.parametrize("name", TABLE)
def test_rules_have_messages_and_patterns_compile(name: str) -> None:
    for path, node in nodes(schema_of(crds()[name])):
        for rule in node.get("x-kubernetes-validations", ()):
            assert rule.get("message"), path
            assert rule["rule"].count("(") == rule["rule"].count(")"), path
        if "pattern" in node:
            re.compile(node["pattern"])


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_those_of_their_makers_and_lead_somewhere(name: str) -> None:
    columns = crds()[name]["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == COLUMNS[name]
    paths = {path for path, _ in nodes(schema_of(crds()[name]))} | {".metadata.creationTimestamp"}
    assert {column["jsonPath"] for column in columns} <= paths


@pytest.mark.parametrize(
    ("name", "path", "wanted"),
    [
        ("podgroups.scheduling.volcano.sh", ".spec.queue", "default"),
        ("podgroups.scheduling.volcano.sh", ".spec.networkTopology.mode", "hard"),
        ("podgroups.scheduling.volcano.sh", ".spec.subGroupPolicy[].subGroupSize", 1),
        ("podgroups.scheduling.volcano.sh", ".spec.subGroupPolicy[].minSubGroups", 0),
        ("queues.scheduling.volcano.sh", ".spec.weight", 1),
        ("queues.scheduling.volcano.sh", ".spec.dequeueStrategy", "traverse"),
        ("jobs.batch.volcano.sh", ".spec.queue", "default"),
        ("jobs.batch.volcano.sh", ".spec.maxRetry", 3),
        ("jobs.batch.volcano.sh", ".spec.tasks[].maxRetry", 3),
        ("jobs.batch.volcano.sh", ".spec.schedulerName", "volcano"),
        ("cronjobs.batch.volcano.sh", ".spec.concurrencyPolicy", "Allow"),
        ("cronjobs.batch.volcano.sh", ".spec.successfulJobsHistoryLimit", 3),
        ("cronjobs.batch.volcano.sh", ".spec.failedJobsHistoryLimit", 1),
        ("jobflows.flow.volcano.sh", ".spec.jobRetainPolicy", "retain"),
    ],
)
def test_defaults_of_the_spec(name: str, path: str, wanted: object) -> None:
    assert dict(nodes(schema_of(crds()[name])))[path]["default"] == wanted
