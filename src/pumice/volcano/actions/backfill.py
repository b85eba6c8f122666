"""backfill: place pods that ask for nothing wherever filters allow. Source: Volcano backfill (spec 03 §3)."""

from __future__ import annotations

from pumice.columns.counting import PENDING
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Job, Task
from pumice.framework import points
from pumice.framework.ordering import Heap, heaps_by, job_keyer, queue_keyer, sorted_tasks
from pumice.framework.placing import choose_node
from pumice.framework.session import Session
from pumice.framework.verdict import FitErrors
from pumice.model.status import TaskStatus


def backfill(ssn: Session, *, predicateErrorCacheEnable: bool = True) -> None:
    """Each task is placed by itself; what its job has placed is bound as soon as the job is ready."""
    ssn.error_cache = predicateErrorCacheEnable
    for row in tasks_in_order(ssn):
        task = Task(ssn.tables, row)
        unfit = ssn.pre_predicate(task)
        if unfit is not None:
            ssn.fit_notes.note(row, FitErrors.everywhere(unfit, len(ssn.all_nodes)))
            continue
        choice = choose_node(ssn, row, ssn.all_nodes, resources=False)
        if choice.errors is not None:
            ssn.fit_notes.note(row, choice.errors)
        elif choice.node >= 0:
            _allocate_directly(ssn, row, choice.node)


def tasks_in_order(ssn: Session) -> list[int]:
    """Pending tasks without request, by queue, job and task order; pipelined ones are taken back first."""
    jobs, tasks = ssn.tables.jobs, ssn.tables.tasks
    if not tasks.best_effort.any():
        return []
    pipelined = ((tasks.status == TaskStatus.PIPELINED) & tasks.best_effort).nonzero()[0]
    for row in pipelined.tolist():
        ssn.take_back(row)
    live = (jobs.alive & (jobs.queue >= 0) & (jobs.phase != PENDING_PHASE) & (jobs.best_effort > 0)).nonzero()[0]
    heaps = heaps_by(job_keyer(ssn), live, jobs.queue[live])
    found: list[int] = []
    queues = Heap(queue_keyer(ssn), list(heaps))
    while queues:
        heap = heaps[queues.pop()]
        while heap:
            job = heap.pop()
            if ssn.ask(points.job_valid, Job(ssn.tables, job)) is not None:
                continue
            rows = jobs.tasks[job]
            waiting = (tasks.status[rows] == PENDING) & tasks.best_effort[rows] & (tasks.gate[rows] == NO_GATE)
            found += sorted_tasks(ssn, rows[waiting]).tolist()
    return found


def _allocate_directly(ssn: Session, row: int, node: int) -> None:
    """Without a statement of its own: bound together with everything its job has allocated, once the job is ready."""
    job = int(ssn.tables.tasks.job[row])
    stmt = ssn.statement()
    refusal = stmt.allocate([row], [node])
    if refusal is not None:
        ssn.fit_notes.note(row, FitErrors(message=refusal.reason))
        stmt.discard()
    elif ssn.job_ready(job):
        stmt.leave_standing()
        ssn.dispatch(job)
    else:
        stmt.leave_standing()
