"""Limit how much the scheduler tries for one job.

The work for a job depends on what it asks for, which its owner chooses. A try is a simulated scenario of a few tasks,
a query for node subsets, or a placement within one subset; a scenario of many tasks counts as several. Subsets that are
rejected by counting are free. A search that reaches the limit proves nothing, and reports that.
"""

from __future__ import annotations

import numpy as np

from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Part
from pumice.model.blockers import SearchCut

#: Limit of tries for one job, and for all jobs of one queue that fail in one action.
TRIES_MAX, QUEUE_TRIES_MAX = 2048, 4096
#: Limit for all jobs that fail in one action, and what each job still has beyond it: a few scenarios.
ACTION_TRIES_MAX, _LEAST = 4096, 16
#: Tasks of a scenario that make one try. Each task is evicted or placed, so the work grows with their number.
_TASKS_A_TRY = 8
#: Tries that a job always has, even if its queue has none left: a base, and some for each task and sub-group.
_ALWAYS, _FOR_EACH = 64, 4


class SearchBudget:
    """The tries of one session. ``cut``: the current job reached its limit, so that its failure proves nothing."""

    def __init__(self, ssn: Session) -> None:
        self._ssn, self.cut, self._taken = ssn, False, 0
        self._part: Part | None = None
        self._floor, self._most = 0, TRIES_MAX
        self._left: dict[tuple[str, int], int] = {}
        self._left_in: dict[str, int] = {}

    def begin(self, part: Part) -> None:
        """Start to count for a part's job."""
        self._part, self._taken, self.cut = part, 0, False

    def spend(self, tasks: int = 0) -> bool:
        """Take one try, or as many as a scenario of so many tasks counts. Return False if none is left."""
        # The limit is computed with the first try, since most jobs are placed without one.
        if not self._taken and self._part is not None:
            self._allow(self._part)
        # The last try may be larger than what is left: a scenario is simulated whole or not at all.
        if self._taken >= self._most:
            self.cut = True
            return False
        self._taken += 1 + tasks // _TASKS_A_TRY
        return True

    def failed(self) -> None:
        """Charge the tries of a failed job to its queue, and trace a search that was cut off."""
        part, above = self._part, self._taken - self._floor
        if part is None or not self._taken:
            return
        action = self._ssn.trace.action
        self._left_in[action] = max(self._left_in.get(action, ACTION_TRIES_MAX) - self._taken, 0)
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
        most = max(self._floor, min(TRIES_MAX, self._left.get(self._pot(part), QUEUE_TRIES_MAX) // 2))
        # The whole action is bounded too, or many queues with a few gangs each would hold up the cycle. A job that
        # fits after a few scenarios is still found.
        left = self._left_in.get(self._ssn.trace.action, ACTION_TRIES_MAX)
        self._most = max(min(most, left), _LEAST)

    def _pot(self, part: Part) -> tuple[str, int]:
        """Return the key of the budget that a part's queue has in the current action."""
        return self._ssn.trace.action, int(self._ssn.tables.jobs.queue[part.job])


def tries(ssn: Session) -> SearchBudget:
    """Return the search budget of the session."""
    return ssn.shared(SearchBudget, lambda: SearchBudget(ssn))
