"""elastic: jobs below their minimum before those that just have it, and these before those that have more. Source: KAI
elastic."""

from __future__ import annotations

from pumice.api import ROWS, AnyArray, JobRows, Session, plugin
from pumice.kai import points


@plugin("elastic")
@points.job_order(reads=(ROWS,))
def elastic(ssn: Session, jobs: JobRows) -> AnyArray:
    """Shape (rows,)."""
    return jobs.surplus
