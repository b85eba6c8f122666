"""The decisions of a cycle, as values. Nothing else leaves the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.devices.claims import Allocation
from pumice.model.devices.extended import ExtendedRequests
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.pod import EMPTY_MAP
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource
from pumice.model.workloads.gang import GangTimes
from pumice.model.workloads.native_group import GroupRef
from pumice.model.workloads.podgroup import PodGroupStatus

#: Keys of the context of a bind. Groups: those with which the pod shares its devices.
GPU_GROUPS = "gpu_groups"
#: Allocations that the claims of the pod must have before it is bound: a tuple of ``ClaimGrant``.
CLAIMS = "claims"


class ClaimGrant(NamedTuple):
    """A claim that a pod uses, and its allocation, or None if it already had one.

    ``claim``: ``namespace/name``, or ``namespace/pod/number`` while the pod's status does not name the claim that is
    made for it, or ``namespace/pod/extended-resources`` for the claim that is to be made. ``extended``: what the claim
    for the extended resources of the pod asks for, None for other claims. ``group``: the PodGroup that the claim is
    reserved for in place of the pod, None for other claims.
    """

    claim: str
    allocation: Allocation | None
    extended: ExtendedRequests | None = None
    group: GroupRef | None = None


#: Volumes that the claims of the pod must have before it is bound: a tuple of ``VolumeGrant``.
VOLUMES = "volumes"


#: The shared devices that the pod has been given, to be written with its binding: a ``DeviceGrant``.
DEVICES = "devices"


class VolumeGrant(NamedTuple):
    """A PersistentVolumeClaim (``namespace/name``), its volume ("" for one to be provisioned), and the node that the
    volume is for."""

    claim: str
    uid: str
    volume: str
    node: str


# Keys and not rows: a decision outlives the snapshot whose rows it came from.
class Bind(NamedTuple):
    """Bind a pod to a node."""

    pod: str  # namespace/name
    uid: str
    node: str
    job: str  # namespace/podgroup
    context: Mapping[str, object] = EMPTY_MAP  # what plugins hand on to their own hooks before binding


class Evict(NamedTuple):
    """Evict a pod, for a reason that users read."""

    pod: str
    uid: str
    node: str
    job: str
    reason: str


Decision = Bind | Evict


def device_grant(bind: Bind) -> DeviceGrant | None:
    """Return the shared devices that a bind gives its pod: cards, groups of GPUs or both. None if it gives none."""
    cards, groups = bind.context.get(DEVICES), bind.context.get(GPU_GROUPS)
    # Checked and not trusted: the context is what plugins put there, and a plugin of a user may use the same key.
    given = cards if isinstance(cards, DeviceGrant) else None
    if not isinstance(groups, tuple) or not groups:
        return given
    namespace, _, name = bind.pod.partition("/")
    return replace(given or DeviceGrant(namespace, name, ()), gpu_groups=groups)


class Refusal(Struct, frozen=True):
    """A planner's refusal of one decision. Only the task that it names is undone."""

    reason: str


class PodGroupUpdate(Struct, frozen=True):
    """The new status of a PodGroup, which differs from that in the snapshot. ``times``: new times of a KAI gang, None
    if they have not changed. ``error``: why the scheduler could not decide about the job, which only Kubernetes' own
    groups say in a status; "" if it could. ``eviction``: why all pods of it that hold nodes are evicted, "" if one
    stays."""

    job: str
    status: PodGroupStatus
    times: GangTimes | None = None
    error: str = ""
    eviction: str = ""


# Without a time: the writer adds it, and leaves out a notice that says what the pod's condition says already.
class PodNotice(Struct, frozen=True):
    """The condition PodScheduled=False of a waiting pod, and the node that it is nominated to ("" for none)."""

    pod: str
    uid: str
    reason: str
    message: str
    nominated_node: str = ""


class GateRemoval(NamedTuple):
    """Remove Volcano's queue gate from a waiting pod, because its queue can take it."""

    pod: str  # namespace/name
    uid: str


# Differences and not states, so that a cycle in which nothing changed writes nothing (decision 0014).
class Writes(Struct, frozen=True):
    """What the cycle wants to be written: all that differs from the snapshot.

    ``groups``: statuses of PodGroups. ``queues``: ``status.allocated`` by queue. ``usages``: the further status of
    KAI's queues. ``gates``: gates to remove. The store remembers ``job_hypernodes`` and ``sub_hypernodes`` (row -> row
    of the hypernode), and ``notes``, which the next snapshot contains.
    """

    groups: tuple[PodGroupUpdate, ...] = ()
    queues: Mapping[str, Resource] = {}
    usages: Mapping[str, QueueUsage] = {}
    job_hypernodes: Mapping[int, int] = {}
    sub_hypernodes: Mapping[int, int] = {}
    notes: Mapping[str, float] = {}
    gates: tuple[GateRemoval, ...] = ()
