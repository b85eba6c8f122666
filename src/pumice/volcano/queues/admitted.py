"""Compute what admitted jobs are promised, and what a job asks for at admission. Source: Volcano GetInqueueResource,
DeductSchGatedResources.
"""

from __future__ import annotations

import math

import numpy as np

from pumice.columns.dtypes import EPS, F64, AnyArray
from pumice.columns.rows import TaskRows
from pumice.columns.tasks import GATED
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.model.blockers import CAPABILITY, GUARANTEE, OVERCOMMIT, QueueLimit, ResourceLimit


def without_gated(ssn: Session, rows: AnyArray, wanted: F64) -> F64:
    """Deduct the requests of tasks that are gated by others, in place, since these cannot start yet. Shape (rows,
    R)."""
    tables = ssn.tables
    for i in tables.jobs.gated[rows].nonzero()[0].tolist():
        members = tables.jobs.tasks[rows[i]]
        gated = members[tables.tasks.gate[members] == GATED]
        gated_amount = tables.classes.req[tables.tasks.cls[gated]].sum(axis=0)
        wanted[i] = np.maximum(wanted[i] - gated_amount, 0.0)
    return wanted


def minimum(ssn: Session, job: Job) -> F64:
    """Return what an admitted job is promised: its minimum less gated tasks. Shape (R,). Read-only."""
    jobs = ssn.tables.jobs
    found: F64 = jobs.min_resources[job.row]
    return without_gated(ssn, np.array([job.row]), found[None].copy())[0] if jobs.gated[job.row] else found


def exceeded(ssn: Session, wanted: F64, limit: F64, asked: F64) -> list[str]:
    """Return the dimensions of ``asked`` in which ``wanted`` is above ``limit``, without ``pods``.

    Source: Volcano LessEqualWithDimensionAndResourcesName.
    """
    axis = ssn.tables.axis
    each = zip(axis.names, asked.tolist(), wanted.tolist(), limit.tolist(), strict=True)
    # Only what is asked for: a queue that is already above its limit in another resource still admits the job.
    return [name for i, (name, a, w, most) in enumerate(each) if a > 0 and w > most and i != axis.pods]


def cluster_limit(ssn: Session, over: list[str], limit: F64, used: F64, promised: F64, asked: F64) -> QueueLimit:
    """Return the limit of what may be promised of the cluster, in the dimensions ``over``. Shapes (R,)."""
    return QueueLimit("", OVERCOMMIT, _amounts(ssn, over, limit, used, promised, asked))


def queue_limit(
    ssn: Session, queue: int, over: list[str], *, limit: F64, used: F64, promised: F64, asked: F64
) -> QueueLimit:
    """Return the limit of a queue that is exceeded in the dimensions ``over``; with the queues whose guarantees lower
    it below the capability of the queue, if any. Shapes (R,)."""
    queues, axis, amounts = ssn.tables.queues, ssn.tables.axis, _amounts(ssn, over, limit, used, promised, asked)
    # Blamed on guarantees only if they lower the limit in a dimension that is exceeded.
    columns = [axis.column[each.resource] for each in amounts if each.total - each.limit >= EPS]
    left = [d for d in columns if queues.capability[queue, d] - limit[d] >= EPS]
    rows = np.any(queues.guarantee[:, left] >= EPS, axis=1).nonzero()[0].tolist()
    others = tuple(queues.names[row] for row in rows if row != queue)
    return QueueLimit(queues.names[queue], GUARANTEE if others else CAPABILITY, amounts, others=others)


def _amounts(
    ssn: Session, over: list[str], limit: F64, used: F64, promised: F64, asked: F64
) -> tuple[ResourceLimit, ...]:
    rows = [ssn.tables.axis.column[name] for name in over]
    columns = (each[rows].tolist() for each in (limit, used, promised, asked, ssn.total))
    return tuple(ResourceLimit(name, *each) for name, each in zip(over, zip(*columns, strict=True), strict=True))


def fitting(tasks: TaskRows, room: F64) -> int:
    """Return how many of the first tasks fit into ``room`` (R,), comparing only dimensions that each task asks for,
    without ``pods``."""
    pods = tasks.tables.axis.pods
    # Equal tasks need a division per dimension and no running sum.
    if tasks.equal:
        count: float = len(tasks)
        req = tasks.tables.classes.req[tasks.classes[0]]
        for i, (asked, left) in enumerate(zip(req.tolist(), room.tolist(), strict=True)):
            if asked > 0 and i != pods:
                count = min(count, left / asked)
        # A queue may hold more than its limit, after the limit was lowered, and then the room is negative.
        return max(0, math.floor(count))
    req = tasks.req
    # Up to the first that does not fit, and no later ones that would: tasks are placed in order.
    over = (req.cumsum(axis=0) > room) & (req > 0)
    over[:, pods] = False
    too_much = over.any(axis=1)
    return int(too_much.argmax()) if too_much.any() else len(tasks)
