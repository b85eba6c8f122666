"""Never a traceback: whatever JSON comes in, out comes a value or a ManifestError that can be read."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.model.instants import epoch_of
from pumice.model.manifest import SUPPORTED_KINDS, Decoder, ManifestError
from pumice.model.manifest.jobs import podgroup_of, pods_of, pods_of_batch_job
from pumice.model.workloads.job import BatchJob, VolcanoJob

FIELDS = [
    "name",
    "namespace",
    "uid",
    "labels",
    "annotations",
    "creationTimestamp",
    "ownerReferences",
    "controller",
    "containers",
    "initContainers",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "nvidia.com/gpu",
    "pods",
    "overhead",
    "ports",
    "hostPort",
    "containerPort",
    "protocol",
    "restartPolicy",
    "image",
    "hostNetwork",
    "nodeSelector",
    "affinity",
    "nodeAffinity",
    "podAffinity",
    "podAntiAffinity",
    "topologyKey",
    "weight",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "matchFields",
    "matchLabels",
    "labelSelector",
    "namespaceSelector",
    "namespaces",
    "preference",
    "podAffinityTerm",
    "matchLabelKeys",
    "key",
    "operator",
    "values",
    "value",
    "effect",
    "tolerations",
    "topologySpreadConstraints",
    "maxSkew",
    "whenUnsatisfiable",
    "volumes",
    "persistentVolumeClaim",
    "claimName",
    "ephemeral",
    "resourceClaims",
    "resourceClaimName",
    "resourceClaimTemplateName",
    "schedulingGates",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "schedulerName",
    "nodeName",
    "phase",
    "conditions",
    "containerStatuses",
    "initContainerStatuses",
    "allocatedResources",
    "type",
    "status",
    "reason",
    "allocatable",
    "capacity",
    "taints",
    "images",
    "names",
    "sizeBytes",
    "unschedulable",
    "minMember",
    "minTaskMember",
    "minResources",
    "queue",
    "networkTopology",
    "mode",
    "highestTierAllowed",
    "highestTierName",
    "subGroupPolicy",
    "subGroupSize",
    "minSubGroups",
    "capability",
    "deserved",
    "guarantee",
    "resource",
    "reclaimable",
    "parent",
    "state",
    "hard",
    "used",
    "globalDefault",
    "tier",
    "tierName",
    "members",
    "selector",
    "exactMatch",
    "regexMatch",
    "labelMatch",
    "pattern",
    "tasks",
    "replicas",
    "template",
    "metadata",
    "spec",
    "minAvailable",
    "policies",
    "action",
    "event",
    "events",
    "exitCode",
    "timeout",
    "dependsOn",
    "iteration",
    "partitionPolicy",
    "totalPartitions",
    "partitionSize",
    "minPartitions",
    "topologyPolicy",
    "minSuccess",
    "ttlSecondsAfterFinished",
    "runningEstimate",
    "parallelism",
    "completions",
    "suspend",
    "maxRetry",
]
WORDS = [
    "",
    "1",
    "-1",
    "100m",
    "1Gi",
    "1e3",
    "9" * 19,
    "NaN",
    "x" * 300,
    "In",
    "NotIn",
    "Exists",
    "Gt",
    "Equal",
    "TCP",
    "Always",
    "NoSchedule",
    "DoNotSchedule",
    "Honor",
    "Never",
    "hard",
    "soft",
    "Open",
    "Pending",
    "Node",
    "HyperNode",
    "metadata.name",
    "RestartJob",
    "any",
    "1h",
    "2024-01-01T00:00:00Z",
    "2024-13-01T00:00:00Z",
    "\x00",
    "\ud800",
    "a/b",
    "^(a+)+$",
]

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([2**31, -(2**31) - 1, 2**63, 10**18, 10**400, 100_001]),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=5),
)
keys = st.one_of(st.sampled_from(FIELDS), st.text(max_size=3))
anything = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=5)),
    max_leaves=25,
)


@st.composite
def nearly_objects(draw: st.DrawFn) -> dict[str, Any]:
    api_version, kind = draw(st.sampled_from(SUPPORTED_KINDS))
    metadata = draw(st.one_of(anything, st.just({"name": "x"})))
    obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    return obj | draw(st.fixed_dictionaries({}, optional={"spec": anything, "status": anything, "value": anything}))


def check(decoder: Decoder, obj: object) -> None:
    try:
        value = decoder.decode(obj)
    except ManifestError as error:
        text = str(error)
        assert ": found " in text and ", wanted " in text
        assert "\n" not in text and len(text) < 2000
        return
    assert value == decoder.decode(obj)
    if isinstance(value, VolcanoJob) and value.replicas < 100:
        podgroup_of(value)
        assert len(list(pods_of(value))) == value.replicas
    if isinstance(value, BatchJob) and value.replicas < 100:
        assert len(list(pods_of_batch_job(value))) == value.replicas


DECODER = Decoder(specs_max=64)


@given(nearly_objects())
@settings(max_examples=600, deadline=None)
def test_nearly_objects(obj: dict[str, Any]) -> None:
    check(DECODER, obj)


@given(anything)
@settings(max_examples=200, deadline=None)
def test_anything(obj: object) -> None:
    check(DECODER, obj)


PATHS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("v1", "Pod", "spec", {"containers": [{"resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 1}]}]}),
    (
        "v1",
        "Pod",
        "spec",
        {
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": "k",
                            "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
                        },
                    ]
                }
            }
        },
    ),
    (
        "v1",
        "Pod",
        "status",
        {
            "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            "initContainerStatuses": [{"name": "s", "resources": {"requests": {"cpu": "1"}}}],
            "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
        },
    ),
    ("v1", "Node", "spec", {"taints": [{"key": "a", "effect": "NoExecute"}]}),
    (
        "topology.volcano.sh/v1alpha1",
        "HyperNode",
        "spec",
        {"tier": 1, "members": [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {"a": "b"}}}}]},
    ),
    (
        "batch.volcano.sh/v1alpha1",
        "Job",
        "spec",
        {
            "tasks": [
                {
                    "name": "a",
                    "replicas": 2,
                    "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "1"}}}]}},
                    "partitionPolicy": {"totalPartitions": 2, "partitionSize": 1},
                    "policies": [{"action": "AbortJob"}],
                }
            ]
        },
    ),
    (
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "spec",
        {
            "minMember": 1,
            "subGroupPolicy": [{"name": "a", "matchLabelKeys": ["k"], "networkTopology": {"mode": "hard"}}],
        },
    ),
]


@st.composite
def one_field_wrong(draw: st.DrawFn) -> dict[str, Any]:
    """A good object with one value, anywhere in it, replaced."""
    api_version, kind, part, good = draw(st.sampled_from(PATHS))
    obj: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    obj[part] = json.loads(json.dumps(good))
    holder: Any = obj
    key: Any = part
    while True:
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 5)) == 0:
            break
        holder, key = inner, draw(st.sampled_from(list(inner) if isinstance(inner, dict) else list(range(len(inner)))))
    holder[key] = draw(anything)
    return obj


@given(one_field_wrong())
@settings(max_examples=600, deadline=None)
def test_one_field_wrong(obj: dict[str, Any]) -> None:
    check(DECODER, obj)


@given(st.datetimes(), st.sampled_from(["Z", "+00:00", "-07:30", "+05:45"]))
def test_instants_agree_with_the_standard_library(moment: Any, zone: str) -> None:
    from datetime import UTC, datetime

    stamp = f"{moment.replace(microsecond=0).isoformat()}{zone}"
    wanted = (datetime.fromisoformat(stamp) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    assert epoch_of(stamp) == wanted
