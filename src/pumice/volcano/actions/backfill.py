"""backfill: place pods without requests on any node that filters allow. Source: Volcano backfill action."""

from __future__ import annotations

import numpy as np

from pumice.columns.counting import ALLOCATED, PENDING, ready_in
from pumice.columns.dtypes import AnyArray, Bool, some
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.columns.tables import Tables
from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Job, Task
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Kind, Operation
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model.status import TaskStatus
from pumice.placing.batch import placing_of
from pumice.volcano import points
from pumice.volcano.gangs.readiness import job_ready
from pumice.volcano.topology.label_domains import domains_with_room
from pumice.volcano.topology.rules import common_label, in_label_domain


def backfill(ssn: Session, *, predicateErrorCacheEnable: bool = True, promisedFirst: bool = True) -> None:
    """Place each such task alone; the job's allocated tasks are bound once the job is ready.

    ``predicateErrorCacheEnable`` has no effect: filters answer per task class anyway. ``promisedFirst``: if
    ``allocate`` runs later in the cycle, leave nodes alone that other jobs were promised (decision 0016).
    """
    # Promises matter only if allocate still runs: it would find the nodes taken.
    held = ssn.tables.tasks.awaiting() if promisedFirst and ssn.policy.comes_after("backfill", "allocate") else None
    for row in tasks_in_order(ssn):
        with ssn.fault_scope(ssn.tables.tasks.pods[row].key):
            open_to = None if held is None or not len(held) else _open_to(ssn.tables, row, held)
            label = common_label(ssn.tables, int(ssn.tables.tasks.job[row]))
            _place(ssn, row, _in_domain(ssn, row, label, open_to) if label else open_to)


def _open_to(tables: Tables, row: int, held: AnyArray) -> Bool:
    """Return the nodes to which no task of another job is nominated. Shape (N,)."""
    tasks, found = tables.tasks, np.ones(len(tables.nodes.facts), dtype=bool)
    others = held[tasks.job[held] != tasks.job[row]]
    found[tasks.nominated[others]] = False
    return found


def _in_domain(ssn: Session, row: int, label: str, open_to: Bool | None) -> Bool:
    """Return the nodes of the domain of a node label in which a task may be (N,): where others of its job are, else the
    smallest that holds what the job lacks without requests."""
    tables, job = ssn.tables, int(ssn.tables.tasks.job[row])
    rows = tables.jobs.tasks[job]
    waiting = rows[(tables.tasks.status[rows] == PENDING) & tables.tasks.best_effort[rows]].tolist()
    lacks = int(tables.jobs.min_available[job]) - ready_in(tables.jobs.counts[job].tolist())
    need = min(max(lacks, 1), len(waiting))
    found = domains_with_room(ssn, label, rows, waiting, need, open_to)
    return found[0] if found else np.zeros(len(tables.nodes.facts), dtype=bool)


def _place(ssn: Session, row: int, open_to: Bool | None) -> None:
    """Place one task, or record why it fits on no node."""
    nodes = placing_of(ssn).feasible.all_nodes
    task = Task(ssn.tables, row)
    unfit = ssn.ask(points.task_refused, task)
    if unfit is not None:
        plugin = ssn.hooks.first_to_answer(points.task_refused, task)
        ssn.trace.note(row, FitErrors.everywhere(unfit, len(nodes), plugin))
        return
    choice = placing_of(ssn).choose(row, nodes, open_to=open_to, resources=False)
    if choice.errors is not None:
        ssn.trace.note(row, choice.errors)
    elif choice.node >= 0:
        _allocate_directly(ssn, row, choice.node)


def tasks_in_order(ssn: Session) -> list[int]:
    """Return pending tasks without requests in queue, job and task order. Pipelined ones become pending first."""
    tables, jobs, tasks = ssn.tables, ssn.tables.jobs, ssn.tables.tasks
    if not some(tasks.best_effort):
        return []
    pipelined = ((tasks.status == TaskStatus.PIPELINED) & tasks.best_effort).nonzero()[0]
    # As in Volcano, which places such tasks again, because they need no resources to be released.
    for row in pipelined.tolist():
        _take_back(ssn, row)
    live = jobs.alive & (jobs.queue >= 0) & ~jobs.quarantined
    live = (live & (jobs.phase != PENDING_PHASE) & (jobs.best_effort > 0)).nonzero()[0]
    # This action places each task by itself, and knows no groups with domains of their own.
    live = live[[not in_label_domain(tables, job) or bool(common_label(tables, job)) for job in live.tolist()]]
    lines = ssn.order.lines(live)
    found: list[int] = []
    queues = Heap(ssn.order.queue_keys(), list(lines))
    while queues:
        line = lines[queues.pop()]
        # Nothing is placed while the order is collected, so a queue stays first until it is empty.
        while line:
            job = line.pop()
            with ssn.fault_scope(jobs.uids[job]):
                if ssn.ask(points.job_valid, Job(ssn.tables, job)) is None:
                    rows = jobs.tasks[job]
                    waiting = (tasks.status[rows] == PENDING) & tasks.best_effort[rows] & (tasks.gate[rows] == NO_GATE)
                    found += ssn.order.sorted_tasks(rows[waiting]).tolist()
    return found


def _take_back(ssn: Session, row: int) -> None:
    """Undo a pipelined placement that an earlier statement kept without a commit."""
    node = int(ssn.tables.tasks.node[row])
    ssn.ledger.move(TaskRun(ssn.tables, Placement([row], [-1])), TaskStatus.PENDING)
    # Plugins release what they counted on the old node, so the event names that node and not the task's present one.
    ssn.ask(points.on_deallocate, TaskRun(ssn.tables, Placement([row], [node])))


def _allocate_directly(ssn: Session, row: int, node: int) -> None:
    """Allocate a task to a node. Bind all allocated tasks of its job if the job is then ready."""
    job = int(ssn.tables.tasks.job[row])
    with ssn.statement() as stmt:
        refusal = stmt.allocate([row], [node])
        if refusal is not None:
            ssn.trace.note(row, FitErrors(message=refusal.reason))
            return
        ready = job_ready(ssn, job)
        # Volcano allocates here in the session and not in a statement, so the placement stays even if the job is not
        # ready.
        stmt.keep_uncommitted()
    if ready:
        _dispatch(ssn, job)


def _dispatch(ssn: Session, job: int) -> None:
    """Bind all allocated tasks of a job, including tasks placed by other statements. Source: Volcano
    Session.Allocate."""
    tasks, rows = ssn.tables.tasks, ssn.tables.jobs.tasks[job]
    for row in rows[tasks.status[rows] == ALLOCATED].tolist():
        with ssn.statement() as stmt:
            # The tasks are allocated already. An operation that only commits them sends the binding without placing
            # them again.
            stmt.operations.append(Operation(Kind.ALLOCATE, Placement([row], [int(tasks.node[row])])))
            stmt.commit()
