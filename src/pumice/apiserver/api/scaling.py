"""The ``scale`` of objects with replicas: their number as an object, for ``kubectl scale``."""

from __future__ import annotations

from collections.abc import Callable

from pumice.apiserver.refusals import Cause, invalid
from pumice.model.manifest.reading.fields import INT32_MAX, Obj

_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(obj: Obj) -> Obj:
    """Return what a real server returns for ``…/scale``."""
    spec, status, metadata = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _SHOWN if key in metadata},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {"replicas": status.get("replicas", 0), **({"selector": selector} if selector else {})},
    }


def scaled(obj: Obj, edit: Callable[[Obj], Obj]) -> Obj:
    """Return the object with the number of replicas in its edited scale. Raises: Refusal 422."""
    wanted = edit(scale_of(obj)).get("spec") or {}
    replicas = wanted.get("replicas", 0) if isinstance(wanted, dict) else None
    if not isinstance(replicas, int) or isinstance(replicas, bool) or not 0 <= replicas <= INT32_MAX:
        cause = Cause("spec.replicas", f"Invalid value: {str(replicas)[:40]}: wanted a number from 0 to {INT32_MAX}")
        raise invalid("Scale", "autoscaling", str(obj["metadata"].get("name", "")), [cause])
    return {**obj, "spec": {**(obj.get("spec") or {}), "replicas": replicas}}
