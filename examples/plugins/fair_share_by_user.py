"""Place the jobs of those users first who used the least of the cluster over the last day."""

from __future__ import annotations

import numpy as np

from pumice.api import F64, JobRows, Session, UsageWindow, plugin, points


@plugin("fair-share-by-user")
class FairShareByUser:
    """Order jobs by the part of the cluster that their users had, of the resource of which they had most."""

    def __init__(self, ssn: Session, *, label: str = "example.com/user", hours: float = 24.0) -> None:
        window = UsageWindow(label, 3600 * hours)
        cluster = np.maximum(ssn.total, 1.0) * window.window_s
        share = {user: float((used / cluster).max()) for user, used in ssn.usage(window).items()}
        users = ssn.jobs.label(label)
        of_user = np.array([share.get(user, 0.0) for user in users.values])
        of_job = ssn.jobs.scatter(of_user[users.codes])
        self.share = ssn.column("fair-share-by-user.share", "job", values=of_job)

    @staticmethod
    def keeps_usage(*, label: str, hours: float) -> list[UsageWindow]:
        """The usage that the store is to keep: `ssn.usage` can be asked for this and nothing else."""
        return [UsageWindow(label, 3600 * hours)]

    @points.job_order
    def job_order(self, jobs: JobRows) -> F64:
        share: F64 = self.share.array[jobs.rows]
        return share
