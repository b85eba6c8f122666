"""Claims of devices in a session: where plugins of either language that look at claims are asked, and what they ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pumice.framework import points
from pumice.framework.claiming.resolving import claiming_tasks
from pumice.framework.on_demand import OnDemand
from pumice.framework.session import Session

if TYPE_CHECKING:
    from pumice.framework.claiming.asked import Claiming

#: Where answers are given.
CLAIM_POINTS = (
    *(points.pre_predicate, points.predicate, points.waits),
    *(points.on_allocate, points.on_deallocate, points.bind_context),
)

#: Allocator, selectors and ledger are imported where a pod claims devices.
_ASKED: OnDemand[Callable[[Session], Claiming]] = OnDemand(
    {"claims": "pumice.framework.claiming.asked:claiming_of"}, lambda _, claiming_of: claiming_of
)


def claiming_in(ssn: Session) -> Claiming | None:
    """What the plugins of a session share; None where no pod claims devices."""
    return _ASKED["claims"](ssn) if claiming_tasks(ssn.tables) else None
