"""Warnings about new objects that are stored but will not do what they seem to request."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.store import Store
from pumice.model.manifest.reading.fields import Obj
from pumice.model.manifest.reading.sub_group_names import odd_sub_group_names

_QUEUES = "queues.scheduling.volcano.sh"
_QUEUED = ("jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh")
_ALWAYS_THERE = ("", "default", "root")  # created as soon as a controller runs
_KUBERNETES_OWN = "default-scheduler"


def advice(resource: Resource, obj: Obj, store: Store) -> Iterator[str]:
    """Yield warnings about a new object that was admitted."""
    if resource.idle:
        yield f"no controller here acts on {resource.plural}: the object is only stored"
    yield from odd_sub_group_names(obj)
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if resource.full_name == "pods" and spec.get("schedulerName") == _KUBERNETES_OWN and not spec.get("nodeName"):
        yield f"Pumice leaves the pod alone: its schedulerName is {_KUBERNETES_OWN}, not volcano"
    queue = spec.get("queue")
    if resource.full_name in _QUEUED and isinstance(queue, str) and not _is_there(queue, store):
        yield f"queue {queue} does not exist: the PodGroup waits until it does"


def _is_there(queue: str, store: Store) -> bool:
    return queue in _ALWAYS_THERE or store.find(_QUEUES, queue) is not None
