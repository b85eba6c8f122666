"""Gangs that fell below their minimum. Source: KAI stalegangeviction, podgroup_info."""

from __future__ import annotations

from pumice.columns.counting import ACTIVE, RELEASING
from pumice.columns.dtypes import AnyArray
from pumice.columns.tables import Tables
from pumice.model.status import TaskStatus


def stale_jobs(tables: Tables) -> AnyArray:
    """Rows of jobs that hold something, none of whose pods has succeeded, with a pod set of fewer than its minimum."""
    jobs = tables.jobs
    used = jobs.counts @ ACTIVE + jobs.counts[:, RELEASING]
    rows = jobs.alive & (jobs.queue >= 0) & (used > 0) & (jobs.counts[:, TaskStatus.SUCCEEDED] == 0)
    rows &= jobs.has_policy | (used < jobs.min_available)
    found: AnyArray = rows.nonzero()[0]
    return found[[_is_short(tables, job) for job in found.tolist()]] if len(found) else found


def will_be_whole(tables: Tables, job: int) -> bool:
    """Whether each pod set of the job has its minimum once all that it was promised is there, without what leaves."""
    subs = tables.subs
    return all(subs.counts[sub] @ ACTIVE >= subs.min_available[sub] for sub in tables.jobs.subs[job])


def _is_short(tables: Tables, job: int) -> bool:
    subs = tables.subs
    return any(
        subs.counts[sub] @ ACTIVE + subs.counts[sub, RELEASING] < subs.min_available[sub]
        for sub in tables.jobs.subs[job]
    )
