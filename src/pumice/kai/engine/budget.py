"""How much may be tried for one job: what it asks for is its owner's choice, and so is the work that this causes.

A try is a scenario that is simulated, a group for which sets of nodes are asked for, or one that is placed in a set of
nodes. Sets that are refuted by counting cost none. A search that is cut off proves nothing, and says so.
"""

from __future__ import annotations

import numpy as np

from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Part
from pumice.model.blockers import SearchCut

#: SearchBudget of one job in one turn; all that jobs of one queue may take in an action where nothing comes of it.
TRIES_MAX, QUEUE_TRIES_MAX = 4096, 8192
#: What a job may always take, whatever its queue has left: so many, and so many for each task and sub-group.
_ALWAYS, _FOR_EACH = 64, 4


class SearchBudget:
    """Of one session. ``cut``: the job under way asked for more than it may have, so that nothing is proven of it.

    A job may have half of what its queue has left in the action: one tenant's trees are at nobody else's cost, and the
    first of them do not take all.
    """

    def __init__(self, ssn: Session) -> None:
        self._ssn, self.cut, self._taken = ssn, False, 0
        self._part: Part | None = None
        self._floor, self._most = 0, TRIES_MAX
        self._left: dict[tuple[str, int], int] = {}

    def begin(self, part: Part) -> None:
        """It is the turn of a part's job."""
        self._part, self._taken, self.cut = part, 0, False

    def spend(self) -> bool:
        """Take one, if there is one left."""
        if not self._taken and self._part is not None:
            self._allow(self._part)
        if self._taken == self._most:
            self.cut = True
            return False
        self._taken += 1
        return True

    def failed(self) -> None:
        """Nothing came of the turn: what it took is its queue's loss, and that it was cut off is told."""
        part, above = self._part, self._taken - self._floor
        if part is None or not self._taken:
            return
        if above > 0:
            pot = self._pot(part)
            self._left[pot] = max(self._left.get(pot, QUEUE_TRIES_MAX) - above, 0)
        if self.cut:
            self._ssn.trace.tell_of_jobs(np.array([part.job]), SearchCut(self._ssn.trace.action, self._taken))

    def _allow(self, part: Part) -> None:
        """How much the job may have, asked when it takes the first one: most jobs take none."""
        gang = self._ssn.tables.jobs.groups[part.job].gang
        groups = len(gang.sub_groups) if gang is not None else 0
        self._floor = _ALWAYS + _FOR_EACH * (len(part.rows) + groups)
        self._most = max(self._floor, min(TRIES_MAX, self._left.get(self._pot(part), QUEUE_TRIES_MAX) // 2))

    def _pot(self, part: Part) -> tuple[str, int]:
        return self._ssn.trace.action, int(self._ssn.tables.jobs.queue[part.job])


def tries(ssn: Session) -> SearchBudget:
    """Those of this session."""
    return ssn.shared(SearchBudget, lambda: SearchBudget(ssn))
