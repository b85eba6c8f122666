"""What a pod asks for, from its raw ``spec`` and ``status`` mappings (the API's JSON; any list may be null or absent).

Units are those of ``Resource``. Raises everywhere: QuantityError naming the resource.
Source: Kubernetes' pod requests and limits as Volcano reads them: in-place resize and pod-level resources are on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from pumice.model.resources import CPU, EMPTY, MEMORY, PODS, Resource

#: What a container that does not say is taken to use by kube-scheduler's scores: 100m CPU, 200 MiB.
DEFAULT_MILLI_CPU = 100.0
DEFAULT_MEMORY = 200.0 * 1024 * 1024

#: Where a status has what containers hold, and sidecars.
CONTAINER_STATUSES = ("containerStatuses", "initContainerStatuses")

_Raw = Mapping[str, Any]
_Amount = Callable[[_Raw], Resource]


def pod_request(spec: _Raw, status: _Raw | None = None) -> Resource:
    """The whole request: containers, init containers, pod-level requests, overhead, and one of ``pods``."""
    total = _at_peak(spec, _held(status, "requests"), _declared("requests")).add_scalar(PODS, 1.0)
    return _with_overhead(_with_pod_level(total, spec, "requests"), spec)


def pod_request_without_init(spec: _Raw, status: _Raw | None = None) -> Resource:
    """The request without init containers (sidecars neither) and without the ``pods`` entry."""
    running = _sum_of_containers(spec, _held(status, "requests"))
    return _with_overhead(_with_pod_level(running, spec, "requests"), spec)


def pod_limit(spec: _Raw, status: _Raw | None = None) -> Resource:
    """The limits, without a ``pods`` entry. Overhead adds only to what is limited."""
    peak = _at_peak(spec, _held(status, "limits"), _declared("limits"))
    limit = _with_pod_level(peak, spec, "limits")
    overhead = spec.get("overhead") or {}
    return limit.add(Resource.from_list({name: amount for name, amount in overhead.items() if limit.get(name) != 0}))


def nonzero_request(spec: _Raw) -> tuple[float, float]:
    """(milli-cores, bytes) of the request, where a container that does not name one of them gets a default for it.

    Source: kube-scheduler's non-zero requests, which its least-allocated and most-allocated scores read.
    """
    total = _with_pod_level(_at_peak(spec, _with_defaults, _with_defaults), spec, "requests")
    total = _with_overhead(total, spec)
    return total.milli_cpu, total.memory


def _sum_of_containers(spec: _Raw, amount: _Amount) -> Resource:
    return reduce(Resource.add, map(amount, spec.get("containers") or ()), EMPTY)


def _at_peak(spec: _Raw, running: _Amount, once: _Amount) -> Resource:
    """The most used at one time: when all containers run, or by an init container and the sidecars before it.

    ``running`` answers for containers and sidecars, which can be resized, ``once`` for init containers that end.
    """
    sidecars = peak = EMPTY
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = sidecars.add(running(container))
        else:
            peak = peak.set_max(once(container).add(sidecars))
    return _sum_of_containers(spec, running).add(sidecars).set_max(peak)


def _with_pod_level(total: Resource, spec: _Raw, kind: str) -> Resource:
    """``total`` with each cpu, memory or hugepages amount that the pod itself names in place of its containers'."""
    named = _amounts(spec, kind)
    if not named:
        return total
    level = Resource.from_list({name: amount for name, amount in named.items() if _is_pod_level(name)})
    return Resource(
        level.milli_cpu if CPU in named else total.milli_cpu,
        level.memory if MEMORY in named else total.memory,
        {**total.scalars, **(level.scalars or {})} if total.scalars is not None else level.scalars,
    )


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _with_overhead(total: Resource, spec: _Raw) -> Resource:
    overhead = spec.get("overhead")
    return total.add(Resource.from_list(overhead)) if overhead else total


def _amounts(owner: _Raw, kind: str) -> _Raw:
    """The ``requests`` or ``limits`` of a container, a container status or a pod spec."""
    return (owner.get("resources") or {}).get(kind) or {}


def declared(container: _Raw) -> Resource:
    """What one container asks for."""
    return Resource.from_list(_amounts(container, "requests"))


def _declared(kind: str) -> _Amount:
    return lambda container: Resource.from_list(_amounts(container, kind))


def _held(status: _Raw | None, kind: str) -> _Amount:
    """What a container holds: the most of what spec and status say; the status alone where a resize cannot be done."""
    status = status or {}
    statuses = (each for key in CONTAINER_STATUSES for each in status.get(key) or ())
    resized = {each.get("name"): each for each in statuses if each.get("resources") is not None}
    if not resized:
        return _declared(kind)
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
            actual = actual.set_max(Resource.from_list(current.get("allocatedResources")))
        return actual if infeasible else actual.set_max(declared)

    return held


def _with_defaults(container: _Raw) -> Resource:
    named = _amounts(container, "requests")
    own = Resource.from_list(named)
    return Resource(
        own.milli_cpu if CPU in named else DEFAULT_MILLI_CPU, own.memory if MEMORY in named else DEFAULT_MEMORY
    )
