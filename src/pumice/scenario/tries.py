"""How much may be tried for one job: what it asks for is its owner's choice, and so is the work that this causes.

A try is a scenario that is simulated, a group for which sets of nodes are asked for, or one that is placed in a set of
nodes. Sets that are refuted by counting cost none. A search that is cut off proves nothing, and says so.
"""

from __future__ import annotations

import numpy as np

from pumice.framework.session import Session
from pumice.scenario.parts import Part

#: Tries of one job in one turn; all that jobs of one queue may take in an action where nothing comes of it.
TRIES_MAX, QUEUE_TRIES_MAX = 4096, 8192
#: What a job may always take, whatever its queue has left: so many, and so many for each task and sub-group.
_ALWAYS, _FOR_EACH = 64, 4
#: What the story says of a job whose search ended before it was through.
CUT_OFF = "cut off"


class Tries:
    """Of one session. ``cut``: the job under way asked for more than it may have, so that nothing is proven of it.

    A job may have half of what its queue has left in the action: one tenant's trees are at nobody else's cost, and the
    first of them do not take all.
    """

    def __init__(self, ssn: Session) -> None:
        self._ssn, self.cut = ssn, False
        self._taken = self._floor = self._job = 0
        self._most = TRIES_MAX
        self._left: dict[tuple[str, int], int] = {}

    def begin(self, part: Part) -> None:
        """It is the turn of a part's job."""
        jobs = self._ssn.tables.jobs
        gang = jobs.groups[part.job].gang
        groups = len(gang.sub_groups) if gang is not None else 0
        self._job, self._taken, self.cut = part.job, 0, False
        self._floor = _ALWAYS + _FOR_EACH * (len(part.rows) + groups)
        self._most = max(self._floor, min(TRIES_MAX, self._left.get(self._pot, QUEUE_TRIES_MAX) // 2))

    def spend(self) -> bool:
        """Take one, if there is one left."""
        if self._taken == self._most:
            self.cut = True
            return False
        self._taken += 1
        return True

    def failed(self) -> None:
        """Nothing came of the turn: what it took is its queue's loss, and that it was cut off is told."""
        left = self._left.get(self._pot, QUEUE_TRIES_MAX)
        self._left[self._pot] = max(left - max(self._taken - self._floor, 0), 0)
        if self.cut:
            self._ssn.story.tell_of_jobs(np.array([self._job]), CUT_OFF, f"after {self._taken} tries")

    @property
    def _pot(self) -> tuple[str, int]:
        return self._ssn.story.action, int(self._ssn.tables.jobs.queue[self._job])


def tries(ssn: Session) -> Tries:
    """Those of this session."""
    return ssn.shared(Tries, lambda: Tries(ssn))
