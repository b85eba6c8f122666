"""Dynamic resource allocation: devices that drivers offer on nodes, in slices, and claims for devices.

Source: Kubernetes resource.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, NodeSelectorTerm, Toleration

#: Limits of the Kubernetes API: devices of one claim, and pods that use it at once.
CLAIM_DEVICES_MAX = 32
CLAIM_USERS_MAX = 256
#: Keeps a claim with devices from being deleted while they are in use. A scheduler adds it.
CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"


#: Amounts by name (``domain/name``), sorted by it.
Amounts = tuple[tuple[str, float], ...]


# One type for a request and for each of its alternatives: both ask for devices of a class in the same way.
class DeviceOption(Struct, frozen=True):
    """One way to satisfy a request: ``count`` devices of a class, or with ``every`` all that a node has.

    ``name``: name of the alternative, "" if the request has only one option. ``selectors``: CEL expressions.
    ``capacity``: how much each device must provide of its dimensions.
    """

    device_class: str
    count: int = 1
    name: str = ""
    every: bool = False
    selectors: tuple[str, ...] = ()
    capacity: Amounts = ()
    tolerations: tuple[Toleration, ...] = ()
    admin: bool = False


class DeviceRequest(Struct, frozen=True):
    """A request, satisfied by the first of its ``options`` that is available."""

    name: str
    # In order of preference, as Kubernetes tries them.
    options: tuple[DeviceOption, ...]


class SameAttribute(Struct, frozen=True):
    """The devices of these requests must have the same value of an attribute, or with ``distinct`` a different one
    each. No requests: all of the claim."""

    attribute: str
    requests: tuple[str, ...] = ()
    distinct: bool = False


class AllocatedDevice(Struct, frozen=True):
    """A device with the request that it satisfies (``request/alternative``). ``consumed``: of its capacities, if the
    device can be given several times, else None."""

    request: str
    driver: str
    pool: str
    device: str
    consumed: Amounts | None = None


# Nodes beside devices: a device may be reached from several nodes, and the slice that offered it may be gone.
class Allocation(Struct, frozen=True):
    """The devices of a claim. ``nodes``: where they can be used, None for everywhere."""

    devices: tuple[AllocatedDevice, ...] = ()
    nodes: tuple[NodeSelectorTerm, ...] | None = None


class ResourceClaim(Struct, frozen=True):
    """A ResourceClaim. ``reserved_for``: UIDs of the pods that may use it. ``unknown``: a feature that it needs and
    Pumice does not support, "" for none. ``for_pod``: UID of the pod for whose extended resources a scheduler made it,
    "" for other claims."""

    namespace: str
    name: str
    requests: tuple[DeviceRequest, ...] = ()
    same: tuple[SameAttribute, ...] = ()
    labels: Mapping[str, str] = EMPTY_MAP
    uid: str = ""
    allocation: Allocation | None = None
    reserved_for: tuple[str, ...] = ()
    unknown: str = ""
    for_pod: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def devices(self) -> tuple[tuple[str, int], ...]:
        """Number of devices per device class, sorted by class."""
        found: dict[str, int] = {}
        # The number for ``every`` depends on the node, and that of alternatives on which one is chosen. A quota needs a
        # number before that: 1, and the first alternative.
        for request in self.requests:
            first = request.options[0]
            if first.device_class:
                found[first.device_class] = found.get(first.device_class, 0) + (1 if first.every else first.count)
        return tuple(sorted(found.items()))


class ResourceClaimTemplate(Struct, frozen=True):
    """What claims made from this template ask for."""

    namespace: str
    name: str
    requests: tuple[DeviceRequest, ...] = ()
    same: tuple[SameAttribute, ...] = ()
    labels: Mapping[str, str] = EMPTY_MAP
    unknown: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class DeviceClass(Struct, frozen=True):
    """A device belongs to the class if all ``selectors`` (CEL expressions) are true.

    ``extended_resource``: what pods may ask for in place of devices of the class, "" for none. ``creation``: in seconds
    since the epoch.
    """

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource: str = ""
    creation: float = 0.0


class DeviceAttribute(Struct, frozen=True):
    """An attribute of a device. ``kind``: string, int, bool or version."""

    name: str  # domain/name
    kind: str
    value: str


# A type of its own and not a node's taint, since its effects differ: None is one of them.
class DeviceTaint(Struct, frozen=True):
    """A taint of a device, with the meaning of a node's taint."""

    key: str
    value: str
    effect: str


class CounterUse(Struct, frozen=True):
    """An amount of a counter, in thousandths: what a pool has of it, or what a device consumes."""

    counter_set: str
    counter: str
    amount: float


class CapacityPolicy(Struct, frozen=True):
    """What requests may consume of a capacity of a device: one of ``values`` (ascending), or from ``minimum`` to
    ``maximum`` in steps. ``default``: what a request consumes that does not name it; None: all of it."""

    default: float | None = None
    values: tuple[float, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None


class Device(Struct, frozen=True):
    """A device. ``capacity``: what it has. ``consumes``: of the counters of its pool. ``multiple``: it can be given to
    several claims, which share its capacities, as ``policies`` say of these. ``unknown``: why it cannot be allocated
    here, "" if it can."""

    name: str
    attributes: tuple[DeviceAttribute, ...] = ()
    capacity: Amounts = ()
    taints: tuple[DeviceTaint, ...] = ()
    unknown: str = ""
    consumes: tuple[CounterUse, ...] = ()
    multiple: bool = False
    policies: tuple[tuple[str, CapacityPolicy], ...] = ()


class ResourceSlice(Struct, frozen=True):
    """Devices of a pool: on one node, on the nodes that ``nodes`` selects, or on all nodes if both are empty.

    ``generation``: of a pool, only slices of the highest generation count, and only if all ``slice_count`` of them
    exist. ``counters``: what devices of the pool share, also those in its other slices.
    """

    name: str
    driver: str
    pool: str
    node_name: str = ""
    nodes: tuple[NodeSelectorTerm, ...] = ()
    devices: tuple[Device, ...] = ()
    generation: int = 0
    # A driver writes slices one by one, and half of a pool must not be allocated from.
    slice_count: int = 1
    counters: tuple[CounterUse, ...] = ()


def slices_that_count(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """Return the slices of the highest generation of each pool, if all of them exist. Source: Kubernetes structured
    allocator."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        pools.setdefault((each.driver, each.pool), []).append(each)
    found = []
    for of_pool in pools.values():
        last = max(each.generation for each in of_pool)
        newest = [each for each in of_pool if each.generation == last]
        # While a driver updates a pool, not all slices are published, and devices may be missing or listed twice.
        if len(newest) >= newest[0].slice_count:
            found += newest
    return found
