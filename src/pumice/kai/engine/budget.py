"""Limit how much the scheduler tries for one job.

The work for a job depends on what it asks for, which its owner chooses. A try is a simulated scenario, a query for
node subsets, or a placement within one subset. Subsets that are rejected by counting are free. A search that reaches
the limit proves nothing, and reports that.
"""

from __future__ import annotations

import numpy as np

from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Part
from pumice.model.blockers import SearchCut

#: Limit of tries for one job, and for all jobs of one queue that fail in one action.
TRIES_MAX, QUEUE_TRIES_MAX = 4096, 8192
#: Tries that a job always has, even if its queue has none left: a base, and some for each task and sub-group.
_ALWAYS, _FOR_EACH = 64, 4


class SearchBudget:
    """The tries of one session. ``cut``: the current job reached its limit, so that its failure proves nothing."""

    def __init__(self, ssn: Session) -> None:
        self._ssn, self.cut, self._taken = ssn, False, 0
        self._part: Part | None = None
        self._floor, self._most = 0, TRIES_MAX
        self._left: dict[tuple[str, int], int] = {}

    def begin(self, part: Part) -> None:
        """Start to count for a part's job."""
        self._part, self._taken, self.cut = part, 0, False

    def spend(self) -> bool:
        """Take one try. Return False if none is left."""
        # The limit is computed with the first try, since most jobs are placed without one.
        if not self._taken and self._part is not None:
            self._allow(self._part)
        if self._taken == self._most:
            self.cut = True
            return False
        self._taken += 1
        return True

    def failed(self) -> None:
        """Charge the tries of a failed job to its queue, and trace a search that was cut off."""
        part, above = self._part, self._taken - self._floor
        if part is None or not self._taken:
            return
        # Only failures are charged. The tries that every job has are free, or a queue with many jobs would run out.
        if above > 0:
            pot = self._pot(part)
            self._left[pot] = max(self._left.get(pot, QUEUE_TRIES_MAX) - above, 0)
        if self.cut:
            self._ssn.trace.tell_of_jobs(np.array([part.job]), SearchCut(self._ssn.trace.action, self._taken))

    def _allow(self, part: Part) -> None:
        """Compute the limit of a job."""
        gang = self._ssn.tables.jobs.groups[part.job].gang
        groups = len(gang.sub_groups) if gang is not None else 0
        self._floor = _ALWAYS + _FOR_EACH * (len(part.rows) + groups)
        # At most half of what the queue has left: the first jobs of a queue cannot use up everything, and other queues
        # pay nothing for it.
        self._most = max(self._floor, min(TRIES_MAX, self._left.get(self._pot(part), QUEUE_TRIES_MAX) // 2))

    def _pot(self, part: Part) -> tuple[str, int]:
        """Return the key of the budget that a part's queue has in the current action."""
        return self._ssn.trace.action, int(self._ssn.tables.jobs.queue[part.job])


def tries(ssn: Session) -> SearchBudget:
    """Return the search budget of the session."""
    return ssn.shared(SearchBudget, lambda: SearchBudget(ssn))
