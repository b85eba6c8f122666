"""Jobs that ended while pages looked: those that held nodes in one summary and do not in the next."""

from __future__ import annotations

from collections import deque

import numpy as np
from msgspec import Struct

from pumice.web.summary import CycleSummary

#: Jobs that are kept, the last ones.
PAST_MAX = 500


class PastJob(Struct, frozen=True):
    """``ended``: the time of the first summary in which it held nothing. ``started``: NaN where that is not known."""

    name: str
    queue: str
    created: float
    started: float
    ended: float


class PastJobs:
    """The last jobs that ended."""

    def __init__(self) -> None:
        self.jobs: deque[PastJob] = deque(maxlen=PAST_MAX)
        self._held: dict[str, tuple[str, float, float]] = {}

    def take(self, summary: CycleSummary) -> None:
        """Compare a summary with the one before."""
        jobs, queues = summary.jobs, summary.queues.names
        held = {
            jobs.names[row]: (queues[jobs.queue[row]], float(jobs.created[row]), float(jobs.started[row]))
            for row in np.flatnonzero(jobs.running > 0).tolist()
        }
        for name in [each for each in self._held if each not in held]:
            self.jobs.append(PastJob(name, *self._held[name], summary.at))
        self._held = held
