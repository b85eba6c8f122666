"""Compute requests and limits of a pod from its raw ``spec`` and ``status`` (JSON of the API; any list may be null).

Units are those of ``Resource``. All functions raise QuantityError, naming the resource. Source: Kubernetes' pod
requests and limits as Volcano reads them, with in-place resize and pod-level resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from pumice.model.resources import CPU, EMPTY, MEMORY, PODS, Resource

#: What kube-scheduler's scores assume for a container without a request: 100m CPU, 200 MiB.
DEFAULT_MILLI_CPU = 100.0
DEFAULT_MEMORY = 200.0 * 1024 * 1024

#: Parts of a status with what containers and sidecars hold.
CONTAINER_STATUSES = ("containerStatuses", "initContainerStatuses")

_Raw = Mapping[str, Any]
_Amount = Callable[[_Raw], Resource]


def pod_request(spec: _Raw, status: _Raw | None = None) -> Resource:
    """Return the total request: containers, init containers, pod-level requests, overhead, and one of ``pods``."""
    total = _at_peak(spec, _held(status, "requests"), _declared("requests")).add_scalar(PODS, 1.0)
    return _with_overhead(_with_pod_level(total, spec, "requests"), spec)


def pod_limit(spec: _Raw, status: _Raw | None = None) -> Resource:
    """Return the limits, without an entry ``pods``."""
    peak = _at_peak(spec, _held(status, "limits"), _declared("limits"))
    limit = _with_pod_level(peak, spec, "limits")
    # Overhead is added only to what is limited; an overhead alone would limit what the pod does not.
    overhead = spec.get("overhead") or {}
    return limit.add(Resource.from_list({name: amount for name, amount in overhead.items() if limit.get(name) != 0}))


def nonzero_request(spec: _Raw) -> tuple[float, float]:
    """Return (milli-cores, bytes) of the request, with defaults for containers that do not name them.

    Source: kube-scheduler's non-zero requests, which its scores of least and most allocated read.
    """
    total = _with_pod_level(_at_peak(spec, _with_defaults, _with_defaults), spec, "requests")
    total = _with_overhead(total, spec)
    return total.milli_cpu, total.memory


def _sum_of_containers(spec: _Raw, amount: _Amount) -> Resource:
    """Return the sum of an amount over all containers."""
    return reduce(Resource.add, map(amount, spec.get("containers") or ()), EMPTY)


def _at_peak(spec: _Raw, running: _Amount, once: _Amount) -> Resource:
    """Return the most that is used at one time: by all containers together, or by an init container and the sidecars
    before it.

    ``running``: amount of containers and sidecars, which can be resized. ``once``: amount of init containers that end.
    """
    sidecars = peak = EMPTY
    # In order: an init container runs beside the sidecars that started before it, and not beside later ones.
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = sidecars.add(running(container))
        else:
            peak = peak.set_max(once(container).add(sidecars))
    return _sum_of_containers(spec, running).add(sidecars).set_max(peak)


def _with_pod_level(total: Resource, spec: _Raw, kind: str) -> Resource:
    """Return ``total`` with the amounts of CPU, memory and hugepages that the pod names itself instead of its
    containers'."""
    named = _amounts(spec, kind)
    if not named:
        return total
    # Other resources cannot be named by a pod itself, so an entry for one is ignored, as by Kubernetes.
    level = Resource.from_list({name: amount for name, amount in named.items() if _is_pod_level(name)})
    return Resource(
        level.milli_cpu if CPU in named else total.milli_cpu,
        level.memory if MEMORY in named else total.memory,
        {**total.scalars, **(level.scalars or {})} if total.scalars is not None else level.scalars,
    )


def _is_pod_level(name: str) -> bool:
    """Return True for resources that Kubernetes lets a pod name itself."""
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _with_overhead(total: Resource, spec: _Raw) -> Resource:
    """Return ``total`` with the overhead of the runtime class."""
    overhead = spec.get("overhead")
    return total.add(Resource.from_list(overhead)) if overhead else total


def _amounts(owner: _Raw, kind: str) -> _Raw:
    """Return ``requests`` or ``limits`` of a container, a container status or a pod spec."""
    return (owner.get("resources") or {}).get(kind) or {}


def declared(container: _Raw) -> Resource:
    """Return the request of one container."""
    return Resource.from_list(_amounts(container, "requests"))


def _declared(kind: str) -> _Amount:
    """Return a function that reads the declared amount of a container."""
    return lambda container: Resource.from_list(_amounts(container, kind))


def _held(status: _Raw | None, kind: str) -> _Amount:
    """Return a function that reads what a container holds: the maximum of spec and status, or the status alone if a
    resize is infeasible."""
    status = status or {}
    statuses = (each for key in CONTAINER_STATUSES for each in status.get(key) or ())
    resized = {each.get("name"): each for each in statuses if each.get("resources") is not None}
    # Without a resized container, which is the rule, the status is not read again per container.
    if not resized:
        return _declared(kind)
    # The node will never give what the spec asks for, so only what the container holds counts.
    infeasible = any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )

    def held(container: _Raw) -> Resource:
        declared = Resource.from_list(_amounts(container, kind))
        current = resized.get(container.get("name"))
        if current is None:
            return declared
        actual = Resource.from_list(_amounts(current, kind))
        if kind == "requests":
            # The kubelet may have reserved more than the container uses while a resize is in progress.
            actual = actual.set_max(Resource.from_list(current.get("allocatedResources")))
        return actual if infeasible else actual.set_max(declared)

    return held


def _with_defaults(container: _Raw) -> Resource:
    """Return CPU and memory of a container, with defaults for those that it does not name."""
    named = _amounts(container, "requests")
    # By name and not by value: an explicit request of 0 gets no default, as in kube-scheduler.
    own = Resource.from_list(named)
    return Resource(
        own.milli_cpu if CPU in named else DEFAULT_MILLI_CPU, own.memory if MEMORY in named else DEFAULT_MEMORY
    )
