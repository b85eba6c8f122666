"""Defaults of kinds that create pods from a template, and of PodGroups. No part acts on them here (``Resource.idle``)
except Jobs, CronJobs and PodGroups, but readers get complete objects. Source: Kubernetes' defaults of ``apps/v1`` and
``batch/v1``; its admission plugin PodGroupProtection."""

from __future__ import annotations

import copy
from typing import Any, Final

from pumice.apiserver.kinds.pod_defaults import fill_pod
from pumice.model.manifest.reading.fields import Obj

#: Holds a PodGroup of ``scheduling.k8s.io`` until no pod uses it.
GROUP_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
_ROLLING: Final = {"maxSurge": "25%", "maxUnavailable": "25%"}
_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "Deployment": {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": _ROLLING},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "ReplicaSet": {"replicas": 1},
    "StatefulSet": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "serviceName": "",
    },
    "DaemonSet": {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "revisionHistoryLimit": 10,
    },
    "Job": {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "manualSelector": False,
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
    },
    "CronJob": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
}
_GENERATION: Final = "deprecated.daemonset.template.generation"
_JOB_UID: Final = "batch.kubernetes.io/controller-uid"
_COUNTED: Final[dict[str, dict[str, int]]] = {
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "ReplicaSet": {"replicas": 0},
    "DaemonSet": dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    ),
}


def filled(kind: str, obj: Obj) -> Obj:
    """Return a new object of one of these kinds, validated by its schema, as it is stored."""
    spec = copy.deepcopy(obj.get("spec") or {})
    for key, value in _DEFAULTS[kind].items():
        if key != "completions" or "parallelism" not in spec:  # without: any one success is enough
            spec.setdefault(key, copy.deepcopy(value))
    metadata, template = obj["metadata"], spec.get("template")
    if template and _fill_template(template) and kind == "Job":
        metadata = _labelled(metadata, spec)
    if kind == "DaemonSet":
        metadata = {**metadata, "annotations": {_GENERATION: "1", **(metadata.get("annotations") or {})}}
    return {**obj, "metadata": metadata, "spec": spec, "status": dict(_COUNTED.get(kind, {}))}


def protected_group(obj: Obj) -> Obj:
    """Return a new PodGroup of ``scheduling.k8s.io`` as it is stored: protected, and without a status."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or []
    held = held if GROUP_FINALIZER in held else [*held, GROUP_FINALIZER]
    kept = {key: value for key, value in obj.items() if key != "status"}
    return {**kept, "metadata": {**metadata, "finalizers": held}}


def _labelled(metadata: Obj, spec: Obj) -> Obj:
    """Add the labels by which a job finds its pods, also in their older form, with those of its template."""
    about = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
    labels = about | {f"batch.kubernetes.io/{key}": value for key, value in about.items()}
    template = spec["template"]
    labels |= template["metadata"].get("labels") or {}
    template["metadata"] = {**template["metadata"], "labels": labels}
    spec.setdefault("selector", {"matchLabels": {_JOB_UID: metadata["uid"]}})
    return metadata if metadata.get("labels") else {**metadata, "labels": labels}


def _fill_template(template: Obj) -> bool:
    """Fill in a template. Return False, without changes, if it cannot be a pod: no pod is ever created from it here."""
    containers = (template.get("spec") or {}).get("containers")
    if not containers or not all(container.get("image") for container in containers):
        return False
    template.setdefault("metadata", {})
    fill_pod(template["spec"])
    return True
