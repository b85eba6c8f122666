"""Gangs that hold nodes below their minimum for too long: which of them gives way, so that another can be whole.

Where two gangs hold what each other lacks, waiting ends nothing. The one that comes last goes whole, if with its nodes
another one would be whole at once. Volcano does not have this. (docs/decisions/0019)
"""

from __future__ import annotations

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import HELD, PENDING
from pumice.columns.dtypes import EPS, AnyArray
from pumice.columns.nodes import FUTURE
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.placing.choose import placing_of
from pumice.volcano import points


def half_gangs(ssn: Session) -> AnyArray:
    """Rows of jobs that hold nodes and are below their minimum, though pods that would complete it wait."""
    jobs = ssn.tables.jobs
    held = jobs.counts @ HELD
    found = jobs.alive & (jobs.queue >= 0) & ~jobs.barred & (held > 0) & (held < jobs.min_available)
    rows: AnyArray = (found & (jobs.counts[:, PENDING] > 0)).nonzero()[0]
    return rows


def half_since(ssn: Session, job: int) -> float:
    """When the last of what the job is happened: a pod of it began to run, or one that waits was made."""
    tasks, rows = ssn.tables.tasks, ssn.tables.jobs.tasks[job]
    pods = [tasks.pods[row] for row in rows.tolist()]
    return max((pod.start_time or pod.creation for pod in pods), default=ssn.now)


def gives_way(ssn: Session, after_s: float) -> int:
    """The row of the job that should go, -1: none. It has been a half for ``after_s``, comes last of all such, and
    another half, which comes before it, would be whole with what it holds."""
    halves = half_gangs(ssn)
    if len(halves) < 2:
        return -1
    order = ssn.order.jobs_in_order(halves)
    late = [job for job in order if half_since(ssn, job) + after_s <= ssn.now]
    for last in reversed(late):
        room = _room_without(ssn, last)
        if any(_would_be_whole(ssn, job, room) for job in order[: order.index(last)]):
            return last
    return -1


def _room_without(ssn: Session, job: int) -> AnyArray:
    """What nodes will have (N, R) once the job holds nothing."""
    tables, rows = ssn.tables, ssn.tables.jobs.tasks[job]
    held = rows[(HELD[tables.tasks.status[rows]] > 0) & (tables.tasks.node[rows] >= 0)]
    room: AnyArray = tables.nodes.books[:, FUTURE].copy()
    np.add.at(room, tables.tasks.node[held], tables.classes.req[tables.tasks.cls[held]])
    return room


def _would_be_whole(ssn: Session, job: int, room: AnyArray) -> bool:
    """Whether nodes that let its pods in have room for what it lacks. Only where all that waits is alike."""
    tables, lacks = ssn.tables, Job(ssn.tables, job).missing_count
    rows = tables.jobs.tasks[job]
    classes = distinct(tables.tasks.cls[rows[tables.tasks.status[rows] == PENDING]])
    if len(classes) != 1 or ssn.ask(points.job_valid, Job(tables, job)) is not None:
        return False
    allowed, req = placing_of(ssn).feasible.of(int(classes[0])).allowed, tables.classes.req[classes[0]]
    asked = tables.classes.compared[classes[0]] & (req >= EPS)
    if not asked.any():
        return False
    count = np.floor((room[allowed][:, asked] + EPS) / req[asked]).min(axis=1).clip(min=0).sum()
    return bool(count >= lacks)
