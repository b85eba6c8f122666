"""The codec reads what ``model.manifest`` reads: the same values for the same objects, the same refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.kube.api.codec import BadObject, Codec, read_bookmark, read_event
from pumice.kube.api.errors import ApiError, Garbage
from pumice.kube.api.kinds import (
    DISRUPTION_BUDGETS,
    HYPER_NODES,
    NODE_SHARDS,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_QUOTAS,
    Kind,
)
from pumice.model.manifest import Decoder, ManifestError
from pumice.model.pod import Pod
from tests.unit.model.test_manifest_random import anything, keys

KINDS = (PODS, NODES, POD_GROUPS, QUEUES, HYPER_NODES, PRIORITY_CLASSES, RESOURCE_QUOTAS)
ROOT = Path(__file__).resolve().parents[4]


def both(kind: Kind, obj: dict[str, Any]) -> None:
    """Both ways of reading agree."""
    raw = json.dumps(obj).encode()
    try:
        reading = Decoder().read_as(kind.api_version, kind.kind, json.loads(raw))
        wanted: object = reading.value, reading.error is None
    except ManifestError:
        wanted = None
    try:
        read = Codec(kind, Decoder()).read(raw)
        found: object = read.value, read.bad is None
    except BadObject:
        found = None
    assert found == wanted


def manifests() -> list[dict[str, Any]]:
    """Every object of the kinds that is written down anywhere in the tree."""
    found = []
    for folder in ("examples", "tests/cases", "docs"):
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            try:
                documents = list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))
            except yaml.YAMLError:
                continue
            found += [d for d in documents if isinstance(d, dict) and "kind" in d]
    return found


def test_the_manifests_of_the_tree_read_the_same() -> None:
    by_kind = {(k.api_version, k.kind): k for k in KINDS}
    for obj in manifests():
        kind = by_kind.get((obj.get("apiVersion", ""), obj["kind"]))
        if kind is not None:
            both(kind, json.loads(json.dumps(obj, default=str)))


RICH_POD: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:00Z",
        "labels": {"x": "y", "z": None},
        "annotations": {"scheduling.volcano.sh/group-name": "g"},
        "managedFields": [{"manager": "m"}],
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "ju", "controller": True}],
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "N", "value": "1"}],
                "ports": [{"hostPort": 80}],
                "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": 1}, "limits": {"memory": "1Gi"}},
            },
        ],
        "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "p"}},
            {"name": "e", "ephemeral": {}},
            {"name": "t", "projected": {}},
        ],
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "priority": 5,
        "priorityClassName": "high",
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "t", "labelSelector": {"matchLabels": {"x": "y"}}, "matchLabelKeys": ["x"]}
                ]
            }
        },
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
        "overhead": {"cpu": "10m"},
        "resources": {"requests": {"memory": "2Gi"}},
        "hostNetwork": True,
        "resourceClaims": [{"name": "r", "resourceClaimTemplateName": "rt"}],
        "preemptionPolicy": "Never",
        "schedulerName": "other",
        "nodeName": "n1",
        "schedulingGates": [{"name": "g"}],
        "serviceAccountName": "default",
    },
    "status": {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:01Z",
        "nominatedNodeName": "n2",
        "podIP": "10.0.0.1",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [
            {
                "name": "c",
                "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T01:00:00Z"}},
                "resources": {"requests": {"cpu": "2"}},
                "allocatedResources": {"cpu": "3"},
            }
        ],
        "initContainerStatuses": [{"name": "s", "resources": {"requests": {"cpu": "7"}}}],
    },
}


def test_every_field_of_a_pod_that_is_read_is_cut_out() -> None:
    both(PODS, RICH_POD)
    found = Codec(PODS, Decoder()).read(json.dumps(RICH_POD).encode())
    assert (found.key, found.uid, found.version) == ("n/a", "u", "7")
    for part in ("metadata", "spec", "status"):
        for key in RICH_POD[part]:
            less = {**RICH_POD, part: {k: v for k, v in RICH_POD[part].items() if k != key}}
            both(PODS, less)


def test_when_a_pod_ended_is_cut_out() -> None:
    ended = {**RICH_POD, "status": {**RICH_POD["status"], "phase": "Succeeded"}}
    both(PODS, ended)
    found = Codec(PODS, Decoder()).read(json.dumps(ended).encode()).value
    assert isinstance(found, Pod)
    assert found.finish_time == 1767229200.0


def test_equal_specs_are_one_object() -> None:
    codec = Codec(PODS, Decoder())
    pods = []
    for name in ("a", "b"):
        obj = json.loads(json.dumps(RICH_POD))
        obj["metadata"]["name"] = name
        obj["spec"]["volumes"].pop(1)  # an ephemeral volume's claim is named after the pod
        obj["spec"]["containers"][0]["env"][0]["value"] = name
        pods.append(codec.read(json.dumps(obj).encode()).value)
    assert pods[0].spec is pods[1].spec  # type: ignore[union-attr]


objects = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": st.sampled_from(["a", "b"])}, optional={"labels": anything})},
    optional={"spec": st.dictionaries(keys, anything), "status": st.dictionaries(keys, anything), "value": anything},
)


@settings(max_examples=300)
@given(st.sampled_from(KINDS), objects | st.dictionaries(keys, anything))
def test_all_input_is_read_in_one_way_or_refused(kind: Kind, obj: dict[str, Any]) -> None:
    try:
        raw = json.dumps(obj, allow_nan=False).encode()
        raw.decode().encode("utf-8")
        obj = json.loads(raw)
        json.dumps(obj, ensure_ascii=False).encode()
    except (ValueError, UnicodeEncodeError):
        return  # no JSON: no API server sends it
    both(kind, obj)


def test_a_bad_object_is_named() -> None:
    raw = b'{"metadata":{"namespace":"n","name":"a","resourceVersion":"9"},"spec":{"containers":{"not":"a list"}}}'
    found = Codec(PODS, Decoder()).read(raw)
    assert found.bad is not None
    assert (found.bad.key, found.bad.version) == (found.key, found.version) == ("n/a", "9")
    assert found.bad.why == "Pod n/a: spec.containers: found an object, wanted a list; it is held back"


def test_an_object_of_which_nothing_counts_is_named() -> None:
    raw = b'{"metadata":{"namespace":"n","name":"a","resourceVersion":"9"},"status":{"disruptionsAllowed":[]}}'
    with pytest.raises(BadObject, match="status.disruptionsAllowed: found a list of 0") as caught:
        Codec(DISRUPTION_BUDGETS, Decoder()).read(raw)
    assert (caught.value.key, caught.value.version) == ("n/a", "9")


@pytest.mark.parametrize(
    "line",
    [b"<html>", b"[]", b'{"type":1}', b'{"type":"ADDED"}', b"\xff\xfe", b'{"type":"ADDED","object":', b"[" * 5000],
)
def test_garbage_lines_are_reported(line: bytes) -> None:
    with pytest.raises(Garbage, match="not what an API server sends"):
        read_event(line, "WATCH pods")


def test_error_events_are_api_errors() -> None:
    with pytest.raises(ApiError) as caught:
        read_event(
            b'{"type":"ERROR","object":{"kind":"Status","reason":"Expired","message":"old","code":410}}', "WATCH pods"
        )
    assert caught.value.expired
    with pytest.raises(Garbage):
        read_event(b'{"type":"ERROR","object":[]}', "WATCH pods")


def test_bookmarks_carry_nulls() -> None:
    line = (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12","creationTimestamp":null,'
        b'"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}'
    )
    assert read_bookmark(read_event(line, "w").object, "w") == ("12", True)
    assert read_bookmark(read_event(b'{"type":"BOOKMARK","object":{"metadata":null}}', "w").object, "w") == ("", False)


def test_kinds_without_a_model_stay_dictionaries() -> None:
    raw = json.dumps(
        {
            "apiVersion": "shard.volcano.sh/v1alpha1",
            "kind": "NodeShard",
            "metadata": {"name": "b", "uid": "u", "resourceVersion": "7", "managedFields": [{}]},
            "spec": {"nodesDesired": ["n"]},
        }
    )
    found = Codec(NODE_SHARDS, Decoder()).read(raw.encode())
    assert found[:3] == ("b", "u", "7")
    assert found.value == {
        "metadata": {"name": "b", "uid": "u", "resourceVersion": "7"},
        "spec": {"nodesDesired": ["n"]},
    }


@pytest.mark.parametrize("raw", [b'{"metadata": []}', b'{"metadata": {"uid": "u"}}', b"{}", b"[]", b"\xff"])
def test_bad_objects_of_kinds_without_a_model(raw: bytes) -> None:
    with pytest.raises(BadObject):
        Codec(NODE_SHARDS, Decoder()).read(raw)
