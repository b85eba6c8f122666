"""Blockers about nodes: which of them refuse a pod, and what there is too little of."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.blockers.base import Blocker
from pumice.model.blockers.changes import (
    AddNode,
    Amount,
    Change,
    ChangeNodes,
    ClaimApart,
    FreePort,
    FreeRoom,
    NotKnown,
    RemoveTaint,
    RequireLevel,
    RunPod,
)
from pumice.model.devices.gpu import GPU_RESOURCE


# A count and not the nodes: the blocker of a thousand equal pods is one value, and a text names no single node.
class NodeFilter(Blocker, frozen=True):
    """So many ``nodes`` of the ``looked_at`` refuse a pod. ``plugin``: empty for a rule of the core. ``detail``: the
    reason in the plugin's words, which is shown and never read. ``changes``: those after which a node would not
    refuse, where the plugin names them."""

    code: ClassVar[str] = "NodeFilter"
    plugin: str
    nodes: int
    looked_at: int
    detail: str
    changes: tuple[Change, ...] = ()

    @property
    def lift(self) -> tuple[Change, ...]:
        return self.changes or (ChangeNodes(self.plugin, 1, self.detail),)


# Amounts of one resource, since each resource is mended by itself. ``best`` beside ``free`` tells a full cluster from
# one in which the room is in pieces.
class Shortage(Blocker, frozen=True):
    """On ``nodes`` of the ``looked_at`` there is too little of a resource. ``each``: what one pod asks for, and
    ``wanted`` how many more pods. ``free`` in all, and ``best`` on one node, are those of the nodes that were looked
    at, less what pods of the gang that were placed before take. ``total`` is what these nodes have, and ``largest`` the
    largest of them; 0 where that was not looked up. ``labels``: only these nodes have the labels that the pod asks for,
    of ``all_nodes``. ``beside``: a resource of which the only node has enough. ``node``: the node that is looked at,
    where it is one that was chosen as the nearest to taking a pod; empty else."""

    code: ClassVar[str] = "Shortage"
    resource: str
    each: float
    wanted: int
    free: float
    best: float
    nodes: int
    looked_at: int
    total: float = 0.0
    largest: float = 0.0
    labels: tuple[str, ...] = ()
    all_nodes: int = 0
    beside: Amount | None = None
    node: str = ""

    @property
    def is_too_large(self) -> bool:
        """Return True if no node is large enough, even when it is empty."""
        return self.total > 0.0 and self.each > self.largest

    @property
    def lift(self) -> tuple[Change, ...]:
        if self.node:
            return (FreeRoom(self.resource, self.each * self.wanted - self.best, self.node),)
        if self.is_too_large:
            return (AddNode((Amount(self.resource, self.each),)),)
        # ``best`` may exceed what is missing where other resources of that node are short. A lift of nothing would be
        # no lift.
        missing = self.each * self.wanted - self.best
        return (FreeRoom(self.resource, missing if missing > 0 else self.each),)


class Part(Struct, frozen=True):
    """A node that has enough of one resource, and of others only what it ``has``."""

    node: str
    enough: Amount
    has: tuple[Amount, ...]


# A kind of its own: each resource by itself is there, so a sum over the cluster would say that the pod fits.
class Fragments(Blocker, frozen=True):
    """Each resource is free on some node, and no node has enough of all that one pod ``asks`` for."""

    code: ClassVar[str] = "Fragments"
    asks: tuple[Amount, ...]
    parts: tuple[Part, ...]

    @property
    def lift(self) -> tuple[Change, ...]:
        wanted = {each.resource: each.value for each in self.asks}
        # The first part only: room on one node is enough.
        at = self.parts[0]
        return tuple(FreeRoom(each.resource, wanted[each.resource] - each.value, at.node) for each in at.has)


# A blocker of its own beside ``NodeFilter``: no room has to become free, so waiting cannot help, and the text says so.
class NoSuchNode(Blocker, frozen=True):
    """No node has all the labels that the pod ``wants``. ``label``: the one that no node has, empty where each is on
    some node; ``value``: what it should be, where that is one value. ``found``: values of that label with the number of
    nodes, only the one that may have been meant where one is similar. ``is_label``: no node has the label at all, and
    ``found`` is another label that may have been meant. ``place``: zone, region or rack."""

    code: ClassVar[str] = "NoSuchNode"
    wants: tuple[str, ...]
    label: str = ""
    value: str = ""
    found: tuple[tuple[str, int], ...] = ()
    place: str = ""
    is_label: bool = False

    @property
    def lift(self) -> tuple[Change, ...]:
        return (ChangeNodes("", 1, ", ".join(self.wants)),)


# By taint and not by node, because an administrator removes a taint from a kind of nodes.
class Taints(Struct, frozen=True):
    """So many nodes keep a pod off. ``kind``: one of the constants below; ``taint`` as kubectl writes it."""

    kind: str
    taint: str
    nodes: int


#: Kinds of ``Taints``: the node is cordoned; it is not ready; it has another taint; it holds what cannot be read.
CORDONED, NOT_READY, TAINTED, UNREADABLE = "cordoned", "not ready", "tainted", "unreadable"


# Beside ``NoSuchNode``: the nodes exist and are right, and what keeps the pod off is temporary or deliberate.
class Closed(Blocker, frozen=True):
    """All nodes of the ``looked_at`` that have the labels keep the pod off. ``by``: the most frequent first."""

    code: ClassVar[str] = "Closed"
    looked_at: int
    by: tuple[Taints, ...]

    @property
    def lift(self) -> tuple[Change, ...]:
        first = self.by[0]
        # A node that holds an unreadable pod has no taint that could be removed.
        return (NotKnown("an object has to be corrected"),) if first.kind == UNREADABLE else (RemoveTaint(first.taint),)


# Users see idle nodes beside a waiting job, and this kind says why.
class RoomOnClosed(Blocker, frozen=True):
    """``free`` on ``nodes`` would be enough, and they keep the pod off; on all others ``left`` is free."""

    code: ClassVar[str] = "RoomOnClosed"
    by: Taints
    nodes: tuple[str, ...]
    free: Amount
    left: float

    @property
    def lift(self) -> tuple[Change, ...]:
        if self.by.kind == UNREADABLE:
            return (NotKnown("an object has to be corrected"),)
        return (RemoveTaint(self.by.taint, self.nodes[:1]),)


# A host port is unique on its node, so more room there does not help.
class PortTaken(Blocker, frozen=True):
    """A host port is taken on each of the ``nodes`` with room. ``own``: pods of the gang itself would take it there,
    and so many more are ``wanted``."""

    code: ClassVar[str] = "PortTaken"
    port: int
    protocol: str
    nodes: int
    looked_at: int
    own: bool = False
    wanted: int = 1

    @property
    def lift(self) -> tuple[Change, ...]:
        if self.own:
            return (AddNode((), count=self.wanted),)
        return (FreePort(self.port, self.protocol),)


# A rule about pods and not about nodes: more room or more nodes do not help.
class NearNone(Blocker, frozen=True):
    """A pod must be near another with these labels, and none runs."""

    code: ClassVar[str] = "NearNone"
    selector: str

    @property
    def lift(self) -> tuple[Change, ...]:
        return (RunPod(self.selector),)


class KeptApart(Blocker, frozen=True):
    """In each of so many ``places`` runs a pod with these labels, near which the pod may not be, or one of its own gang
    would. ``topology``: the label of nodes that makes a place. ``by_them``: a pod there may not be near pods with these
    labels, as this one has. ``wanted``: how many more places the gang needs."""

    code: ClassVar[str] = "KeptApart"
    topology: str
    places: int
    selector: str
    by_them: bool = False
    wanted: int = 1

    @property
    def lift(self) -> tuple[Change, ...]:
        # A new node is a new place for most topologies. Moving the others would help too, but not all of them may move.
        return (AddNode((), count=self.wanted),)


# Both places are named, since either making room in one or moving pods out of the other helps.
class Uneven(Blocker, frozen=True):
    """The ``fuller`` place would have ``skew`` more pods with these labels than the ``emptier`` one, where there is no
    room: of the resource only so much is ``free``. ``most``: the skew that is allowed. ``first``: what is in the way in
    the emptier place, where it is no lack of that resource."""

    code: ClassVar[str] = "Uneven"
    topology: str
    fuller: str
    emptier: str
    skew: int
    most: int
    selector: str
    free: Amount
    asks: float
    first: Blocker | None = None

    @property
    def lift(self) -> tuple[Change, ...]:
        if self.first is not None:
            return self.first.lift
        return (FreeRoom(self.free.resource, max(self.asks - self.free.value, 0.0), self.emptier),)


class TooManyPods(Blocker, frozen=True):
    """Each node with room runs as many pods as it may. ``node`` is one of them, ``others`` how many more there are.
    ``wanted``: how many pods more than run there are to be placed."""

    code: ClassVar[str] = "TooManyPods"
    node: str
    pods: int
    most: int
    others: int
    free: Amount
    wanted: int = 1

    @property
    def lift(self) -> tuple[Change, ...]:
        # A node may have slots, and not as many as the gang needs there.
        return (FreeRoom("pods", float(max(self.pods + self.wanted - self.most, 1)), self.node),)


#: Kinds of a ``SharedClaim``.
VOLUME_CLAIM, DEVICE_CLAIM = "PersistentVolumeClaim", "ResourceClaim"


# The claim ties the pods to one node, so that neither room nor claims on other nodes help.
class SharedClaim(Blocker, frozen=True):
    """So many ``pods`` of the gang use one claim, of a ``kind`` and ``name``. It can be used on one node only, and no
    node takes all of them."""

    code: ClassVar[str] = "SharedClaim"
    kind: str
    name: str
    pods: int

    @property
    def lift(self) -> tuple[Change, ...]:
        return (ClaimApart(self.kind, self.name),)


# Beside ``Shortage``: parts of several devices are together as much as a pod asks for, and no device has it.
class NoPart(Blocker, frozen=True):
    """A node has too few GPUs with a ``part`` free, from 0 to 1, of which a pod asks for ``devices``. ``gpus``: how
    many GPUs the node has; ``free``: on how many of them the part is free. ``wanted``: how many more pods."""

    code: ClassVar[str] = "NoPart"
    node: str
    part: float
    devices: int
    gpus: int
    free: int
    wanted: int = 1

    @property
    def lift(self) -> tuple[Change, ...]:
        # Pods with parts of several devices share them with others, or have them to themselves.
        pods_a_device = int(1.0 / self.part + 1e-6) if self.part > 0.0 else 1
        count = self.devices * -(-self.wanted // max(pods_a_device, 1))
        return (FreeRoom(GPU_RESOURCE, 1000.0 * max(count - self.free, 1), self.node),)


# A reason of its own, because the sums of queues do not show it: pods of another scheduler belong to no queue.
class HeldByOthers(Blocker, frozen=True):
    """Without ``pods`` that another ``scheduler`` placed there would be room. ``free``, ``held`` by them and ``total``
    are of the nodes where the pod may run; ``each``: what it asks for."""

    code: ClassVar[str] = "HeldByOthers"
    scheduler: str
    pods: int
    resource: str
    free: float
    held: float
    total: float
    each: float
    best: float

    @property
    def lift(self) -> tuple[Change, ...]:
        return (FreeRoom(self.resource, max(self.each - self.best, 0.0)),)


# Without amounts: KAI's search tries a gang as a whole and keeps no count of what was short.
class NoRoom(Blocker, frozen=True):
    """No node has room for a pod of the job that must start together with others."""

    code: ClassVar[str] = "NoRoom"
    no_lift: ClassVar[str] = "KAI says that a gang has no room, not which of its pods"


class NoNode(Blocker, frozen=True):
    """There are nodes with room, and each of them is refused by a plugin that looks at the single pod. ``changes``:
    those after which most of the nodes would not be refused, where the plugin names them."""

    code: ClassVar[str] = "NoNode"
    changes: tuple[Change, ...] = ()

    @property
    def lift(self) -> tuple[Change, ...]:
        return self.changes or (NotKnown("a plugin refuses single pods, in words of its own"),)


# About a set of nodes and not about one: each pod finds a node, and together they do not fit within one domain.
class Domain(Blocker, frozen=True):
    """No domain of the topology takes the job. ``name``: the domain that was looked at, empty for all of them.
    ``tier``: the highest that the job allows, None where that is not known. It ``asks`` for so much within one domain,
    of which one has at ``best`` so much, of ``free`` in all. ``is_size``: also where all domains are empty; then
    ``above`` is the next tier where one is large enough, with what that has. ``label``: the label of nodes whose values
    are the domains, in place of a tier. ``first``: where sums do not tell, what is in the way of the next pod in the
    domain that takes most of them, which is then ``name``; a node that is added there has to have ``labels``.
    ``narrower``: the label of a narrower level of which all nodes are in one domain, so that no domain of ``label`` is
    looked at."""

    code: ClassVar[str] = "Domain"
    name: str = ""
    tier: int | None = None
    asks: Amount | None = None
    free: float = 0.0
    best: float = 0.0
    is_size: bool = False
    above: tuple[int, float] | None = None
    label: str = ""
    first: Blocker | None = None
    labels: tuple[str, ...] = ()
    narrower: str = ""

    @property
    def lift(self) -> tuple[Change, ...]:
        if self.narrower:
            return (RequireLevel(self.narrower),)
        if self.first is not None:
            return tuple(self._there(change) for change in self.first.lift)
        if self.asks is None:
            return (NotKnown("a search has to find it"),)
        return (FreeRoom(self.asks.resource, self.asks.value - self.best, self.name),)

    def _there(self, change: Change) -> Change:
        """Return the same change within the domain."""
        if not isinstance(change, AddNode):
            return change
        return replace(change, labels=self.labels, hypernode="" if self.label else self.name)
