"""Find keys that objects of Volcano, and groups of Kubernetes' own, do not have: spelling mistakes, which would be
ignored silently.

Source: the CustomResourceDefinitions in ``deploy/crds``. A test compares both.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pumice.model.manifest.reading.fields import Obj
from pumice.model.resources import is_kept_scalar
from pumice.model.workloads.native_group import FIRST_VERSION

#: Keys of an object, each with the keys below it. None: any keys.
Keys = Mapping[str, Any]

#: Unknown keys that are reported for one object. Bounded, because a tenant writes the object.
UNKNOWN_MAX = 20
_ITEMS_MAX = 200

#: In place of keys: a resource list, whose names are resources.
AMOUNTS: Keys = MappingProxyType({"cpu": None, "memory": None, "pods": None, "ephemeral-storage": None})

_TOP = ("apiVersion", "kind", "metadata", "spec", "status")


def _plain(*names: str, **below: Keys) -> Keys:
    return {**dict.fromkeys(names), **below}


_TOPOLOGY = _plain("mode", "highestTierAllowed", "highestTierName")
_POLICY = _plain("action", "event", "events", "exitCode", "timeout")
_SELECTOR = _plain("matchLabels", matchExpressions=_plain("key", "operator", "values"))
_NODE_GROUPS = _plain(
    "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
)
_TASK = _plain(
    *("name", "replicas", "minAvailable", "maxRetry", "topologyPolicy"),
    # Nothing below: fields of pods differ between versions of Kubernetes.
    template=_plain("metadata", "spec"),
    dependsOn=_plain("name", "iteration"),
    partitionPolicy=_plain("totalPartitions", "partitionSize", "minPartitions", networkTopology=_TOPOLOGY),
    policies=_POLICY,
)
_RETRY = _plain("maxRetries", "policy", backoff=_plain("type", "baseDelay", "maxDelay"))
#: Keys of ``spec`` by apiVersion and kind.
SPEC_KEYS: Mapping[tuple[str, str], Keys] = {
    ("batch.volcano.sh/v1alpha1", "Job"): _plain(
        *("schedulerName", "minAvailable", "queue", "priorityClassName", "maxRetry", "minSuccess"),
        *("ttlSecondsAfterFinished", "runningEstimate", "plugins"),
        networkTopology=_TOPOLOGY,
        volumes=_plain("mountPath", "volumeClaimName", "volumeClaim"),
        policies=_POLICY,
        tasks=_TASK,
    ),
    ("batch.volcano.sh/v1alpha1", "CronJob"): _plain(
        *("schedule", "timeZone", "startingDeadlineSeconds", "concurrencyPolicy", "suspend"),
        *("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
        jobTemplate=_plain("spec", metadata=_plain("labels", "annotations")),
    ),
    ("flow.volcano.sh/v1alpha1", "JobFlow"): _plain(
        "jobRetainPolicy",
        retryPolicy=_RETRY,
        flows=_plain(
            "name",
            dependsOn=_plain(
                *("targets", "strategy"),
                probe=_plain("httpGetList", "tcpSocketList", taskStatusList=_plain("taskName", "phase")),
            ),
            patch=_plain("spec"),
            retryPolicy=_RETRY,
        ),
    ),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): _plain(
        *("minMember", "minTaskMember", "queue", "priorityClassName"),
        minResources=AMOUNTS,
        networkTopology=_TOPOLOGY,
        subGroupPolicy=_plain(
            *("name", "subGroupSize", "minSubGroups", "matchLabelKeys"),
            networkTopology=_TOPOLOGY,
            labelSelector=_SELECTOR,
        ),
    ),
    ("scheduling.volcano.sh/v1beta1", "Queue"): _plain(
        *("weight", "reclaimable", "priority", "parent", "dequeueStrategy", "type"),
        capability=AMOUNTS,
        deserved=AMOUNTS,
        guarantee=_plain(resource=AMOUNTS),
        affinity=_plain(nodeGroupAffinity=_NODE_GROUPS, nodeGroupAntiAffinity=_NODE_GROUPS),
        extendClusters=_plain("name", "weight", "capability"),
    ),
    ("topology.volcano.sh/v1alpha1", "HyperNode"): _plain(
        *("tier", "tierName"),
        members=_plain(
            "type",
            selector=_plain(exactMatch=_plain("name"), regexMatch=_plain("pattern"), labelMatch=_SELECTOR),
        ),
    ),
}


_NATIVE_COMMON = (
    *("parentCompositePodGroupName", "priorityClassName", "priority", "preemptionPolicy"),
    # In the versions of PodGroup before v1alpha3.
    "podGroupTemplateRef",
)
_NATIVE_BELOW: Keys = {
    "workloadRef": _plain("workloadName", "templateName"),
    "disruptionMode": _plain("single", "all"),
    "schedulingConstraints": _plain(
        topology=_plain("key", "topologyKey"), topologyConstraints=_plain("key", "topologyKey")
    ),
}
#: Keys of ``spec`` of kinds that Kubernetes defines itself (``scheduling.k8s.io``), of all versions together.
NATIVE_SPEC_KEYS: Mapping[str, Keys] = {
    "PodGroup": _plain(
        *_NATIVE_COMMON,
        **_NATIVE_BELOW,
        schedulingPolicy=_plain("basic", gang=_plain("minCount")),
        resourceClaims=_plain("name", "resourceClaimName", "resourceClaimTemplateName"),
    ),
    "CompositePodGroup": _plain(
        *_NATIVE_COMMON, **_NATIVE_BELOW, schedulingPolicy=_plain("basic", gang=_plain("minGroupCount"))
    ),
    "Workload": _plain(
        controllerRef=_plain("apiGroup", "kind", "name"),
        podGroups=_plain("name", policy=_plain("basic", gang=_plain("minCount"))),
    ),
}


class UnknownKey(NamedTuple):
    """An unknown key. ``path``: its place, without indices of items. ``near``: the known key most like it."""

    path: str
    near: str | None


def unknown_keys(obj: Obj) -> list[UnknownKey]:
    """Return the unknown keys of an object of Volcano, or of a group of Kubernetes' own, none for other kinds."""
    version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
    is_native = version.startswith("scheduling.k8s.io/")
    keys = NATIVE_SPEC_KEYS.get(kind) if is_native else SPEC_KEYS.get((version, kind))
    # Later versions of a Workload have other keys, and are not read.
    if kind == "Workload" and version != FIRST_VERSION:
        return []
    # Other kinds have keys by the hundred, which change with versions of Kubernetes.
    if keys is None:
        return []
    # A dictionary as an ordered set: one misspelling in each of many tasks is reported once.
    found: dict[UnknownKey, None] = {}
    for each in _unknown(obj, dict.fromkeys(_TOP, None) | {"spec": keys}, ""):
        found[each] = None
        if len(found) == UNKNOWN_MAX:
            break
    return list(found)


def _unknown(value: object, keys: Keys, path: str) -> Iterator[UnknownKey]:
    if isinstance(value, list):
        # Items of a list have the same keys, so the first ones show what is misspelt.
        for item in value[:_ITEMS_MAX]:
            yield from _unknown(item, keys, f"{path}[]")
        return
    if not isinstance(value, dict):
        return
    for name, held in value.items():
        text = name[:80] if isinstance(name, str) else str(name)[:80]
        place = f"{path}.{text}" if path else text
        # A resource may have any name of the right form, so only other names are misspelt ones.
        if name not in keys and not (keys is AMOUNTS and is_kept_scalar(text)):
            near = difflib.get_close_matches(text, list(keys), n=1)
            yield UnknownKey(place, near[0] if near else None)
        elif (below := keys.get(name)) is not None:
            yield from _unknown(held, below, place)
