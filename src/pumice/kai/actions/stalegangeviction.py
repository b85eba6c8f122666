"""stalegangeviction: gangs that fell below their minimum and stayed there are evicted whole. Source: KAI
stalegangeviction."""

from __future__ import annotations

from pumice.columns.counting import ACTIVE, RELEASING
from pumice.framework.session import Session
from pumice.model.status import TaskStatus
from pumice.scenario.chunks import active_tasks

REASON = "stalegangeviction"


def stalegangeviction(ssn: Session, *, defaultStalenessGracePeriod: float = 60.0) -> None:
    """``defaultStalenessGracePeriod``: seconds that a gang may stay below its minimum; negative: for ever.

    A gang is stale when none of its pods has succeeded, one at least holds resources, and a pod set has fewer than its
    minimum.
    """
    if defaultStalenessGracePeriod < 0:
        return
    jobs = ssn.tables.jobs
    used = jobs.counts @ ACTIVE + jobs.counts[:, RELEASING]
    rows = jobs.alive & (jobs.queue >= 0) & (used > 0) & (jobs.counts[:, TaskStatus.SUCCEEDED] == 0)
    rows &= jobs.has_policy | (used < jobs.min_available)
    for job in rows.nonzero()[0].tolist():
        if _is_short(ssn, job) and _since(ssn, job) + defaultStalenessGracePeriod <= ssn.now:
            _evict(ssn, job)


def _is_short(ssn: Session, job: int) -> bool:
    subs = ssn.tables.subs
    return any(
        subs.counts[sub] @ ACTIVE + subs.counts[sub, RELEASING] < subs.min_available[sub]
        for sub in ssn.tables.jobs.subs[job]
    )


def _since(ssn: Session, job: int) -> float:
    """When it was first seen to be stale; now, if it was not."""
    gang = ssn.tables.jobs.groups[job].gang
    return ssn.now if gang is None or gang.stale_since is None else gang.stale_since


def _evict(ssn: Session, job: int) -> None:
    status = ssn.tables.tasks.status
    with ssn.turn(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
        for rows in active_tasks(ssn, job).values():
            by_status: dict[int, list[int]] = {}
            for row in rows:
                by_status.setdefault(int(status[row]), []).append(row)
            for each in by_status.values():
                stmt.evict(each, REASON)
        stmt.commit()
