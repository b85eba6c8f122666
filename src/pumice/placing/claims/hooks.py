"""Claims of devices in a session: where plugins of either language that look at claims are asked, and what they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.placing.claims.resolve import claiming_tasks

if TYPE_CHECKING:
    from pumice.placing.claims.questions import Claiming

#: Where answers are given.
CLAIM_POINTS = (
    *(points.pre_predicate, points.predicate, points.waits),
    *(points.on_allocate, points.on_deallocate, points.bind_context),
)


def claiming_in(ssn: Session) -> Claiming | None:
    """What the plugins of a session share; None where no pod claims devices. Allocator, selectors and ledger are
    imported where one does."""
    if not claiming_tasks(ssn.tables):
        return None
    from pumice.placing.claims.questions import claiming_of

    return claiming_of(ssn)
