"""Points at which plugins of both languages look at claims of devices, and the object that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.placing.claims.resolve import claiming_tasks

if TYPE_CHECKING:
    from pumice.placing.claims.questions import Claiming

#: Points at which claims are asked about.
CLAIM_POINTS = (
    *(points.pre_predicate, points.predicate, points.waits),
    *(points.on_allocate, points.on_deallocate, points.bind_context),
)


def claiming_in(ssn: Session) -> Claiming | None:
    """Return the object that answers about claims, or None if no pod claims devices."""
    # The allocator, selectors and the ledger are imported only if a pod claims devices: few clusters have any.
    if not claiming_tasks(ssn.tables):
        return None
    from pumice.placing.claims.questions import claiming_of

    return claiming_of(ssn)
