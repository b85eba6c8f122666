"""Why a job waits, as values: one kind of blocker for each possible obstacle (docs/decisions/0032).

An action, a filter or a search that says no hands a blocker to the cycle trace (``trace.tell``, ``trace.rejected``,
``Attempt.findings``, ``FitErrors.against``). What equal jobs share in the trace names no job; ``reasons.blockers``
makes the blockers of one job from it when they are read. Volcano's and KAI's texts are rendered from them
(``volcano.status``, ``kai.words``), and so are our own sentences (``reasons.sentences``), which hints, log and reports
show. No reader looks into a text.

A blocker holds names and amounts. ``detail`` is what a plugin or the cluster said: it is shown and never read. The
units are those of the core: thousandths of cores and devices, bytes. Each kind has a ``code`` that does not change, and
says with ``lift`` what would have to change.
"""

from __future__ import annotations

from typing import ClassVar

from pumice.model.blockers.base import Blocker
from pumice.model.blockers.changes import (
    AddPods,
    Amount,
    Change,
    Correct,
    Create,
    NotKnown,
    RemoveGates,
    Wait,
)
from pumice.model.blockers.evictions import (
    CannotEvict,
    Delayed,
    NeverPreempts,
    NoCase,
    NoVictims,
    OutOfReach,
    Protected,
    Reserved,
    RoomIsFree,
    RoomReserved,
    TooFewVictims,
    TooSmall,
)
from pumice.model.blockers.nodes import (
    CORDONED,
    DEVICE_CLAIM,
    NOT_READY,
    TAINTED,
    UNREADABLE,
    VOLUME_CLAIM,
    Closed,
    Domain,
    Fragments,
    HeldByOthers,
    KeptApart,
    NearNone,
    NodeFilter,
    NoNode,
    NoPart,
    NoRoom,
    NoSuchNode,
    Part,
    PortTaken,
    RoomOnClosed,
    SharedClaim,
    Shortage,
    Taints,
    TooManyPods,
    Uneven,
)
from pumice.model.blockers.queues import (
    CAPABILITY,
    CAPACITY,
    CIRCLE,
    CLOSED,
    DESERVED,
    DEVICES,
    GUARANTEE,
    HAS_CHILDREN,
    LIMIT,
    NO_HIERARCHY,
    NO_PARENT,
    OVERCOMMIT,
    QUOTA,
    RECLAIM,
    RESOURCE_QUOTA,
    BadQueue,
    QueueLimit,
    ResourceLimit,
)
from pumice.model.blockers.reservations import (
    AHEAD,
    NO_PLACE,
    OVERRUN,
    REPLANNED,
    ROOM,
    STARTED,
    TOO_LONG,
    MovedBy,
    StartReserved,
)

__all__ = [
    "ACTION",
    "ADMISSION",
    "AHEAD",
    "ALL_NODES",
    "BIND",
    "CAPABILITY",
    "CAPACITY",
    "CIRCLE",
    "CLOSED",
    "CORDONED",
    "DESERVED",
    "DEVICES",
    "DEVICE_CLAIM",
    "EVICT",
    "GUARANTEE",
    "HAS_CHILDREN",
    "HYPERNODES",
    "JOB",
    "LIMIT",
    "LOW_HYPERNODES",
    "NATIVE_PODGROUP",
    "NODE",
    "NOT_READY",
    "NO_HIERARCHY",
    "NO_PARENT",
    "NO_PLACE",
    "OVERCOMMIT",
    "OVERRUN",
    "PLACEMENT",
    "PODGROUP",
    "QUEUE",
    "QUOTA",
    "RECLAIM",
    "REPLANNED",
    "RESOURCE",
    "RESOURCE_QUOTA",
    "ROOM",
    "STARTED",
    "TAINTED",
    "TASK",
    "TOO_LONG",
    "UNREADABLE",
    "VOLUME_CLAIM",
    "Amount",
    "BadQueue",
    "Behind",
    "Blocker",
    "CannotEvict",
    "Closed",
    "Delayed",
    "Domain",
    "Fragments",
    "GangIncomplete",
    "GangPartial",
    "Gated",
    "HeldByOthers",
    "KeptApart",
    "Missing",
    "MovedBy",
    "NearNone",
    "NeverPreempts",
    "NoCase",
    "NoNode",
    "NoPart",
    "NoRoom",
    "NoSuchNode",
    "NoVictims",
    "NodeFilter",
    "NotAdmitted",
    "OtherScheduler",
    "OutOfReach",
    "Part",
    "PluginFault",
    "PortTaken",
    "Protected",
    "QueueLimit",
    "Refused",
    "Reserved",
    "ResourceLimit",
    "RoomIsFree",
    "RoomOnClosed",
    "RoomReserved",
    "SearchCut",
    "SharedClaim",
    "Shortage",
    "StartReserved",
    "Taints",
    "TooFewVictims",
    "TooManyPods",
    "TooSmall",
    "Uneven",
    "Unreadable",
]


# A blocker around others, because "not admitted" is what users look for, and the reasons say what to do about it.
class NotAdmitted(Blocker, frozen=True):
    """The job is not admitted. ``by``: what prevents it; empty where plugins gave no reason."""

    code: ClassVar[str] = "NotAdmitted"
    by: tuple[Blocker, ...] = ()

    @property
    def lift(self) -> tuple[Change, ...]:
        # All of them are needed: each of the reasons is enough to keep the job out.
        found = tuple(change for each in self.by for change in each.lift)
        return found or (NotKnown("the plugin that refuses gave no reason"),)


