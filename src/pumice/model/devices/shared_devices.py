"""Devices that Volcano allocates card by card: requests of pods, and annotations.

Source: names of resources and annotations are those of Volcano's deviceshare plugin, its device plugins, and HAMi.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.resources import Resource

GPU_MEMORY, GPU_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
UNHEALTHY_IDS_ANNOTATION = "volcano.sh/gpu-unhealthy-ids"
GPU_INDEX_ANNOTATION, PREDICATE_TIME_ANNOTATION = "volcano.sh/gpu-index", "volcano.sh/predicate-time"

VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
VGPU_PERCENTAGE = "volcano.sh/vgpu-memory-percentage"
REGISTER_ANNOTATION = "volcano.sh/node-vgpu-register"
MODE_ANNOTATION = "volcano.sh/vgpu-mode"
USE_TYPE_ANNOTATION, NO_USE_TYPE_ANNOTATION = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_ID_ANNOTATION, NO_USE_ID_ANNOTATION = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
SPREAD_ANNOTATION, SPREAD = "volcano.sh/vgpu-podgroup-policy", "spread"
ASSIGNED_NODE_ANNOTATION, ASSIGNED_TIME_ANNOTATION = "volcano.sh/vgpu-node", "volcano.sh/vgpu-time"
ASSIGNED_IDS_ANNOTATION, TO_ALLOCATE_ANNOTATION = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
BIND_PHASE_ANNOTATION, BIND_TIME_ANNOTATION = "volcano.sh/bind-phase", "volcano.sh/bind-time"
ALLOCATING = "allocating"

HAMI = "hami.io/"
NPU_MODE_ANNOTATION, HAMI_CORE = "huawei.com/vnpu-mode", "hami-core"

_COUNTED_BY_CARD = frozenset({VGPU_MEMORY, VGPU_PERCENTAGE, VGPU_CORES})
_NPU, _PARTS_OF_NPUS = "huawei.com/", ("-memory", "-core")

#: Domains of the resources of shared devices.
DEVICE_DOMAINS = ("volcano.sh/", "huawei.com/")
_ASKED = ("volcano.sh/gpu-", "volcano.sh/vgpu-", "huawei.com/")
_ANNOTATIONS = frozenset(
    {
        *(MODE_ANNOTATION, USE_TYPE_ANNOTATION, NO_USE_TYPE_ANNOTATION, USE_ID_ANNOTATION, NO_USE_ID_ANNOTATION),
        *(SPREAD_ANNOTATION, NPU_MODE_ANNOTATION),
    }
)
#: Longest annotation that is read. A longer one is a condition that no card fulfils.
ANNOTATION_CHARACTERS_MAX = 4096

#: Limits of one container by name of the resource, in whole units.
Limits = tuple[tuple[str, int], ...]


class Stage(IntEnum):
    """When a container of a pod runs. Init containers run one after the other and end before containers start;
    sidecars start among them and stay."""

    ONCE = 0
    SIDECAR = 1
    CONTAINER = 2


# As raw limits and annotations, because which of them matter depends on the switches of the policy.
class DeviceAsk(Struct, frozen=True):
    """What a pod asks of shared devices: limits of its ``containers``, limits of its init containers (``first``), and
    ``annotations`` that restrict which cards it accepts. ``sidecars``: which of ``first`` are sidecars, by index."""

    containers: tuple[Limits, ...] = ()
    first: tuple[Limits, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    sidecars: tuple[int, ...] = ()

    @property
    def stages(self) -> Iterator[tuple[Stage, Limits]]:
        """The limits of all containers in the order in which the kubelet starts them."""
        for i, limits in enumerate(self.first):
            yield (Stage.SIDECAR if i in self.sidecars else Stage.ONCE), limits
        for limits in self.containers:
            yield Stage.CONTAINER, limits

    def annotation(self, annotation: str) -> str | None:
        """Return the value of an annotation, or None if the pod does not have it."""
        return next((value for key, value in self.annotations if key == annotation), None)

    @property
    def too_long(self) -> str:
        """The first annotation that is too long to be read, "" for none."""
        # Only found here and not cut: a condition that is cut in the middle would mean something else.
        return next((key for key, value in self.annotations if len(value) > ANNOTATION_CHARACTERS_MAX), "")

    def most(self, name: str) -> int:
        """Return the most of a resource that the pod uses at one time: all containers and sidecars together, or an
        init container and the sidecars before it."""
        staying = peak = 0
        for stage, limits in self.stages:
            amount = dict(limits).get(name, 0)
            peak = max(peak, staying + amount)
            # A sidecar stays, and so it is added to each container that starts later.
            staying += amount if stage is not Stage.ONCE else 0
        return peak


class DeviceGrant(Struct, frozen=True):
    """The cards of a pod, as ``annotations`` to be written once it is bound. ``locks``: locks of its node that must be
    taken before. ``gpu_groups``: the groups of pods with which it shares GPUs, to be written as labels."""

    namespace: str
    name: str
    annotations: tuple[tuple[str, str], ...]
    locks: tuple[str, ...] = ()
    gpu_groups: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name`` of the pod."""
        return f"{self.namespace}/{self.name}"


def is_counted_by_card(resource: str) -> bool:
    """Return True if a resource is counted per card only, so that a sum over containers means nothing. Source:
    Volcano's list of ignored devices."""
    return resource in _COUNTED_BY_CARD or (resource.startswith(_NPU) and resource.endswith(_PARTS_OF_NPUS))


def counted_in_sums(amount: Resource) -> Resource:
    """Return an amount without the resources that are counted per card."""
    scalars = amount.scalars or {}
    # Nearly all pods have none, and then the same object is returned.
    if not any(map(is_counted_by_card, scalars)):
        return amount
    return replace(amount, scalars={name: n for name, n in scalars.items() if not is_counted_by_card(name)})


def is_shared_device(resource: str) -> bool:
    """Return True if a resource may be one of shared devices."""
    return resource.startswith(_ASKED)


def device_annotations(annotations: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the annotations of a pod that restrict which cards it accepts, sorted."""
    # Two steps, because nearly all pods have none, and this is called for every pod that is read.
    found = [key for key in annotations if key in _ANNOTATIONS or key.startswith(HAMI)]
    if not found:
        return ()
    return tuple(sorted((key, annotations[key]) for key in found if key in _ANNOTATIONS or key.endswith("-uuid")))
