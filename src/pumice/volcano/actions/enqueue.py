"""enqueue: admit waiting jobs, best queue first, best job first. Source: Volcano enqueue (spec 03 §1)."""

from __future__ import annotations

import numpy as np

from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.columns.views import Job
from pumice.framework import points
from pumice.framework.ordering import Heap, job_keyer, queue_keyer
from pumice.framework.session import Session


def enqueue(ssn: Session) -> None:
    """Each pending job is asked for once; a job that is turned down is tried again in the next session.

    A job without minResources is admitted without asking.
    """
    jobs = ssn.tables.jobs
    waiting = np.flatnonzero(jobs.alive & (jobs.queue >= 0) & (jobs.phase == PENDING_PHASE))
    if not len(waiting):
        return
    by_queue: dict[int, list[int]] = {}
    for row, queue in zip(waiting.tolist(), jobs.queue[waiting].tolist(), strict=True):
        by_queue.setdefault(queue, []).append(row)
    keyer = job_keyer(ssn)
    heaps = {queue: Heap(keyer, rows) for queue, rows in by_queue.items()}
    queues = Heap(queue_keyer(ssn), list(heaps))
    while queues:
        queue = queues.pop()
        if not heaps[queue]:
            continue
        job = Job(ssn.tables, heaps[queue].pop())
        if not jobs.has_min[job.row] or ssn.ask(points.job_enqueueable, job):
            ssn.ask(points.job_enqueued, job)
            ssn.set_phase(job.row, INQUEUE_PHASE)
            ssn.tell(job.key, "admitted")
        queues.push(queue)
