"""stalegangeviction: evict gangs that have been below their minimum for too long. Source: KAI stalegangeviction
action.
"""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.kai.engine.chunks import active_tasks
from pumice.kai.stale import stale_jobs

REASON = "stalegangeviction"


def stalegangeviction(ssn: Session, *, defaultStalenessGracePeriod: float = 60.0) -> None:
    """Evict all tasks of stale gangs.

    A gang is stale if none of its pods has succeeded, at least one holds resources, and a pod set is below its
    minimum. ``defaultStalenessGracePeriod``: seconds that a gang may stay stale if it states no grace of its own;
    negative: forever.
    """
    for job in stale_jobs(ssn.tables).tolist():
        gang = ssn.tables.jobs.groups[job].gang
        own = gang.staleness_grace if gang is not None else None
        grace = defaultStalenessGracePeriod if own is None else own
        # A gang that is seen stale for the first time has its grace before it, unless that is 0.
        since = ssn.now if gang is None or gang.stale_since is None else gang.stale_since
        # A gang that stays below its minimum does no work, and what its other pods hold is lost to jobs that could run.
        if 0 <= grace <= ssn.now - since:
            _evict(ssn, job)


def _evict(ssn: Session, job: int) -> None:
    """Evict all active tasks of a job in one statement."""
    with ssn.fault_scope(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
        for rows in active_tasks(ssn, job).values():
            # The statement evicts runs of tasks with one status.
            by_status: dict[int, list[int]] = {}
            for row in rows:
                by_status.setdefault(int(ssn.tables.tasks.status[row]), []).append(row)
            for each in by_status.values():
                stmt.evict(each, REASON)
        stmt.commit()
