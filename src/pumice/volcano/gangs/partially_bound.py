"""Resolve deadlocks between gangs that hold nodes but are below their minimum.

If two gangs each hold what the other lacks, waiting never ends. The last such gang in job order is evicted whole, if
another one could then start at once. A gang that is below its minimum for long can give back what it holds. Volcano
has no such rules (decision 0018).
"""

from __future__ import annotations

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import HELD, PENDING, READY
from pumice.columns.dtypes import EPS, AnyArray
from pumice.columns.jobs import JobTable
from pumice.columns.nodes import FUTURE
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.placing.batch import placing_of
from pumice.volcano import points

_BELOW = "gang.below "  # prefix of notes: since when a gang is below its minimum, 0 after it is no longer


def partially_bound_gangs(ssn: Session) -> AnyArray:
    """Return the rows of jobs that hold nodes and are below their minimum, while pods that could complete them are
    pending."""
    rows = gangs_below_minimum(ssn.tables.jobs)
    found: AnyArray = rows[ssn.tables.jobs.counts[rows, PENDING] > 0]
    return found


def gangs_below_minimum(jobs: JobTable) -> AnyArray:
    """Return the rows of jobs that hold nodes and are below their minimum, whether or not the missing pods exist."""
    held = jobs.counts @ HELD
    found = jobs.alive & (jobs.queue >= 0) & ~jobs.quarantined & (held > 0)
    # What has succeeded counts, and so do pods without requests, which wait for nothing.
    rows: AnyArray = (found & (jobs.min_available - jobs.counts @ READY > jobs.best_effort)).nonzero()[0]
    return rows


def below_minimum_since(ssn: Session) -> dict[int, float]:
    """Return since when gangs that hold nodes are below their minimum, by row; the notes of the session keep it."""
    jobs, found, notes = ssn.tables.jobs, dict[int, float](), ssn.snapshot.notes
    for job in gangs_below_minimum(jobs).tolist():
        # The pods alone do not say it: a gang that has run for hours is below its minimum since its last pod went.
        noted = notes.get(_since(jobs, job), 0.0)
        found[job] = noted or ssn.now
        if not noted:
            ssn.notes[_since(jobs, job)] = ssn.now
    below = {_since(jobs, job) for job in found}
    ssn.notes.update({key: 0.0 for key, at in notes.items() if key.startswith(_BELOW) and at and key not in below})
    return found


def _since(jobs: JobTable, job: int) -> str:
    return f"{_BELOW}{jobs.groups[job].uid}"


def partially_bound_since(ssn: Session, job: int) -> float:
    """Return the last instant at which a job changed: a pod started, or a pending one was created."""
    tasks, rows = ssn.tables.tasks, ssn.tables.jobs.tasks[job]
    pods = [tasks.pods[row] for row in rows.tolist()]
    # From the pods and not from a note: the time survives a restart, and a replayed cycle finds the same.
    return max((pod.start_time or pod.creation for pod in pods), default=ssn.now)


def gang_to_evict(ssn: Session, after_s: float) -> int:
    """Return the row of the job to evict, or -1.

    It has been partially bound for ``after_s`` seconds, is the last of such jobs, and another partially bound job
    before it in order could start with what it holds.
    """
    gangs = partially_bound_gangs(ssn)
    # One gang alone waits for no other: evicting it would free resources that only it waits for.
    if len(gangs) < 2:
        return -1
    order = ssn.order.jobs_in_order(gangs)
    late = [job for job in order if partially_bound_since(ssn, job) + after_s <= ssn.now]
    # The last in order goes, so that of two gangs the more important one starts.
    for last in reversed(late):
        free = _free_without(ssn, last)
        if any(_would_start(ssn, job, free) for job in order[: order.index(last)]):
            return last
    return -1


def _free_without(ssn: Session, job: int) -> AnyArray:
    """Return the free resources of nodes if a job held nothing. Shape (N, R)."""
    tables, rows = ssn.tables, ssn.tables.jobs.tasks[job]
    held = rows[(HELD[tables.tasks.status[rows]] > 0) & (tables.tasks.node[rows] >= 0)]
    # What is leaving already counts as free, since the gang may start on it without another eviction.
    free: AnyArray = tables.nodes.books[:, FUTURE].copy()
    np.add.at(free, tables.tasks.node[held], tables.classes.req[tables.tasks.cls[held]])
    return free


def _would_start(ssn: Session, job: int, free: AnyArray) -> bool:
    """Return True if a job could place all that it lacks on nodes with these free resources."""
    tables, lacks = ssn.tables, Job(ssn.tables, job).missing_count
    rows = tables.jobs.tasks[job]
    classes = distinct(tables.tasks.cls[rows[tables.tasks.status[rows] == PENDING]])
    # For several classes, the count per node would be a packing problem. Such a gang is left alone: a wrong yes would
    # evict a gang in vain.
    if len(classes) != 1 or ssn.ask(points.job_valid, Job(tables, job)) is not None:
        return False
    allowed, req = placing_of(ssn).feasible.of(int(classes[0])).allowed, tables.classes.req[classes[0]]
    asked = tables.classes.compared[classes[0]] & (req >= EPS)
    if not asked.any():
        return False
    count = np.floor((free[allowed][:, asked] + EPS) / req[asked]).min(axis=1).clip(min=0).sum()
    return bool(count >= lacks)
