"""elastic: jobs below their minimum before those that just have it, and these before those that have more. Source: KAI
elastic."""

from __future__ import annotations

from pumice.columns.dtypes import AnyArray
from pumice.columns.job_rows import JobRows
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import ROWS
from pumice.kai import points


@plugin("elastic")
@points.job_order(reads=(ROWS,))
def elastic(ssn: Session, jobs: JobRows) -> AnyArray:
    """Shape (rows,)."""
    return jobs.surplus
