"""Clusters in files, small enough to be read, and commands on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Raw = dict[str, Any]
NODE: Raw = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}},
}
VOLCANO = [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"}}]
_AMOUNTS = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
_KAI: Raw = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"}}
KAI = [{**_KAI, "spec": {"resources": dict.fromkeys(("cpu", "memory", "gpu"), _AMOUNTS)}}]


def pod_spec(scheduler: str, cores: int = 1) -> Raw:
    requests = {"cpu": str(cores), "memory": "1Gi"}
    return {
        "schedulerName": scheduler,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
    }


def pod(name: str, scheduler: str, cores: int = 1, owner: Raw | None = None, **annotations: str) -> Raw:
    metadata = {"name": name, "namespace": "ml", "labels": {"kai.scheduler/queue": "team"}, "annotations": annotations}
    owned = {"ownerReferences": [owner]} if owner else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, **owned}, "spec": pod_spec(scheduler, cores)}


def batch_job(name: str, pods: int, scheduler: str, cores: int = 1, uid: str = "", **annotations: str) -> Raw:
    labels = {"kai.scheduler/queue": "team"}
    metadata = {"name": name, "namespace": "ml", "labels": labels, "annotations": annotations, "uid": uid}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(scheduler, cores)}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def volcano_job(name: str, pods: int, cores: int = 1) -> list[Raw]:
    task = {"name": "w", "replicas": pods, "template": {"spec": pod_spec("volcano", cores)}}
    spec = {"queue": "team", "schedulerName": "volcano", "minAvailable": pods, "tasks": [task]}
    metadata = {"name": name, "namespace": "ml"}
    return [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}]


def gang(version: str, annotation: str, scheduler: str, name: str, pods: int, cores: int = 1) -> list[Raw]:
    metadata = {"name": name, "namespace": "ml"}
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": metadata}
    made: list[Raw] = [{**group, "spec": {"minMember": pods, "queue": "team"}}]
    for i in range(pods):
        of_pod = {"name": f"{name}-{i}", "namespace": "ml", "annotations": {annotation: name}}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": of_pod, "spec": pod_spec(scheduler, cores)})
    return made


def kai_gang(name: str, pods: int, cores: int = 1) -> list[Raw]:
    return gang("scheduling.run.ai/v2alpha2", "pod-group-name", "kai-scheduler", name, pods, cores)


def volcano_gang(name: str, pods: int, cores: int = 1) -> list[Raw]:
    group, *members = gang(
        "scheduling.volcano.sh/v1beta1", "scheduling.k8s.io/group-name", "volcano", name, pods, cores
    )
    # As controllers write it: only then the gang is held to what may be promised.
    least = {"minResources": {"cpu": str(pods * cores)}}
    return [{**group, "spec": {**group["spec"], **least}}, *members]


def written(folder: Path, conf: str, *objects: Raw) -> tuple[object, ...]:
    """Write a cluster and a policy, and return the words of a command that name them."""
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *objects]}))
    if not conf:
        return (folder / "all.json",)
    (folder / "policy.conf").write_text(conf)
    return folder / "all.json", "--conf", folder / "policy.conf"
