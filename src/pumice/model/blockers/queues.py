"""Blockers about queues and their limits."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from pumice.model.blockers.base import Blocker
from pumice.model.blockers.changes import Change, Correct, FreeRoom, NotKnown, OpenQueue, RaiseLimit


class ResourceLimit(Struct, frozen=True):
    """A resource of which no more than the ``limit`` may be taken. ``used`` is taken now, ``promised`` is set aside for
    admitted jobs that do not use it yet, and ``asked`` is what the job asks for. ``total``: what the cluster has, 0
    where that does not matter."""

    resource: str
    limit: float
    used: float
    promised: float
    asked: float
    total: float = 0.0

    @property
    def excess(self) -> float:
        """By how much the limit would be exceeded, 0 where it would not be."""
        return max(self.used + self.promised + self.asked - self.limit, 0.0)


class QueueLimit(Blocker, frozen=True):
    """A queue may not take what the job asks for. ``kind``: one of the constants below. ``queue``: empty for a limit of
    the whole cluster; of a ResourceQuota its key. ``resources``: the amounts, empty where they are not known.
    ``detail``: what a plugin said that gave no amounts. ``others``: queues that are guaranteed the rest, or that want
    the rest of what is deserved. ``holders``: jobs to which the promised amounts are promised; ``in_vain``: none of
    them can ever run; ``without_pods``: none of them has a pod. ``a_pod``: one pod alone asks for more than what is
    left."""

    code: ClassVar[str] = "QueueLimit"
    queue: str
    kind: str
    resources: tuple[ResourceLimit, ...] = ()
    detail: str = ""
    others: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    in_vain: bool = False
    without_pods: bool = False
    a_pod: bool = False

    @property
    def exceeded(self) -> tuple[ResourceLimit, ...]:
        """Return the resources of which the limit would be exceeded."""
        return tuple(each for each in self.resources if each.excess)

    @property
    def lift(self) -> tuple[Change, ...]:
        if self.kind == CLOSED:
            return (OpenQueue(self.queue),)
        over = tuple(self._lift_of(each) for each in self.exceeded)
        return over or (NotKnown("the amounts of the limit are not known"),)

    def _lift_of(self, over: ResourceLimit) -> Change:
        # No limit lets a job take more than there is.
        if over.asked > over.total > 0.0:
            return FreeRoom(over.resource, over.asked - over.total)
        # A queue without a limit of its own, or that deserves all there is, is limited by the size of the cluster.
        if self.kind == CAPABILITY and over.limit >= over.total > 0.0:
            return FreeRoom(over.resource, over.excess)
        # What others want is never nothing, so no weight gives a queue all there is; as much again is enough.
        if self.kind == DESERVED and over.used + over.promised + over.asked >= over.total > 0.0:
            return FreeRoom(over.resource, over.asked)
        return RaiseLimit(self.queue, self.kind, over.resource, over.excess)


#: Kinds of ``QueueLimit``: it is closed; it has what it deserves; it may hold no more of what the pods ask for; it may
#: take no more from others.
CLOSED, DESERVED, CAPACITY, RECLAIM = "closed", "deserved", "capacity", "reclaim"
#: At admission: more than the queue can have at most; more than guarantees of other queues leave to it; more devices
#: than it may claim; more than may be promised of the whole cluster; more than a ResourceQuota allows.
CAPABILITY, GUARANTEE, DEVICES = "capability", "guarantee of others", "devices"
OVERCOMMIT, RESOURCE_QUOTA = "overcommit", "ResourceQuota"
#: And of KAI: its limit is reached; its quota, which jobs that are not preemptible may not exceed.
LIMIT, QUOTA = "limit", "quota"


class BadQueue(Blocker, frozen=True):
    """The tree of queues is broken at ``queue``. ``problem``: one of the constants below; ``other``: the queue that is
    named and does not exist."""

    code: ClassVar[str] = "BadQueue"
    queue: str
    problem: str
    other: str = ""
    detail: str = ""

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Correct(f"queue {self.queue}"),)


#: Problems of a ``BadQueue``: queues below it, so that it runs no jobs; its parent does not exist; its parents form a
#: circle; or what the language's own check of the tree says (``detail``).
HAS_CHILDREN, NO_PARENT, CIRCLE, NO_HIERARCHY = "has children", "no parent", "circle", "no hierarchy"
