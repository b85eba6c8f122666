"""Which jobs may have to leave, and for whom. Source: KAI reclaim, preempt and consolidation filters."""

from __future__ import annotations

from typing import Any

from pumice.columns.counting import ACTIVE
from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.rows import JobRows
from pumice.columns.views import Job
from pumice.framework.session import Session
from pumice.scenario.turns import queue_tree


def preemptible(ssn: Session, job: int) -> Bool:
    """Other jobs than this that may be evicted and have something to give (J,)."""
    jobs = ssn.tables.jobs
    tree = queue_tree(ssn)
    found = jobs.alive & jobs.preemptible & (jobs.queue >= 0) & (jobs.counts @ ACTIVE > 0)
    found &= tree.leaf[jobs.queue]
    found[job] = False
    return found


def let_through(ssn: Session, job: int, mask: Bool, point: Any) -> AnyArray:
    """Rows of those that all plugins let through."""
    rows: AnyArray = mask.nonzero()[0]
    if not len(rows) or not ssn.has(point):
        return rows
    kept: AnyArray = rows[ssn.ask(point, Job(ssn.tables, job), JobRows(ssn.tables, rows))]
    return kept
