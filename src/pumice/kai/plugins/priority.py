"""priority: order jobs of higher priority first. Source: KAI priority plugin."""

from __future__ import annotations

from pumice.api import ROWS, AnyArray, JobRows, Session, plugin
from pumice.kai import points


@plugin("priority")
@points.job_order(reads=(ROWS,))
def priority(ssn: Session, jobs: JobRows) -> AnyArray:
    """Return the order key of jobs, lower first. Shape (rows,)."""
    return -jobs.priority
