"""Hold back jobs that may not trigger evictions yet. Source: KAI PodGroup preemptionDelay."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.kai.engine.chunks import chunk_of
from pumice.model.blockers import Delayed


def past_delay(ssn: Session, rows: AnyArray) -> AnyArray:
    """Return the rows of jobs whose delay is over, and trace for the others until when it lasts."""
    ends = [_ends(ssn, job) for job in rows.tolist()]
    if not any(ends):
        return rows
    late = np.array(ends) > ssn.now
    for job, end in zip(rows[late].tolist(), np.array(ends)[late].tolist(), strict=True):
        gang = ssn.tables.jobs.groups[job].gang
        assert gang is not None
        # A job may have no pods left but those of a sub-group that it does not have.
        if chunk_of(ssn, job) is None:
            continue
        ssn.trace.tell_of_jobs(np.array([job]), Delayed(end, gang.preemption_delay))
    return rows[~late]


def _ends(ssn: Session, job: int) -> float:
    """Return when the delay of a job ends, in seconds since the epoch; 0 for a job without one."""
    group = ssn.tables.jobs.groups[job]
    gang = group.gang
    if gang is None or not gang.preemption_delay:
        return 0.0
    # An eviction of this cycle is in no annotation yet.
    last = ssn.now if job in evicted_jobs(ssn) else gang.last_eviction or 0.0
    # From its last eviction on, a job has to wait again: two jobs could otherwise evict each other in every cycle.
    return max(group.creation, last) + gang.preemption_delay


def evicted_jobs(ssn: Session) -> set[int]:
    """Return the rows of jobs that lost pods to other jobs in this session."""
    found: set[int] = ssn.shared(evicted_jobs, set)
    return found


def note_evictions(ssn: Session, tasks: Iterable[int]) -> None:
    """Remember that tasks were evicted for another job."""
    evicted_jobs(ssn).update(ssn.tables.tasks.job[list(tasks)].tolist())
