"""Extended resources that devices back: a pod asks for ``nvidia.com/gpu: 2`` and is given two devices of a class.

Source: KEP-5004, kube-scheduler's extendeddynamicresources.go (requests and mappings, as of 1.36).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import ceil
from typing import NamedTuple

from pumice.model.devices.claims import DeviceClass, DeviceOption, DeviceRequest
from pumice.model.pod import PodSpec
from pumice.model.resources import CPU, MEMORY, PODS, Resource

#: Every class backs the extended resource of this name with the name of the class after it.
IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
#: Last part of the key of a claim that will be made for a pod's extended resources: ``namespace/pod/<this>``.
UNMADE = "extended-resources"
#: Annotation, "true" on a claim that a scheduler made for the extended resources of the pod that owns it.
CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"

_MILLI = 1000.0


class RequestMapping(NamedTuple):
    """The request of a claim that gives a container one of its extended resources. ``container``: position among the
    init containers and then the containers of the pod."""

    container: int
    resource: str
    request: str


class ExtendedRequests(NamedTuple):
    """What the claim for a pod's extended resources asks for, and what of it is for which container."""

    requests: tuple[DeviceRequest, ...] = ()
    mappings: tuple[RequestMapping, ...] = ()


def backing_classes(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Return the device class of each extended resource. If several classes name one, the newest backs it."""
    found: dict[str, DeviceClass] = {}
    # By name last, so that the first one in the alphabet counts among those of the same age.
    for each in sorted(classes, key=lambda each: (-each.creation, each.name)):
        found[f"{IMPLICIT_PREFIX}{each.name}"] = each
        if each.extended_resource:
            found.setdefault(each.extended_resource, each)
    return found


def extended_requests(spec: PodSpec, classes: Iterable[tuple[str, str]]) -> ExtendedRequests:
    """Return what a pod asks of devices for its extended resources. ``classes``: pairs of a resource that the node does
    not have by itself, and the name of its device class.

    An init container that ends uses devices of the containers that run later. Only what it needs beyond that is a
    request of its own, and the largest of these is enough for all of them.
    """
    containers = _containers(spec)
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    # Sorted, so that the claim is the same whatever the order in which nodes and classes were heard of.
    for resource, device_class in sorted(classes):
        own = _OneResource(resource, device_class, containers)
        requests += own.requests
        mappings += own.mappings
    return ExtendedRequests(tuple(sorted(requests, key=lambda each: each.name)), tuple(mappings))


def asks_for_any(request: Resource, resources: Collection[str]) -> bool:
    """Return True if an amount above 0 of one of the resources is asked for."""
    return any(amount > 0 and name in resources for name, amount in (request.scalars or {}).items())


def _containers(spec: PodSpec) -> list[tuple[Resource, bool]]:
    """Return the requests of init containers and containers, each with whether it ends before the others run."""
    # A pod without requests by container is one container, as far as its resources matter.
    if spec.containers is None:
        return [(spec.request, False)]
    inits = [(request, not is_sidecar) for request, is_sidecar in spec.containers.inits]
    return inits + [(request, False) for request in spec.containers.apps]


class _OneResource:
    """Requests and mappings for one extended resource."""

    def __init__(self, resource: str, device_class: str, containers: list[tuple[Resource, bool]]) -> None:
        self._resource, self._class, self._containers = resource, device_class, containers
        lasting: dict[int, DeviceRequest] = {}
        for i, (_, ends) in enumerate(containers):
            if not ends and (count := self._count(i)):
                lasting[i] = self._request(i, count)
        own_mappings = [RequestMapping(i, resource, each.name) for i, each in lasting.items()]
        extra, borrowed = self._of_inits(lasting)
        self.requests = [*extra, *lasting.values()]
        self.mappings = own_mappings + borrowed

    def _of_inits(self, lasting: dict[int, DeviceRequest]) -> tuple[list[DeviceRequest], list[RequestMapping]]:
        """Return the request of the init containers beyond those of the containers after them, and their mappings."""
        largest: DeviceRequest | None = None
        names: list[tuple[int, str]] = []
        further: list[int] = []
        for i, (_, ends) in enumerate(self._containers):
            missing = self._count(i) if ends else 0
            for at, each in lasting.items() if missing else ():
                # A sidecar that starts earlier goes on, and keeps its devices.
                if at >= i and missing > 0:
                    missing -= each.options[0].count
                    names.append((i, each.name))
            if missing > 0:
                further.append(i)
                if largest is None or missing > largest.options[0].count:
                    largest = self._request(i, missing)
        if largest is None:
            return [], [RequestMapping(i, self._resource, name) for i, name in names]
        names += [(i, largest.name) for i in further]
        return [largest], [RequestMapping(i, self._resource, name) for i, name in sorted(names)]

    def _count(self, i: int) -> int:
        # Rounded up: the API server accepts whole amounts only, and half a device is not given.
        return ceil((self._containers[i][0].scalars or {}).get(self._resource, 0.0) / _MILLI)

    def _request(self, i: int, count: int) -> DeviceRequest:
        request = self._containers[i][0]
        named = [name for name, amount in ((CPU, request.milli_cpu), (MEMORY, request.memory)) if amount]
        named += [name for name in request.scalars or () if name != PODS]
        # The names are upstream's: kubelets and tools find the container by them.
        name = f"container-{i}-request-{sorted(named).index(self._resource)}"
        return DeviceRequest(name, (DeviceOption(self._class, count),))
