"""How long jobs waited for which reason, summed up over a simulation: by code exactly, by text as often as it pays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from pumice.answers.waiting_codes import waiting_codes
from pumice.columns.dtypes import Bool
from pumice.framework.cycle.outcome import Outcome
from pumice.runtime.why import why_jobs_wait

CAUSES_MAX = 200
SHARE = 500


class JobSeconds:
    """Seconds by reason: what was counted last counts until the next time. ``most``: reasons that are kept apart."""

    def __init__(self, most: float = math.inf) -> None:
        self._most, self._since = most, 0.0
        self._counts: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}

    def count(self, now: float, reasons: Iterable[str]) -> None:
        """Take in the reason of each waiting job from now on."""
        self.close(now)
        self._counts = Counter(reasons)

    def close(self, now: float) -> None:
        """Count the time up to now."""
        passed, self._since = now - self._since, now
        if passed <= 0:
            return
        for reason, count in self._counts.items():
            if reason not in self._seconds and len(self._seconds) >= self._most:
                reason = "other causes"
            self._seconds[reason] = self._seconds.get(reason, 0.0) + count * passed

    def seconds(self) -> dict[str, float]:
        """Return the seconds by reason, the largest first."""
        return dict(sorted(self._seconds.items(), key=lambda item: (-item[1], item[0])))


class WaitCauses:
    """Between two looks, every waiting job counts for the cause that was found at the first. Units: job-seconds.

    A look costs time per waiting job, so looks take at most ``1/SHARE`` of the time that has passed. ``tell`` is called
    at each look with the cause of each job.
    """

    def __init__(self) -> None:
        self.tell: Callable[[Mapping[str, str]], object] | None = None
        self.sums = JobSeconds(CAUSES_MAX)
        self._began: float | None = None
        self._next = -math.inf

    def observe(self, now: float, outcome: Outcome) -> None:
        """Look at a cycle. Only jobs without running pods count as waiting."""
        if self._began is None:
            self._began = now
        if now < self._next:
            return
        self._next = now + (now - self._began) / SHARE
        said: dict[str, str] = {}  # one text for all that say the same
        waiting = why_jobs_wait(outcome, _idle(outcome))
        causes = {key: said.setdefault(why.short, why.short) for key, why in waiting.items()}
        self.sums.count(now, causes.values())
        if self.tell is not None:
            self.tell(causes)


class WaitCodes:
    """Between two cycles, every job without running pods counts for the code of what is nearest in its way after the
    first of them. Units: job-seconds."""

    def __init__(self) -> None:
        self.sums = JobSeconds()

    def observe(self, now: float, outcome: Outcome) -> None:
        """Take in a cycle."""
        self.sums.count(now, (code.value for _, code in waiting_codes(outcome, _idle(outcome))))


def _idle(outcome: Outcome) -> Bool:
    """Return the jobs without running pods. Shape (J,)."""
    found: Bool = np.asarray(~outcome.tables.jobs.allocated.any(axis=1))
    return found
