"""Queues, priority classes and quotas."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP
from pumice.model.resources import EMPTY, Resource

#: Where a job goes that names no queue. Source: Volcano.
DEFAULT_QUEUE = "default"


class NodeGroupAffinity(Struct, frozen=True):
    """Names of node groups (label ``volcano.sh/nodegroup-name``) that a queue must, or would rather, use or avoid."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    anti_required: tuple[str, ...] = ()
    anti_preferred: tuple[str, ...] = ()


#: By node group, then by resource: an amount in canonical units. What is not named is not limited.
GroupLimits = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]


class Quota(Struct, frozen=True):
    """What a queue has of one resource: ``quota`` is its own, up to ``limit`` it may borrow, by ``over_quota_weight``.

    Units: milli-cores, bytes or milli-devices; None is unlimited. Source: KAI QueueResource, whose default is nothing.
    """

    quota: float | None = 0.0
    limit: float | None = 0.0
    over_quota_weight: float = 0.0


class QueueSharing(Struct, frozen=True):
    """How a queue of KAI's shares the cluster. Minimum runtimes are in seconds, None where the queue says nothing."""

    cpu: Quota = Quota()
    memory: Quota = Quota()
    gpu: Quota = Quota()
    preempt_min_runtime: float | None = None
    reclaim_min_runtime: float | None = None


class QueueUsage(Struct, frozen=True):
    """What the status of a queue of KAI's says beside what it and all below it hold: what of that is not preemptible,
    what they hold and ask for, and the queues directly below it, by name."""

    non_preemptible: Resource = EMPTY
    requested: Resource = EMPTY
    children: tuple[str, ...] = ()


class Queue(Struct, frozen=True):
    """A queue. ``capability``, ``deserved`` and ``guarantee`` are None where the spec does not give them.

    ``group_limits``: how much it may hold of each node group, None where that cannot be read.

    ``sharing`` is what a queue of KAI's says in their place, and ``usage`` its status; None for one of Volcano's.

    ``unread``: what of it could not be read, and why. It is closed then, it and every queue below it take nothing new,
    and nothing is reclaimed from it.
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
    unread: tuple[str, ...] = ()
    usage: QueueUsage | None = None  # as last written

    @property
    def barred(self) -> bool:
        """Whether what could not be read of it may have forbidden something."""
        return bool(self.unread) and self.state == "Closed" and not self.reclaimable


class PriorityClass(Struct, frozen=True):
    """A named priority. ``unread``: the unreadable fields, and why; with any, it counts as the lowest priority."""

    name: str
    value: int
    global_default: bool = False
    preemption_policy: str = ""
    unread: tuple[str, ...] = ()


class ResourceQuota(Struct, frozen=True):
    """What a namespace may use (``hard``) and uses (``used``); ``requests.`` prefixes are dropped from the names.

    ``unread``: what of it could not be read, and why. Nothing is left of that then.
    """

    namespace: str
    name: str
    hard: Resource = EMPTY
    used: Resource = EMPTY
    limited: tuple[str, ...] = ()  # the names in ``hard``, sorted: an amount of 0 limits too
    unread: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
