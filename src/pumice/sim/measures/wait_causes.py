"""How long jobs waited for which reason, summed up over a simulation: by code exactly, by text as often as it pays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from pumice.answers.waiting_codes import waiting_codes
from pumice.columns.dtypes import Bool
from pumice.framework.cycle.outcome import Outcome
from pumice.runtime.why import why_jobs_wait

CAUSES_MAX = 200
SHARE = 500


class WaitCauses:
    """Between two looks, every waiting job counts for the cause that was found at the first. Units: job-seconds.

    A look costs time per waiting job, so looks take at most ``1/SHARE`` of the time that has passed. ``tell`` is called
    at each look with the cause of each job.
    """

    def __init__(self) -> None:
        self.tell: Callable[[Mapping[str, str]], object] | None = None
        self._began: float | None = None
        self._since = 0.0
        self._next = -math.inf
        self._counts: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}

    def observe(self, now: float, outcome: Outcome) -> None:
        """Look at a cycle. Only jobs without running pods count as waiting."""
        if self._began is None:
            self._began = now
        if now < self._next:
            return
        self._next = now + (now - self._began) / SHARE
        self.close(now)
        jobs = outcome.tables.jobs
        idle: Bool = np.asarray(~jobs.allocated.any(axis=1))
        said: dict[str, str] = {}  # one text for all that say the same
        causes = {key: said.setdefault(why.short, why.short) for key, why in why_jobs_wait(outcome, idle).items()}
        self._counts = Counter(causes.values())
        if self.tell is not None:
            self.tell(causes)

    def close(self, now: float) -> None:
        """Count the time up to now."""
        passed, self._since = now - self._since, now
        if passed <= 0:
            return
        for cause, count in self._counts.items():
            if cause not in self._seconds and len(self._seconds) >= CAUSES_MAX:
                cause = "other causes"
            self._seconds[cause] = self._seconds.get(cause, 0.0) + count * passed

    def seconds(self) -> dict[str, float]:
        """Return the seconds by cause, the largest first."""
        return dict(sorted(self._seconds.items(), key=lambda item: (-item[1], item[0])))


class WaitCodes:
    """Between two cycles, every job without running pods counts for the code of what is nearest in its way after the
    first of them. Units: job-seconds."""

    def __init__(self) -> None:
        self._since = 0.0
        self._counts: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}

    def observe(self, now: float, outcome: Outcome) -> None:
        """Take in a cycle."""
        self.close(now)
        idle: Bool = np.asarray(~outcome.tables.jobs.allocated.any(axis=1))
        self._counts = Counter(code.value for _, code in waiting_codes(outcome, idle))

    def close(self, now: float) -> None:
        """Count the time up to now."""
        passed, self._since = now - self._since, now
        if passed > 0:
            for code, count in self._counts.items():
                self._seconds[code] = self._seconds.get(code, 0.0) + count * passed

    def seconds(self) -> dict[str, float]:
        """Return the seconds by code, the largest first."""
        return dict(sorted(self._seconds.items(), key=lambda item: (-item[1], item[0])))
