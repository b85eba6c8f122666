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
    minimum. ``defaultStalenessGracePeriod``: seconds that a gang may stay stale; negative: forever.
    """
    if defaultStalenessGracePeriod < 0:
        return
    for job in stale_jobs(ssn.tables).tolist():
        if _since(ssn, job) + defaultStalenessGracePeriod <= ssn.now:
            _evict(ssn, job)


def _since(ssn: Session, job: int) -> float:
    """Return when a job was first seen stale, or now."""
    gang = ssn.tables.jobs.groups[job].gang
    return ssn.now if gang is None or gang.stale_since is None else gang.stale_since


def _evict(ssn: Session, job: int) -> None:
    """Evict all active tasks of a job in one statement."""
    with ssn.turn(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
        for rows in active_tasks(ssn, job).values():
            # The statement evicts runs of tasks with one status.
            by_status: dict[int, list[int]] = {}
            for row in rows:
                by_status.setdefault(int(ssn.tables.tasks.status[row]), []).append(row)
            for each in by_status.values():
                stmt.evict(each, REASON)
        stmt.commit()
