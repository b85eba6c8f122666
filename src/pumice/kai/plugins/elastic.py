"""elastic: order jobs below their minimum first, then those at their minimum, then those above it. Source: KAI elastic
plugin.
"""

from __future__ import annotations

from pumice.api import ROWS, AnyArray, JobRows, Session, plugin
from pumice.kai import points


@plugin("elastic")
@points.job_order(reads=(ROWS,))
def elastic(ssn: Session, jobs: JobRows) -> AnyArray:
    """Return the order key of jobs, lower first. Shape (rows,)."""
    # A gang below its minimum cannot run at all, so its pods come before one more pod for a job that runs already.
    return jobs.surplus
