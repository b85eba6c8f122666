"""Changes in the cluster, as values: the only input of the store."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.bind_request import BindRequest
from pumice.model.config_map import ConfigMap
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from pumice.model.devices.numa import NodeResourceTopology, Numatopology
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass, Queue, ResourceQuota
from pumice.model.topology import HyperNode, Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.workload import Workload

Object = (
    Pod
    | Node
    | PodGroup
    | CompositePodGroup
    | Workload
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
    | ConfigMap
    | Numatopology
    | NodeResourceTopology
)


def key_of(obj: Object) -> str:
    """Return ``namespace/name``, or the name of a cluster-wide object, as ``Gone`` names it."""
    return str(getattr(obj, "key", None) or getattr(obj, "name", ""))


class Seen(Struct, frozen=True):
    """An object exists, new or changed. Applying it twice has no further effect."""

    obj: Object


class Gone(Struct, frozen=True):
    """An object no longer exists. ``key``: ``namespace/name``, or the name of a cluster-wide object."""

    # The kind is part of it, because objects of several kinds may have one key.
    kind: type[Object]
    key: str


# Not a change of an object: nothing happened in the cluster, and the store only forgets what it assumed.
class Undone(Struct, frozen=True):
    """A decision could not be carried out. The pod returns to the state in which it was last seen."""

    pod: str  # namespace/name
    uid: str


class PodsSeen(Struct, frozen=True):
    """Many pods that exist, by key, in this order."""

    # One event for many pods, because events one by one cost several times as much.
    pods: Mapping[str, Pod]


class PodsGone(Struct, frozen=True):
    """Pods that no longer exist, by key, in this order."""

    keys: tuple[str, ...]


#: A change of one object.
Event = Seen | Gone | Undone
#: All that the store accepts.
News = Event | PodsSeen | PodsGone
