"""The codes of reasons, which do not change, with the words that users of other schedulers know."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from pumice.model import blockers as b
from pumice.model.blockers import Blocker


class Code(StrEnum):
    """Why a job waits. The order is that in which a reason is preferred where several would do."""

    GATE = "Gated"
    QUEUE_CLOSED = "QueueClosed"
    INCOMPLETE = "GangIncomplete"
    RESOURCE_QUOTA = "ResourceQuota"
    QUEUE_LIMIT = "QueueLimit"
    QUEUE_SHARE = "QueueShare"
    GUARANTEE = "GuaranteeOfOthers"
    ADMISSION = "Overcommit"
    SELECTOR = "NodeSelector"
    TAINT = "Taint"
    PORT = "HostPort"
    VOLUME = "Volume"
    DEVICE = "Device"
    AFFINITY = "PodAffinity"
    SPREAD = "TopologySpread"
    DOMAIN = "Domain"
    ROOM = "Shortage"
    ORDER = "Behind"
    MISSING = "Missing"
    UNREADABLE = "Unreadable"
    FAULT = "PluginFault"
    SEARCH_CUT = "SearchCut"
    OTHER = "Other"


class Words(NamedTuple):
    """What other schedulers say where they mean the same, "" where they have no word for it."""

    meaning: str
    volcano: str = ""
    kai: str = ""
    kueue: str = ""
    slurm: str = ""


#: By code. Sources: Volcano's condition reasons and fit errors, KAI's UnschedulableReason, Kueue's inadmissible
#: messages, and Slurm's job reason codes.
WORDS = MappingProxyType(
    {
        Code.GATE: Words(
            "a scheduling gate holds its pods back", "SchedulingGated", "SchedulingGated", "", "JobHeldUser"
        ),
        Code.QUEUE_CLOSED: Words(
            "its queue is closed", "queue is not open", "", "ClusterQueue is inactive", "PartitionDown"
        ),
        Code.INCOMPLETE: Words(
            "fewer pods exist than it must start with", "NotEnoughTasks", "PodGroup is not ready", "", "Dependency"
        ),
        Code.RESOURCE_QUOTA: Words(
            "a ResourceQuota of its namespace is used up", "resource quota insufficient", "", "", "AssocGrpLimit"
        ),
        Code.QUEUE_LIMIT: Words(
            "its queue, or one above, may not hold more",
            "queue resource quota insufficient",
            "OverLimit",
            "insufficient quota",
            "QOSGrpGRES",
        ),
        Code.QUEUE_SHARE: Words(
            "its queue has what it deserves",
            "queue is overused",
            "NonPreemptibleOverQuota",
            "insufficient unused quota",
            "AssocGrpGRES",
        ),
        Code.GUARANTEE: Words(
            "the rest is guaranteed to other queues",
            "queue resource quota insufficient",
            "",
            "borrowing limit",
            "Reservation",
        ),
        Code.ADMISSION: Words(
            "as much as may be promised of the cluster is promised",
            "resource in cluster is overused",
            "",
            "Pending",
            "QOSMaxJobsPerUserLimit",
        ),
        Code.SELECTOR: Words(
            "no node that it may use has the labels that it asks for",
            "node(s) didn't match node selector",
            "NodeAffinity",
            "flavor doesn't match node affinity",
            "BadConstraints",
        ),
        Code.TAINT: Words(
            "taints or cordons keep it off nodes",
            "node(s) had untolerated taint",
            "TaintToleration",
            "untolerated taint",
            "NodeDown",
        ),
        Code.PORT: Words("a host port is taken", "node(s) didn't have free ports", "NodePorts", "", "Resources"),
        Code.VOLUME: Words(
            "a volume cannot be bound or reached", "volume node affinity conflict", "VolumeBinding", "", "Resources"
        ),
        Code.DEVICE: Words(
            "a claim of devices cannot be met", "cannot allocate all claims", "DynamicResources", "", "Resources"
        ),
        Code.AFFINITY: Words(
            "it must be near, or away from, other pods",
            "node(s) didn't match pod affinity",
            "InterPodAffinity",
            "",
            "Resources",
        ),
        Code.SPREAD: Words(
            "its pods must be spread evenly",
            "node(s) didn't match pod topology spread",
            "PodTopologySpread",
            "",
            "Resources",
        ),
        Code.DOMAIN: Words(
            "no one domain of the topology has room for all of it",
            "no hyperNode fits",
            "TopologyFit",
            "topology doesn't allow to fit",
            "Resources",
        ),
        Code.ROOM: Words(
            "too little is free on the nodes that it may use",
            "Insufficient <resource>",
            "NodesDoNotHaveEnoughResources",
            "insufficient capacity",
            "Resources",
        ),
        Code.ORDER: Words(
            "others come first", "others came first", "", "waiting for the head of the queue", "Priority"
        ),
        Code.MISSING: Words(
            "an object that it names does not exist",
            "queue not found",
            "QueueDoesNotExist",
            "LocalQueue doesn't exist",
            "InvalidAccount",
        ),
        Code.UNREADABLE: Words("one of its objects cannot be read", "", "", "", "BadConstraints"),
        Code.FAULT: Words("a plugin failed while it was tried"),
        Code.SEARCH_CUT: Words("a search ended at its bound before it could tell", "", "", "", "BackfillLimit"),
        Code.OTHER: Words(
            "a rule that no change known here lifts", "Unschedulable", "Unschedulable", "Inadmissible", "None"
        ),
    }
)

_OF_KIND: dict[type[Blocker], Code] = {
    b.Gated: Code.GATE,
    b.GangIncomplete: Code.INCOMPLETE,
    b.NoSuchNode: Code.SELECTOR,
    b.Closed: Code.TAINT,
    b.RoomOnClosed: Code.TAINT,
    b.PortTaken: Code.PORT,
    b.NearNone: Code.AFFINITY,
    b.KeptApart: Code.AFFINITY,
    b.Uneven: Code.SPREAD,
    b.Domain: Code.DOMAIN,
    b.Shortage: Code.ROOM,
    b.Fragments: Code.ROOM,
    b.TooManyPods: Code.ROOM,
    b.NoPart: Code.ROOM,
    b.HeldByOthers: Code.ROOM,
    b.NoRoom: Code.ROOM,
    b.NoVictims: Code.ROOM,
    b.Behind: Code.ORDER,
    b.RoomReserved: Code.ORDER,
    b.StartReserved: Code.ROOM,
    b.Unreadable: Code.UNREADABLE,
    b.PluginFault: Code.FAULT,
    b.SearchCut: Code.SEARCH_CUT,
    b.OtherScheduler: Code.MISSING,
}
_OF_LIMIT = {
    b.CLOSED: Code.QUEUE_CLOSED,
    b.DESERVED: Code.QUEUE_SHARE,
    b.QUOTA: Code.QUEUE_SHARE,
    b.RECLAIM: Code.QUEUE_SHARE,
    b.GUARANTEE: Code.GUARANTEE,
    b.OVERCOMMIT: Code.ADMISSION,
    b.RESOURCE_QUOTA: Code.RESOURCE_QUOTA,
}


def code_of(blocker: Blocker) -> Code:
    """Return the code of a blocker: that of its cause where it has one."""
    match blocker:
        case b.NotAdmitted(by) if by:
            return code_of(by[0])
        case b.GangPartial(first=b.Blocker() as first) | b.CannotEvict(because=b.Blocker() as first):
            return code_of(first)
        case b.QueueLimit():
            return _OF_LIMIT.get(blocker.kind, Code.QUEUE_LIMIT)
        case b.SharedClaim(kind):
            return Code.VOLUME if kind == b.VOLUME_CLAIM else Code.DEVICE
        case b.Missing(kind):
            return Code.ROOM if kind == b.RESOURCE else Code.DOMAIN if "HyperNode" in kind else Code.MISSING
    return _OF_KIND.get(type(blocker), Code.OTHER)
