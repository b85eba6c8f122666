"""What happened in the cluster, as values: the only input of the store."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.bind_request import BindRequest
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from pumice.model.devices.numa import Numatopology
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass, Queue, ResourceQuota
from pumice.model.topology import HyperNode, Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.model.workloads.podgroup import PodGroup

Object = (
    Pod
    | Node
    | PodGroup
    | Queue
    | PriorityClass
    | HyperNode
    | Topology
    | PodDisruptionBudget
    | ResourceClaim
    | ResourceClaimTemplate
    | ResourceSlice
    | DeviceClass
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIStorageCapacity
    | ResourceQuota
    | NodeUsage
    | QueueHistory
    | BindRequest
    | Numatopology
)


class Seen(Struct, frozen=True):
    """An object is there, new or changed. Seeing the same thing twice is harmless."""

    obj: Object


class Gone(Struct, frozen=True):
    """An object is not there any more. ``key`` is ``namespace/name``, or the name of a cluster-wide object."""

    kind: type[Object]
    key: str


class Undone(Struct, frozen=True):
    """A decision that was taken could not be carried out: the pod is again what was last seen of it."""

    pod: str  # namespace/name
    uid: str


class PodsSeen(Struct, frozen=True):
    """Pods, by key, of which each is seen, in this order: many that are told together cost little more than one."""

    pods: Mapping[str, Pod]


class PodsGone(Struct, frozen=True):
    """Pods, by key, of which each is gone, in this order."""

    keys: tuple[str, ...]


#: What happened to one object.
Event = Seen | Gone | Undone
#: What a cluster tells at a time.
News = Event | PodsSeen | PodsGone
