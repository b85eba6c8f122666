"""priority: jobs of higher priority first. Source: KAI priority."""

from __future__ import annotations

from pumice.columns.dtypes import AnyArray
from pumice.columns.rows import JobRows
from pumice.framework.plugin import plugin
from pumice.framework.point import ROWS
from pumice.framework.session import Session
from pumice.kai import points


@plugin("priority")
@points.job_order(reads=(ROWS,))
def priority(ssn: Session, jobs: JobRows) -> AnyArray:
    """Shape (rows,)."""
    return -jobs.priority
