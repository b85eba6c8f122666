"""priority: jobs of higher priority first. Source: KAI priority."""

from __future__ import annotations

from pumice.columns.dtypes import AnyArray
from pumice.columns.job_rows import JobRows
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import ROWS
from pumice.kai import points


@plugin("priority")
@points.job_order(reads=(ROWS,))
def priority(ssn: Session, jobs: JobRows) -> AnyArray:
    """Shape (rows,)."""
    return -jobs.priority
