"""The size of a gang by its owner: Kubeflow's training jobs, Ray's clusters.

Volcano's own controller knows only the annotation, and makes gangs of one otherwise. Kubeflow's and Ray's operators
create the PodGroup themselves if their gang setting is on; this is for clusters where it is off.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.writes import count_or, labels_of, part, parts

_KUBEFLOW = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}


class GangRequest(Struct, frozen=True):
    """What an owner says about its gang; None and "": nothing. ``templates``: (count, pod template)."""

    min_member: int | None = None
    queue: str = ""
    priority_class_name: str = ""
    templates: tuple[tuple[int, Obj], ...] = ()


def gang_request(owner: Obj | None) -> GangRequest:
    """Return what a pod's controlling owner asks for. An owner of another kind, or an invalid one, asks nothing."""
    if owner is None:
        return GangRequest()
    kind, group = owner.get("kind"), str(owner.get("apiVersion", "")).partition("/")[0]
    if group == "kubeflow.org" and kind in _KUBEFLOW:
        return _kubeflow(owner, _KUBEFLOW[str(kind)])
    if group == "ray.io" and kind == "RayCluster":
        return _ray(owner)
    return GangRequest()


def _kubeflow(owner: Obj, key: str) -> GangRequest:
    """Return all replicas, unless the scheduling policy has a smaller minimum. An MPI launcher starts when workers
    run."""
    specs = part(owner, "spec", key)
    templates = tuple(
        (count_or(spec.get("replicas"), 1), part(spec, "template"))
        for role, spec in sorted(specs.items())
        if isinstance(spec, dict) and not (key == "mpiReplicaSpecs" and role == "Launcher")
    )
    policy = part(owner, "spec", "runPolicy", "schedulingPolicy")
    total = sum(count for count, _ in templates)
    wanted = count_or(policy.get("minAvailable"), total)
    return GangRequest(
        min_member=wanted if templates else None,
        queue=_text(policy.get("queue")),
        priority_class_name=_text(policy.get("priorityClass")),
        templates=templates if wanted == total else (),
    )


def _ray(owner: Obj) -> GangRequest:
    """Return the head, and the workers with which the cluster starts: its minimum if Ray scales it, else its
    replicas."""
    spec = part(owner, "spec")
    scaled = bool(spec.get("enableInTreeAutoscaling"))
    templates = [(1, part(spec, "headGroupSpec", "template"))]
    for group in parts(spec, "workerGroupSpecs"):
        count = count_or(group.get("minReplicas" if scaled else "replicas"), 0 if scaled else 1)
        templates.append((count * count_or(group.get("numOfHosts"), 1), part(group, "template")))
    labels = labels_of(owner)
    return GangRequest(
        min_member=sum(count for count, _ in templates),
        queue=_text(labels.get("volcano.sh/queue-name")),
        priority_class_name=_text(labels.get("ray.io/priority-class-name")),
        templates=tuple(templates),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
