"""Why a job waits, as values: one kind of blocker for each thing that can stand in its way.

Who makes them. An action, a filter or a search that says no hands a blocker to the cycle trace (``trace.tell``,
``trace.rejected``, ``Attempt.findings``), or leaves the finding in columns (``FitErrors``). What equal jobs share in
the trace names no job; ``explain.blockers`` makes the blockers of one job from it when they are read.
Who reads them. Volcano's and KAI's texts are rendered from them (``volcano.status``, ``kai.words``), and so are our own
sentences (``explain.sentences``), which the log and reports show. No reader looks into a text.

A blocker holds names and amounts. ``detail`` is what a plugin or the cluster said: it is shown and never read. The
units are those of the core: thousandths of cores and devices, bytes. Each kind has a ``code`` that does not change,
and says with ``lift`` what would have to change, as far as that is known without a search.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import asdict

from pumice.model.blockers.changes import (
    AddPods,
    Change,
    ChangeNodes,
    Correct,
    Create,
    FreeRoom,
    NotKnown,
    OpenQueue,
    RaiseLimit,
    RemoveGates,
    Wait,
)


class Blocker(Struct, frozen=True):
    """One thing that stands in the way of a job."""

    code: ClassVar[str] = ""

    @property
    def lift(self) -> Change:
        """The smallest change after which it would not stand in the way."""
        return NotKnown("a search has to find it")

    @property
    def plain(self) -> dict[str, Any]:
        """It as a dictionary for JSON, ``code`` first. Other blockers inside are dictionaries too."""
        return {"code": self.code, **{name: _plain(value) for name, value in asdict(self).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, Blocker):
        return value.plain
    if isinstance(value, Struct):
        return {name: _plain(each) for name, each in asdict(value).items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


class NodeFilter(Blocker, frozen=True):
    """So many ``nodes`` of the ``looked_at`` refuse a pod. ``plugin``: empty for a rule of the core."""

    code: ClassVar[str] = "NodeFilter"
    plugin: str
    nodes: int
    looked_at: int
    detail: str

    @property
    def lift(self) -> Change:
        return ChangeNodes(self.plugin, 1, self.detail)


class Shortage(Blocker, frozen=True):
    """On ``nodes`` of the ``looked_at`` there is too little of a resource. ``each``: what one pod asks for, and
    ``wanted`` how many more pods. ``free`` in all, and ``best`` on one node, are those of the nodes that were looked
    at, less what pods of the gang that were placed before take."""

    code: ClassVar[str] = "Shortage"
    resource: str
    each: float
    wanted: int
    free: float
    best: float
    nodes: int
    looked_at: int

    @property
    def lift(self) -> Change:
        return FreeRoom(self.resource, self.each - self.best if self.best < self.each else self.each)


class ResourceLimit(Struct, frozen=True):
    """A resource of which no more than the ``limit`` may be taken. ``used`` is taken now, ``promised`` is set aside for
    admitted jobs that do not use it yet, and ``asked`` is what the job asks for."""

    resource: str
    limit: float
    used: float
    promised: float
    asked: float

    @property
    def excess(self) -> float:
        """By how much the limit would be exceeded, 0 where it would not be."""
        return max(self.used + self.promised + self.asked - self.limit, 0.0)


class QueueLimit(Blocker, frozen=True):
    """A queue may not take what the job asks for. ``kind``: one of the constants below. ``queue``: empty for a limit of
    the whole cluster; of a ResourceQuota its key. ``resources``: the amounts, empty where they are not known.
    ``detail``: what a plugin said that gave no amounts."""

    code: ClassVar[str] = "QueueLimit"
    queue: str
    kind: str
    resources: tuple[ResourceLimit, ...] = ()
    detail: str = ""

    @property
    def lift(self) -> Change:
        if self.kind == CLOSED:
            return OpenQueue(self.queue)
        first = next((each for each in self.resources if each.excess), None)
        if first is None:
            return RaiseLimit(self.queue, self.kind, "", 0.0)
        return RaiseLimit(self.queue, self.kind, first.resource, first.excess)


#: Kinds of ``QueueLimit``: it is closed; it has what it deserves; it may hold no more of what the pods ask for; it may
#: take no more from others.
CLOSED, DESERVED, CAPACITY, RECLAIM = "closed", "deserved", "capacity", "reclaim"
#: At admission: more than the queue can have at most; more devices than it may claim; more than may be promised of the
#: whole cluster; more than a ResourceQuota allows.
CAPABILITY, DEVICES, OVERCOMMIT, RESOURCE_QUOTA = "capability", "devices", "overcommit", "ResourceQuota"
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
    def lift(self) -> Change:
        return Correct(f"queue {self.queue}")


#: Problems of a ``BadQueue``: queues below it, so that it runs no jobs; its parent does not exist; its parents form a
#: circle; or what the language's own check of the tree says (``detail``).
HAS_CHILDREN, NO_PARENT, CIRCLE, NO_HIERARCHY = "has children", "no parent", "circle", "no hierarchy"


class NotAdmitted(Blocker, frozen=True):
    """The job is not admitted. ``by``: what stands in the way; empty where plugins gave no reason."""

    code: ClassVar[str] = "NotAdmitted"
    by: tuple[Blocker, ...] = ()

    @property
    def lift(self) -> Change:
        return self.by[0].lift if self.by else NotKnown("the plugin that refuses gave no reason")


class Refused(Blocker, frozen=True):
    """A plugin, or the cluster, refuses ``what`` (one of the constants below) and says why in ``detail``."""

    code: ClassVar[str] = "Refused"
    what: str
    detail: str
    reason: str = ""

    @property
    def lift(self) -> Change:
        return NotKnown("it is refused in words alone")


#: What is ``Refused``: the job, a task of it, its admission, a placement; the order to bind or to evict a pod.
JOB, TASK, ADMISSION, PLACEMENT, BIND, EVICT = "job", "task", "admission", "placement", "bind", "evict"


class GangIncomplete(Blocker, frozen=True):
    """Of the ``minimum`` pods of a role only so many exist. ``role``: empty for all of the job, ``detail``: how the
    plugin puts it."""

    code: ClassVar[str] = "GangIncomplete"
    role: str
    exist: int
    minimum: int
    detail: str = ""

    @property
    def lift(self) -> Change:
        return AddPods(self.role, max(self.minimum - self.exist, 1))


class Gated(Blocker, frozen=True):
    """Scheduling gates hold back ``pods`` that the job needs."""

    code: ClassVar[str] = "Gated"
    gates: tuple[str, ...]
    pods: int

    @property
    def lift(self) -> Change:
        return RemoveGates(self.gates)


class GangPartial(Blocker, frozen=True):
    """So many pods of the gang could be ``placed``, fewer than its ``minimum``. ``first``: what stood in the way of
    the next one, where that is known."""

    code: ClassVar[str] = "GangPartial"
    placed: int
    minimum: int
    first: Blocker | None = None

    @property
    def lift(self) -> Change:
        return self.first.lift if self.first is not None else AddPods("", self.minimum - self.placed)


class NoRoom(Blocker, frozen=True):
    """No node has room for a pod of the job that must start together with others; of which resource the job's
    language works out when it is read."""

    code: ClassVar[str] = "NoRoom"


class NoNode(Blocker, frozen=True):
    """There are nodes with room, and each of them is refused by a plugin that looks at the single pod."""

    code: ClassVar[str] = "NoNode"


class Domain(Blocker, frozen=True):
    """No domain of the topology takes the job. ``name``: the domain that was looked at, empty for all of them."""

    code: ClassVar[str] = "Domain"
    name: str = ""


class NoCase(Blocker, frozen=True):
    """An action does not try the job at all: evicting for it is not allowed, or could not help."""

    code: ClassVar[str] = "NoCase"


class NoVictims(Blocker, frozen=True):
    """No set of running jobs whose eviction is allowed makes room for the job."""

    code: ClassVar[str] = "NoVictims"


class Behind(Blocker, frozen=True):
    """Others came first, and the cycle ended. ``jobs``: those that are known."""

    code: ClassVar[str] = "Behind"
    jobs: tuple[str, ...] = ()

    @property
    def lift(self) -> Change:
        return Wait()


class Protected(Blocker, frozen=True):
    """Not enough running pods can be evicted. ``victims`` are those that were asked about on ``nodes``, of which
    ``free_to_go`` may go; ``by``: how many each plugin spares, and of which kind these are. ``enough_on``: nodes that
    would have room enough if they went. ``queue``: whose pods, empty for those of other queues."""

    code: ClassVar[str] = "Protected"
    queue: str
    nodes: int
    victims: int
    free_to_go: int = 0
    by: tuple[tuple[str, int, str], ...] = ()
    enough_on: int = 0

    @property
    def lift(self) -> Change:
        return NotKnown("which pods the plugins protect follows from their rules")


class TooFewVictims(Blocker, frozen=True):
    """What gangs in a ``domain`` can give up does not place the job: of the ``candidates`` that were looked at
    ``tasks`` in ``bundles`` may go. ``enough``: they would free enough, and still the gang finds no place."""

    code: ClassVar[str] = "TooFewVictims"
    domain: str
    candidates: int
    tasks: int = 0
    bundles: int = 0
    enough: bool = False


class OutOfReach(Blocker, frozen=True):
    """Filters leave none of so many ``nodes`` to the job, whatever is evicted there."""

    code: ClassVar[str] = "OutOfReach"
    nodes: int


class NeverPreempts(Blocker, frozen=True):
    """The preemptionPolicy of its pods is Never."""

    code: ClassVar[str] = "NeverPreempts"

    @property
    def lift(self) -> Change:
        return Correct("preemptionPolicy")


class RoomIsFree(Blocker, frozen=True):
    """There is room without an eviction, so that nothing is evicted: another action has to place the job."""

    code: ClassVar[str] = "RoomIsFree"

    @property
    def lift(self) -> Change:
        return Wait()


class CannotEvict(Blocker, frozen=True):
    """An action (``what``) found no way to make room. ``promised`` of the ``waiting`` pods could be given a node, for
    the next one ``because``; None where it was tried before and nothing has changed."""

    code: ClassVar[str] = "CannotEvict"
    what: str
    promised: int
    waiting: int
    because: Blocker | None

    @property
    def lift(self) -> Change:
        return self.because.lift if self.because is not None else NotKnown("it was tried before")


class Reserved(Blocker, frozen=True):
    """``nodes`` are reserved for the job, which starts when those that are ``leaving`` are gone. ``job``: whose they
    are, empty in a finding that equal jobs share."""

    code: ClassVar[str] = "Reserved"
    job: str
    nodes: tuple[str, ...]
    leaving: bool = False
    until: float | None = None

    @property
    def lift(self) -> Change:
        return Wait(self.until)


class SearchCut(Blocker, frozen=True):
    """An ``action`` ended its search after so many ``steps``: what it found is no proof."""

    code: ClassVar[str] = "SearchCut"
    action: str
    steps: int


class PluginFault(Blocker, frozen=True):
    """A plugin failed while the job was tried. ``place``: file and line."""

    code: ClassVar[str] = "PluginFault"
    plugin: str
    point: str
    hook: str
    place: str
    error: str

    @property
    def lift(self) -> Change:
        return Correct(f"plugin {self.plugin}")


class Unreadable(Blocker, frozen=True):
    """An object cannot be read. ``detail`` says which field, what was found and what was wanted."""

    code: ClassVar[str] = "Unreadable"
    object: str
    detail: str

    @property
    def lift(self) -> Change:
        return Correct(self.object)


#: A kind of ``Missing``: no HyperNode is ready.
HYPERNODES = "ready HyperNodes"


class Missing(Blocker, frozen=True):
    """An object that the job needs does not exist, or is not ready. ``meant``: one that exists, of a similar name."""

    code: ClassVar[str] = "Missing"
    kind: str
    name: str = ""
    meant: str = ""

    @property
    def lift(self) -> Change:
        return Create(self.kind, self.name)
