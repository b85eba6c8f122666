"""Queues, PriorityClasses and ResourceQuotas."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.pod import EMPTY_MAP
from pumice.model.resources import EMPTY, Resource

#: Queue of jobs that name none. Source: Volcano.
DEFAULT_QUEUE = "default"


class NodeGroupAffinity(Struct, frozen=True):
    """Node groups (label ``volcano.sh/nodegroup-name``) that a queue must use or avoid, or prefers to."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    anti_required: tuple[str, ...] = ()
    anti_preferred: tuple[str, ...] = ()


#: By node group and resource: an amount in canonical units. Resources that are not named are not limited.
GroupLimits = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]


# None for unlimited, since JSON has no infinity.
class Quota(Struct, frozen=True):
    """What a queue may have of one resource: its own ``quota``, and up to ``limit`` what others leave, shared by
    ``over_quota_weight``.

    Units: milli-cores, bytes or milli-devices. None: unlimited. Source: KAI QueueResource, whose default is 0.
    """

    quota: float | None = 0.0
    limit: float | None = 0.0
    # KAI's defaults are 0: a queue without these fields gets nothing, and -1 in the API means unlimited (None here).
    over_quota_weight: float = 0.0


# KAI knows three resources only; others are bounded by nodes and not by queues.
class QueueSharing(Struct, frozen=True):
    """What KAI adds to a queue: quotas, and a name for people. Minimum runtimes are in seconds, None if the queue does
    not set them."""

    cpu: Quota = Quota()
    memory: Quota = Quota()
    gpu: Quota = Quota()
    preempt_min_runtime: float | None = None
    reclaim_min_runtime: float | None = None
    display_name: str = ""


# Written for others to read, as KAI's own scheduler does.
class QueueUsage(Struct, frozen=True):
    """Status of a queue of KAI, in addition to what it holds.

    ``non_preemptible``: the part of that which is not preemptible. ``requested``: what the jobs in and below it hold
    and ask for. ``children``: names of the queues directly below it.
    """

    non_preemptible: Resource = EMPTY
    requested: Resource = EMPTY
    children: tuple[str, ...] = ()


class Queue(Struct, frozen=True):
    """A queue. ``capability``, ``deserved`` and ``guarantee`` are None if the spec does not set them.

    ``group_limits``: what it may hold of each node group, None if unreadable. ``sharing`` and ``usage``: quotas and
    status of a queue of KAI, None for one of Volcano. ``unparsable``: fields that could not be read, and why. Such a
    queue is closed: it and all queues below it take nothing new, and nothing is reclaimed from it.
    """

    name: str
    weight: int = 1
    capability: Resource | None = None
    deserved: Resource | None = None
    guarantee: Resource | None = None
    reclaimable: bool = True
    priority: int = 0
    parent: str = ""
    state: str = "Open"
    creation: float = 0.0
    annotations: Mapping[str, str] = EMPTY_MAP
    labels: Mapping[str, str] = EMPTY_MAP
    allocated: Resource | None = None  # status.allocated as last written
    uid: str = ""
    resource_version: str = ""
    affinity: NodeGroupAffinity | None = None
    group_limits: GroupLimits | None = ()
    sharing: QueueSharing | None = None
    unparsable: tuple[str, ...] = ()
    usage: QueueUsage | None = None  # as last written

    @property
    def quarantined(self) -> bool:
        """True if an unreadable field may have forbidden something."""
        # The decoder closes such a queue, so the state says whether what is unreadable could have forbidden something.
        return bool(self.unparsable) and self.state == "Closed" and not self.reclaimable


# Apart from the spec, because the scheduler writes it itself: what follows from the spec must survive such a write.
class QueueStatus(Struct, frozen=True):
    """The fields of a queue that change with a write of its status."""

    allocated: Resource | None = None
    usage: QueueUsage | None = None
    resource_version: str = ""

    @classmethod
    def of(cls, queue: Queue) -> QueueStatus:
        """Return the status of a queue."""
        # Three fields and no copy of the rest, so that each fact of a queue has one place.
        return cls(queue.allocated, queue.usage, queue.resource_version)

    def added_to(self, spec: Queue) -> Queue:
        """Return a queue with this status."""
        # The version goes with the status: it changes with each write, also of one that says the same.
        return replace(spec, allocated=self.allocated, usage=self.usage, resource_version=self.resource_version)


def without_status(queue: Queue) -> Queue:
    """Return what a queue states: the same one with an empty status."""
    return QueueStatus().added_to(queue)


class PriorityClass(Struct, frozen=True):
    """A named priority. ``unparsable``: fields that could not be read, and why; then it counts as the lowest
    priority."""

    name: str
    value: int
    global_default: bool = False
    preemption_policy: str = ""
    unparsable: tuple[str, ...] = ()


class ResourceQuota(Struct, frozen=True):
    """What a namespace may use (``hard``) and uses (``used``). The prefix ``requests.`` is removed from names.

    ``unparsable``: fields that could not be read, and why; then nothing of their resources is left.
    """

    namespace: str
    name: str
    hard: Resource = EMPTY
    used: Resource = EMPTY
    limited: tuple[str, ...] = ()  # the names in ``hard``, sorted: an amount of 0 limits too
    unparsable: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
