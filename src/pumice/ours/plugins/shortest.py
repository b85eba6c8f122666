"""shortest: order jobs by how long they are expected to run, and the oldest first once they have waited for long.

Source: shortest job first by the user's estimate. With gangs of very different sizes it lets large ones starve unless
old jobs go first (docs/guide/waiting-time.md). ``aging`` weighs the wait against the estimate: Brinch Hansen,
Short-Term Scheduling in Multiprogramming Systems, 1971 (highest response ratio next).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.api import F64, NOW, ROWS, JobRows, Session, plugin, points
from pumice.ours.time_arguments import seconds_of, wrong_seconds

NAME = "shortest"
#: Keys of old jobs are below all others. A float of this size still tells a thousandth of a second.
_OLD = -1e12


@plugin(NAME)
class Shortest:
    """Order by estimate, shortest first.

    ``oldestAfter``: jobs that have waited for so long go before all others, oldest first; "": never.
    ``withoutEstimate``: estimate of jobs that have none. ``aging``: order by the estimate divided by the wait, to which
    this time is added, so that a long job passes a short one that came much later; "": by the estimate alone.
    """

    def __init__(
        self, ssn: Session, *, oldestAfter: str = "96h", withoutEstimate: str = "24h", aging: str = ""
    ) -> None:
        self.ssn = ssn
        # Without a bound a stream of short jobs would hold back a long one forever.
        self.oldest_after = seconds_of(oldestAfter) if oldestAfter else np.inf
        # A job that says nothing must not gain by it, so by default it counts as a long one.
        self.unknown_s = seconds_of(withoutEstimate)
        self.aging_s = seconds_of(aging) if aging else np.inf

    @staticmethod
    def problems(*, oldestAfter: str, withoutEstimate: str, aging: str) -> Iterator[str]:
        if oldestAfter:
            yield from wrong_seconds("oldestAfter", oldestAfter)
        if aging:
            yield from wrong_seconds("aging", aging)
        yield from wrong_seconds("withoutEstimate", withoutEstimate)

    def wakes_at(self) -> float | None:
        """Return when the next waiting job becomes an old one, at which the order changes."""
        jobs, rows = self.ssn.tables.jobs, self.ssn.live_jobs
        # Only jobs that wait: the others are not ordered, and would cause cycles that decide nothing.
        due = jobs.creation[rows[jobs.waits[rows] > 0]] + self.oldest_after
        due = due[(due > self.ssn.now) & np.isfinite(due)]
        return float(due.min()) if len(due) else None

    @points.job_order(reads=(ROWS, NOW))
    def job_order(self, jobs: JobRows) -> F64:
        """Return the order key: old jobs by creation, then the others by estimate and wait. Shape (rows,)."""
        key = np.where(jobs.estimate_s > 0, jobs.estimate_s, self.unknown_s)
        waited = self.ssn.now - jobs.creation
        if np.isfinite(self.aging_s):
            # The added time keeps jobs that have just come comparable: a wait of zero would put them all last.
            key = key / (np.maximum(waited, 0.0) + self.aging_s)
        return np.where(waited >= self.oldest_after, _OLD + jobs.creation, key)
