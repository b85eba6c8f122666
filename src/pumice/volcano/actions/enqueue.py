"""enqueue: admit waiting jobs, best queue first, best job first. Source: Volcano enqueue (spec 03 §1)."""

from __future__ import annotations

from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.volcano.queues.admission import Admission, Kind, waiting_kinds


def enqueue(ssn: Session) -> None:
    """Each pending job is asked for once; a job that is rejected is tried again in the next session.

    A job without minResources is admitted without asking. Admission changes neither the order of queues nor that of
    jobs, so each queue is gone through once.
    """
    kinds = waiting_kinds(ssn)
    if not kinds:  # and then no plugin is opened to be asked
        return
    admission = Admission(ssn)
    if admission.rejects_all(kinds, remembered=True):
        return
    by_queue: dict[int, list[Kind]] = {}
    for kind in kinds:
        by_queue.setdefault(kind.queue, []).append(kind)
    queues = Heap(ssn.order.queue_keys(), list(by_queue))
    while queues:
        admission.go_through(by_queue[queues.pop()])
