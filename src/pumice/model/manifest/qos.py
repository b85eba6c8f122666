"""Compute the QoS class of a pod. Source: Kubernetes ``ComputePodQOS``, with pod-level resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pumice.model.manifest.reading.fields import Obj
from pumice.model.quantity import milli_value, whole_value

_COUNTED = ("cpu", "memory")


def qos_class(spec: Obj) -> str:
    """Return ``Guaranteed``, ``Burstable`` or ``BestEffort`` for a raw spec whose amounts are checked."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for resources in _owners(spec):
        _add(requests, resources.get("requests"))
        limited = _add(limits, resources.get("limits"))
        guaranteed = guaranteed and limited == len(_COUNTED)
    # Amounts of 0 are no amounts here, so a pod that asks for 0 is best effort too.
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _owners(spec: Obj) -> Iterator[Any]:
    """Yield the ``resources`` that count: the pod's own, or those of every container."""
    own = spec.get("resources")
    # A pod-level request replaces those of containers for the class, as in Kubernetes with pod-level resources.
    if own:
        yield own
        return
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            yield container.get("resources") or {}


def _add(sums: dict[str, int], amounts: Obj | None) -> int:
    """Add the amounts of CPU and memory above 0. Return how many of the two there are."""
    count = 0
    for name in _COUNTED:
        quantity = (amounts or {}).get(name)
        amount = 0 if quantity is None else (milli_value if name == "cpu" else whole_value)(quantity)
        # A request of 0 counts as none.
        if amount > 0:
            sums[name] = sums.get(name, 0) + amount
            count += 1
    return count
