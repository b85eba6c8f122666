"""What would have to change, for the blockers that know it."""

from __future__ import annotations

import pytest

from pumice.model.blockers import (
    CAPABILITY,
    CLOSED,
    RESOURCE_QUOTA,
    Blocker,
    GangIncomplete,
    GangPartial,
    NodeFilter,
    NotAdmitted,
    QueueLimit,
    ResourceLimit,
    Shortage,
)
from pumice.model.blockers.changes import AddPods, Change, ChangeNodes, FreeRoom, NotKnown, OpenQueue, RaiseLimit

SHORT = Shortage("cpu", 4000.0, 2, 6000.0, 3000.0, 3, 3)
OVER = QueueLimit("q", CAPABILITY, (ResourceLimit("cpu", 8000.0, 6000.0, 1000.0, 4000.0),))
WITHIN = ResourceLimit("memory", 8.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("blocker", "lift"),
    [
        (SHORT, FreeRoom("cpu", 1000.0)),
        (GangPartial(1, 3, SHORT), FreeRoom("cpu", 1000.0)),
        (GangPartial(1, 3), AddPods("", 2)),
        (GangIncomplete("ps", 1, 3), AddPods("ps", 2)),
        (NotAdmitted((QueueLimit("q", CLOSED),)), OpenQueue("q")),
        (OVER, RaiseLimit("q", CAPABILITY, "cpu", 3000.0)),
        (
            QueueLimit("ns/q", RESOURCE_QUOTA, (WITHIN, OVER.resources[0])),
            RaiseLimit("ns/q", RESOURCE_QUOTA, "cpu", 3000.0),
        ),
        (QueueLimit("q", CAPABILITY), RaiseLimit("q", CAPABILITY, "", 0.0)),
        (NodeFilter("predicates", 2, 3, "cordoned"), ChangeNodes("predicates", 1, "cordoned")),
    ],
)
def test_what_would_lift_a_blocker(blocker: Blocker, lift: Change) -> None:
    assert blocker.lift == lift


def test_a_blocker_that_knows_no_change_says_so() -> None:
    assert isinstance(NotAdmitted().lift, NotKnown)
