"""enqueue: admit pending jobs, by queue order and job order. Source: Volcano enqueue action."""

from __future__ import annotations

from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.volcano.queues.admission import Admission, Kind, waiting_kinds


def enqueue(ssn: Session) -> None:
    """Ask once for each pending job. A rejected job is tried again in the next session."""
    kinds = waiting_kinds(ssn)
    # Plugins are opened when first asked, so an early return saves opening them.
    if not kinds:
        return
    admission = Admission(ssn)
    if admission.rejects_all(kinds):
        return
    # Admission changes neither the order of queues nor that of jobs, so each queue is processed once and not job by
    # job.
    by_queue: dict[int, list[Kind]] = {}
    for kind in kinds:
        by_queue.setdefault(kind.queue, []).append(kind)
    queues = Heap(ssn.order.queue_keys(), list(by_queue))
    while queues:
        admission.go_through(by_queue[queues.pop()])
