"""stalegangeviction: gangs that fell below their minimum and stayed there are evicted whole. Source: KAI
stalegangeviction."""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.kai.engine.chunks import active_tasks
from pumice.kai.stale import stale_jobs

REASON = "stalegangeviction"


def stalegangeviction(ssn: Session, *, defaultStalenessGracePeriod: float = 60.0) -> None:
    """``defaultStalenessGracePeriod``: seconds that a gang may stay below its minimum; negative: for ever.

    A gang is stale when none of its pods has succeeded, one at least holds resources, and a pod set has fewer than its
    minimum.
    """
    if defaultStalenessGracePeriod < 0:
        return
    for job in stale_jobs(ssn.tables).tolist():
        if _since(ssn, job) + defaultStalenessGracePeriod <= ssn.now:
            _evict(ssn, job)


def _since(ssn: Session, job: int) -> float:
    """When it was first seen to be stale; now, if it was not."""
    gang = ssn.tables.jobs.groups[job].gang
    return ssn.now if gang is None or gang.stale_since is None else gang.stale_since


def _evict(ssn: Session, job: int) -> None:
    with ssn.turn(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
        for rows in active_tasks(ssn, job).values():
            by_status: dict[int, list[int]] = {}
            for row in rows:
                by_status.setdefault(int(ssn.tables.tasks.status[row]), []).append(row)
            for each in by_status.values():
                stmt.evict(each, REASON)
        stmt.commit()
