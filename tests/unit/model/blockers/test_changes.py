"""What would have to change, for the blockers that know it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.model.blockers import (
    CAPABILITY,
    CLOSED,
    CORDONED,
    QUEUE,
    RESOURCE_QUOTA,
    TAINTED,
    Behind,
    Blocker,
    Closed,
    Domain,
    Fragments,
    GangIncomplete,
    GangPartial,
    Gated,
    HeldByOthers,
    KeptApart,
    Missing,
    NearNone,
    NodeFilter,
    NoPart,
    NotAdmitted,
    NoVictims,
    Part,
    PortTaken,
    QueueLimit,
    ResourceLimit,
    RoomOnClosed,
    SharedClaim,
    Shortage,
    Taints,
    TooManyPods,
    Uneven,
)
from pumice.model.blockers.changes import (
    AddNode,
    AddPods,
    Amount,
    Change,
    ChangeNodes,
    ClaimApart,
    Create,
    FreePort,
    FreeRoom,
    NotKnown,
    OfferDevices,
    OpenQueue,
    RaiseLimit,
    RemoveGates,
    RemoveTaint,
    RequireLevel,
    RunPod,
    Wait,
)
from pumice.model.devices.gpu import GPU_RESOURCE

SHORT = Shortage("cpu", 4000.0, 2, 6000.0, 3000.0, 3, 3)
OVER = QueueLimit("q", CAPABILITY, (ResourceLimit("cpu", 8000.0, 6000.0, 1000.0, 4000.0),))
WITHIN = ResourceLimit("memory", 8.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("blocker", "lift"),
    [
        (SHORT, (FreeRoom("cpu", 5000.0),)),
        (replace(SHORT, wanted=1), (FreeRoom("cpu", 1000.0),)),
        (replace(SHORT, total=9000.0, largest=3500.0), (AddNode((Amount("cpu", 4000.0),)),)),
        (GangPartial(1, 3, SHORT), (FreeRoom("cpu", 5000.0),)),
        (GangIncomplete("ps", 1, 3), (AddPods("ps", 2),)),
        (NotAdmitted((QueueLimit("q", CLOSED),)), (OpenQueue("q"),)),
        (OVER, (RaiseLimit("q", CAPABILITY, "cpu", 3000.0),)),
        (
            QueueLimit("ns/q", RESOURCE_QUOTA, (WITHIN, OVER.resources[0])),
            (RaiseLimit("ns/q", RESOURCE_QUOTA, "cpu", 3000.0),),
        ),
        (
            QueueLimit("q", CAPABILITY, (OVER.resources[0], ResourceLimit("memory", 4.0, 4.0, 0.0, 2.0))),
            (RaiseLimit("q", CAPABILITY, "cpu", 3000.0), RaiseLimit("q", CAPABILITY, "memory", 2.0)),
        ),
        (NodeFilter("predicates", 2, 3, "cordoned"), (ChangeNodes("predicates", 1, "cordoned"),)),
        (NodeFilter("claims", 2, 3, "none", (OfferDevices("gpu", 2),)), (OfferDevices("gpu", 2),)),
        (
            Fragments(
                (Amount("cpu", 4.0), Amount("gpu", 1.0)), (Part("a", Amount("gpu", 2.0), (Amount("cpu", 1.0),)),)
            ),
            (FreeRoom("cpu", 3.0, "a"),),
        ),
        (Closed(3, (Taints(TAINTED, "a:NoSchedule", 2), Taints(CORDONED, "c", 1))), (RemoveTaint("a:NoSchedule"),)),
        (
            RoomOnClosed(Taints(TAINTED, "a:NoSchedule", 2), ("n1", "n2"), Amount("cpu", 2.0), 0.0),
            (RemoveTaint("a:NoSchedule", ("n1",)),),
        ),
        (PortTaken(80, "TCP", 2, 2), (FreePort(80, "TCP"),)),
        (PortTaken(80, "TCP", 2, 2, own=True), (AddNode(()),)),
        (SharedClaim("ResourceClaim", "gpu", 3), (ClaimApart("ResourceClaim", "gpu"),)),
        (KeptApart("host", 2, "app=x", wanted=3), (AddNode((), count=3),)),
        (NoPart("n", 0.5, 1, 2, 0, wanted=3), (FreeRoom(GPU_RESOURCE, 2000.0, "n"),)),
        (NoPart("n", 0.7, 1, 0, 0, wanted=3), (FreeRoom(GPU_RESOURCE, 3000.0, "n"),)),
        (NoPart("n", 0.5, 2, 2, 1), (FreeRoom(GPU_RESOURCE, 1000.0, "n"),)),
        (Shortage("cpu", 4.0, 2, 1.0, 1.0, 1, 1, node="n"), (FreeRoom("cpu", 7.0, "n"),)),
        (
            Domain("r1", label="rack", first=KeptApart("host", 1, "app=x"), labels=("rack=r1",)),
            (AddNode((), ("rack=r1",)),),
        ),
        (Domain(label="zone", narrower="rack"), (RequireLevel("rack"),)),
        (
            Uneven("zone", "a", "b", 2, 1, "app=x", Amount("cpu", 1.0), 3.0, PortTaken(80, "TCP", 1, 1)),
            (FreePort(80, "TCP"),),
        ),
        (NearNone("app=x"), (RunPod("app=x"),)),
        (Uneven("zone", "a", "b", 2, 1, "app=x", Amount("cpu", 1.0), 3.0), (FreeRoom("cpu", 2.0, "b"),)),
        (TooManyPods("n", 3, 3, 0, Amount("cpu", 1.0)), (FreeRoom("pods", 1.0, "n"),)),
        (HeldByOthers("default", 3, "cpu", 1.0, 3.0, 4.0, 2.0, 1.0), (FreeRoom("cpu", 1.0),)),
        (Domain("", 1, Amount("gpu", 8.0), 12.0, 6.0), (FreeRoom("gpu", 2.0),)),
        (Domain("", 1, Amount("gpu", 8.0), 12.0, 6.0, is_size=True), (FreeRoom("gpu", 2.0),)),
        (Gated(("g",), 2, 2), (RemoveGates(("g",)),)),
        (Missing(QUEUE, "taem", "team"), (Create(QUEUE, "taem"),)),
        (Behind(), (Wait(),)),
    ],
)
def test_what_would_lift_a_blocker(blocker: Blocker, lift: tuple[Change, ...]) -> None:
    assert blocker.lift == lift


@pytest.mark.parametrize("blocker", [NotAdmitted(), QueueLimit("q", CAPABILITY), GangPartial(1, 3), NoVictims()])
def test_a_blocker_that_knows_no_change_says_so(blocker: Blocker) -> None:
    (change,) = blocker.lift
    assert isinstance(change, NotKnown) and change.because
