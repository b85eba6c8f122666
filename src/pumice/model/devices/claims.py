"""Dynamic resource allocation: what drivers offer on nodes (slices of devices), and claims of some of it.

Source: Kubernetes resource.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, NodeSelectorTerm, Toleration

#: Devices that one claim may have, and pods that may use it at once. Source: Kubernetes API limits.
CLAIM_DEVICES_MAX = 32
CLAIM_USERS_MAX = 256


class DeviceOption(Struct, frozen=True):
    """So many devices of a class, or, with ``every``, all of them that a node has. ``name``: that of an alternative,
    empty where there is one option only. ``selectors``: CEL expressions. ``capacity``: how much each device must give
    of its dimensions."""

    device_class: str
    count: int = 1
    name: str = ""
    every: bool = False
    selectors: tuple[str, ...] = ()
    capacity: tuple[tuple[str, float], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    admin: bool = False


class DeviceRequest(Struct, frozen=True):
    """One of its ``options``, the first that there is."""

    name: str
    options: tuple[DeviceOption, ...]


class SameAttribute(Struct, frozen=True):
    """The devices of these requests (none: of all) must have one value of an attribute."""

    attribute: str
    requests: tuple[str, ...] = ()


class AllocatedDevice(Struct, frozen=True):
    """A device, by what names it, and the request that it was given for (``request/alternative``)."""

    request: str
    driver: str
    pool: str
    device: str


class Allocation(Struct, frozen=True):
    """What a claim was given. ``nodes``: where it can be used, None everywhere."""

    devices: tuple[AllocatedDevice, ...] = ()
    nodes: tuple[NodeSelectorTerm, ...] | None = None


class ResourceClaim(Struct, frozen=True):
    """``reserved_for``: uids of the pods that may use it. ``unknown``: what it asks for that Pumice cannot give."""

    namespace: str
    name: str
    requests: tuple[DeviceRequest, ...] = ()
    same: tuple[SameAttribute, ...] = ()
    labels: Mapping[str, str] = EMPTY_MAP
    uid: str = ""
    allocation: Allocation | None = None
    reserved_for: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def devices(self) -> tuple[tuple[str, int], ...]:
        """How many of each device class it asks for, sorted by class; what cannot be told counts as one, and of
        alternatives the first."""
        found: dict[str, int] = {}
        for request in self.requests:
            first = request.options[0]
            if first.device_class:
                found[first.device_class] = found.get(first.device_class, 0) + (1 if first.every else first.count)
        return tuple(sorted(found.items()))


class ResourceClaimTemplate(Struct, frozen=True):
    """What every claim that is made from it asks for."""

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
    """A device is of the class where all ``selectors``, CEL expressions, say so."""

    name: str
    selectors: tuple[str, ...] = ()


class DeviceAttribute(Struct, frozen=True):
    """``kind``: string, int, bool or version."""

    name: str  # domain/name
    kind: str
    value: str


class DeviceTaint(Struct, frozen=True):
    """As of a node."""

    key: str
    value: str
    effect: str


class Device(Struct, frozen=True):
    """``capacity``: amounts by ``domain/name``. ``unknown``: why it can be given to nobody here."""

    name: str
    attributes: tuple[DeviceAttribute, ...] = ()
    capacity: tuple[tuple[str, float], ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    unknown: str = ""


class ResourceSlice(Struct, frozen=True):
    """Devices of a pool: on one node, on those that ``nodes`` select, or on all (both empty).

    ``generation``: of slices of one pool only those of the highest one count, and only where all ``slice_count`` of
    them are there.
    """

    name: str
    driver: str
    pool: str
    node_name: str = ""
    nodes: tuple[NodeSelectorTerm, ...] = ()
    devices: tuple[Device, ...] = ()
    generation: int = 0
    slice_count: int = 1
