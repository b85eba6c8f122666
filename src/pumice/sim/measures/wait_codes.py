"""How long jobs waited for which reason, summed up over a simulation by the codes of reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from pumice.answers.waiting_codes import waiting_codes
from pumice.columns.dtypes import Bool
from pumice.framework.cycle.outcome import Outcome


class WaitCodes:
    """Between two cycles, every job without running pods counts for the code of what is nearest in its way after the
    first of them. ``note`` is called after each cycle with the code of each such job, by key."""

    def __init__(self) -> None:
        self.note: Callable[[Mapping[str, str]], object] | None = None
        self._since = 0.0
        self._counts: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}

    def observe(self, now: float, outcome: Outcome) -> None:
        """Take in a cycle."""
        uids = outcome.tables.jobs.uids
        codes = {uids[row]: code.value for row, code in waiting_codes(outcome, _idle(outcome))}
        self.close(now)
        self._counts = Counter(codes.values())
        if self.note is not None:
            self.note(codes)

    def close(self, now: float) -> None:
        """Count the time up to now."""
        passed, self._since = now - self._since, now
        if passed <= 0:
            return
        for code, count in self._counts.items():
            self._seconds[code] = self._seconds.get(code, 0.0) + count * passed

    def seconds(self) -> dict[str, float]:
        """Return job-seconds by code, the largest first."""
        return dict(sorted(self._seconds.items(), key=lambda item: (-item[1], item[0])))


def _idle(outcome: Outcome) -> Bool:
    """Return the jobs without running pods. Shape (J,)."""
    found: Bool = np.asarray(~outcome.tables.jobs.allocated.any(axis=1))
    return found