# For reasons that exist only as a text: those of a plugin, or of the API server that refused a decision.
class Refused(Blocker, frozen=True):
    """A plugin, or the cluster, refuses ``what`` (one of the constants below) and says why in ``detail``."""

    code: ClassVar[str] = "Refused"
    what: str
    detail: str
    reason: str = ""

    @property
    def lift(self) -> tuple[Change, ...]:
        return (NotKnown("the reason is a text of a plugin"),)


#: What is ``Refused``: the job, a task of it, its admission, a placement; the order to bind or to evict a pod.
JOB, TASK, ADMISSION, PLACEMENT, BIND, EVICT = "job", "task", "admission", "placement", "bind", "evict"


# No search helps here: pods are missing that the job's own controller has to make.
class GangIncomplete(Blocker, frozen=True):
    """Of the ``minimum`` pods of a role only so many exist, beside those that are ``leaving``. ``role``: empty for all
    of the job. ``detail``: the language's text for it."""

    code: ClassVar[str] = "GangIncomplete"
    role: str
    exist: int
    minimum: int
    detail: str = ""
    leaving: int = 0

    @property
    def lift(self) -> tuple[Change, ...]:
        # At least one: a pod may exist and still not count, because it is leaving.
        return (AddPods(self.role, max(self.minimum - self.exist, 1)),)


# Kubernetes does not schedule a gated pod, so nothing about nodes or queues matters before the gates are gone.
class Gated(Blocker, frozen=True):
    """Scheduling gates hold back ``pods`` of the ``waiting`` pods, so that the job cannot start."""

    code: ClassVar[str] = "Gated"
    gates: tuple[str, ...]
    pods: int
    waiting: int

    @property
    def lift(self) -> tuple[Change, ...]:
        return (RemoveGates(self.gates),)


# The first obstacle only: those after it were found with some pods placed, and may be gone once it is.
class GangPartial(Blocker, frozen=True):
    """So many pods of the gang could be ``placed``, fewer than the ``minimum`` that it still needs. ``first``: what
    blocks the next one, where that is known. ``role``: the sub-group of all of them, empty for all of the gang."""

    code: ClassVar[str] = "GangPartial"
    placed: int
    minimum: int
    first: Blocker | None = None
    # KAI's texts for gangs and for sub-groups differ, and a minimum is that of the sub-group alone.
    role: str = ""

    @property
    def lift(self) -> tuple[Change, ...]:
        return self.first.lift if self.first is not None else (NotKnown("a search has to find it"),)


# Nothing is wrong with the job: without the others it would have started. So its lift is to wait.
class Behind(Blocker, frozen=True):
    """Others came first, and the cycle ended. ``jobs``: those of its ``queue`` that took what was ``free`` before the
    cycle and would have been enough; they took ``taken`` of it. ``best``: what is left on one node at most, None where
    too little is left in all."""

    code: ClassVar[str] = "Behind"
    jobs: tuple[str, ...] = ()
    queue: str = ""
    free: Amount | None = None
    taken: float = 0.0
    best: float | None = None

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Wait(),)


# "Not found" and "not sought further" call for different answers: more room, or more steps.
class SearchCut(Blocker, frozen=True):
    """An ``action``, or a filter, ended its search after so many ``steps``: what it found is no proof. ``nodes``: those
    that a filter did not search to the end. ``detail``: the reason in its words."""

    code: ClassVar[str] = "SearchCut"
    no_lift: ClassVar[str] = "the search ended before it could tell"
    action: str
    steps: int
    nodes: int = 0
    detail: str = ""


# The place in the code, because the reader who can mend it is the author of the plugin and not the user of the job.
class PluginFault(Blocker, frozen=True):
    """A plugin failed while the job was tried. ``place``: file and line."""

    code: ClassVar[str] = "PluginFault"
    plugin: str
    point: str
    hook: str
    place: str
    error: str

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Correct(f"plugin {self.plugin}"),)


# Found when the object was read and long before any search, so nothing else about the job is known to be true.
class Unreadable(Blocker, frozen=True):
    """An object cannot be read. ``detail`` says which field, what was found and what was wanted."""

    code: ClassVar[str] = "Unreadable"
    object: str
    detail: str

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Correct(self.object),)


# Such pods are seen, since they hold room on nodes, and are never placed here.
class OtherScheduler(Blocker, frozen=True):
    """Its pods name a ``scheduler`` that is not one of those whose pods are placed here."""

    code: ClassVar[str] = "OtherScheduler"
    scheduler: str
    ours: tuple[str, ...]

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Correct("schedulerName"),)


#: Kinds of ``Missing`` without a name: no HyperNode is ready; none has a tier as low as the job asks for, which is then
#: the name; there are no nodes.
HYPERNODES, LOW_HYPERNODES, ALL_NODES = "ready HyperNodes", "HyperNodes of a low tier", "nodes"
#: Other kinds, by name: a resource that no node has; a queue; a PodGroup; a node; an action of the policy.
RESOURCE, QUEUE, PODGROUP, NODE, ACTION = "resource", "queue", "PodGroup", "Node", "action"
#: A PodGroup of Kubernetes' own, which a pod names in its spec.
NATIVE_PODGROUP = "PodGroup.scheduling.k8s.io"


# Often a misspelt name, hence ``meant``: the reader is shown what exists.
class Missing(Blocker, frozen=True):
    """An object that the job needs does not exist, or is not ready. ``meant``: one that exists, of a similar name."""

    code: ClassVar[str] = "Missing"
    kind: str
    name: str = ""
    meant: str = ""

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Create(self.kind, self.name),)
