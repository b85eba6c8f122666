"""Find gangs that have fallen below their minimum. Source: KAI stalegangeviction action, podgroup_info."""

from __future__ import annotations

from pumice.columns.counting import ACTIVE, RELEASING, STUCK
from pumice.columns.dtypes import AnyArray
from pumice.columns.tables import Tables
from pumice.model.status import TaskStatus

#: States in which a task still counts for its gang (statuses,), 0 or 1. Source: KAI active used.
_USED = ACTIVE.copy()
# A gang is short of a pod when the pod has gone, and not while it leaves.
_USED[[RELEASING, STUCK]] = 1


def stale_jobs(tables: Tables) -> AnyArray:
    """Return the rows of stale jobs: they hold resources, no pod has succeeded, and a pod set is below its minimum."""
    jobs = tables.jobs
    used = jobs.counts @ _USED
    # Pods of a gang that finishes end one after the other. The first that succeeds shows that fewer are enough from
    # then on.
    rows = jobs.alive & (jobs.queue >= 0) & (used > 0) & (jobs.counts[:, TaskStatus.SUCCEEDED] == 0)
    # An array test first: a job without sub-groups has one pod set, so its own counts decide. Only the few jobs that
    # are left are tested by pod set.
    rows &= jobs.has_policy | (used < jobs.min_available)
    found: AnyArray = rows.nonzero()[0]
    return found[[_is_short(tables, job) for job in found.tolist()]] if len(found) else found


def will_be_whole(tables: Tables, job: int) -> bool:
    """Return True if each pod set of a job reaches its minimum with pipelined tasks and without releasing ones."""
    subs = tables.subs
    return all(subs.counts[sub] @ ACTIVE >= subs.min_available[sub] for sub in tables.jobs.subs[job])


def _is_short(tables: Tables, job: int) -> bool:
    """Return True if a pod set of a job is below its minimum; releasing tasks still count."""
    subs = tables.subs
    return any(subs.counts[sub] @ _USED < subs.min_available[sub] for sub in tables.jobs.subs[job])
