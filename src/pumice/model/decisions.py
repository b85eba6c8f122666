"""What a cycle decides, as values. A planner takes them one by one; nothing else leaves the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from pumice.model.devices.claims import Allocation
from pumice.model.pod import EMPTY_MAP
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource
from pumice.model.workloads.gang import GangTimes
from pumice.model.workloads.podgroup import PodGroupStatus

#: In the context of a bind: the groups with which the pod shares its devices.
GPU_GROUPS = "gpu_groups"
#: And what the claims of the pod must say before it is bound: a tuple of ``ClaimGrant``.
CLAIMS = "claims"


class ClaimGrant(NamedTuple):
    """A claim that a pod uses (``namespace/name``; ``namespace/pod/number`` where the pod does not say yet how the one
    is called that is made for it), and what it was given for that, None where it had been given it before."""

    claim: str
    allocation: Allocation | None


#: And which volumes its claims are to have before it is bound: a tuple of ``VolumeGrant``.
VOLUMES = "volumes"


#: And what the pod is to say of the shared devices that it was given, as soon as it is bound: a ``DeviceGrant``.
DEVICES = "devices"


class VolumeGrant(NamedTuple):
    """A claim of a volume (``namespace/name``), the volume that it was given, empty for one that is to be made, and the
    node for which."""

    claim: str
    uid: str
    volume: str
    node: str


class Bind(NamedTuple):
    """Put a pod on a node."""

    pod: str  # namespace/name
    uid: str
    node: str
    job: str  # namespace/podgroup
    context: Mapping[str, object] = EMPTY_MAP  # what plugins hand on to their own hooks before binding


class Evict(NamedTuple):
    """Take a pod off its node, for a reason that users see."""

    pod: str
    uid: str
    node: str
    job: str
    reason: str


Decision = Bind | Evict


class Refusal(Struct, frozen=True):
    """A planner's no to one decision. The task it names is undone, nothing else."""

    reason: str


class PodGroupUpdate(Struct, frozen=True):
    """A PodGroup status that differs from the one in the snapshot and should be written. ``times``: those of a gang of
    KAI's that differ likewise, None: they do not."""

    job: str
    status: PodGroupStatus
    times: GangTimes | None = None


class PodNotice(Struct, frozen=True):
    """The PodScheduled=False condition a waiting pod should carry, and the node it is nominated to (or empty)."""

    pod: str
    uid: str
    reason: str
    message: str
    nominated_node: str = ""


class GateRemoval(NamedTuple):
    """Take Volcano's queue gate off a pod that waits: its queue may take it on."""

    pod: str  # namespace/name
    uid: str


class Writes(Struct, frozen=True):
    """What differs from the snapshot and should be written: PodGroup statuses, ``status.allocated`` of queues by name,
    and for the same queues ``usages``, in a language that writes such; ``gates`` that are to be taken off pods.
    ``job_hypernodes`` and ``sub_hypernodes`` (row -> hypernode row) are for the store to remember, and so are
    ``notes``, which the next snapshot has again."""

    groups: tuple[PodGroupUpdate, ...] = ()
    queues: Mapping[str, Resource] = {}
    usages: Mapping[str, QueueUsage] = {}
    job_hypernodes: Mapping[int, int] = {}
    sub_hypernodes: Mapping[int, int] = {}
    notes: Mapping[str, float] = {}
    gates: tuple[GateRemoval, ...] = ()
