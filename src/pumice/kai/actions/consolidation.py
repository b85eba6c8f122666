"""consolidation: running jobs are moved so that a waiting one fits; nobody is lost. Source: KAI consolidation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pumice.columns.dtypes import EPS
from pumice.columns.gpus.claimed import claimed_gpus
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.nodes import FUTURE
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.points import consolidate_victims
from pumice.kai.amounts import gpu_column
from pumice.kai.engine.parts import Part
from pumice.kai.engine.points import consolidate_valid
from pumice.kai.engine.search import preemptible_jobs, search
from pumice.kai.engine.solve import Rules
from pumice.kai.victims import let_through
from pumice.model.status import TaskStatus


def consolidation(ssn: Session, *, maxConsolidationPreemptees: int = 16) -> None:
    """Only for preemptible jobs. ``maxConsolidationPreemptees``: so many jobs may be moved for one, -1 without limit, 0
    for none at all."""
    if maxConsolidationPreemptees == 0:
        return
    may_leave = partial(_may_leave, most=maxConsolidationPreemptees)
    search(ssn, Rules("consolidation", _may_try, _everywhere, may_leave, consolidate_valid, every_victim_placed=True))


def _everywhere(ssn: Session, job: int, queue: int) -> bool:
    return True


def _may_try(ssn: Session, part: Part) -> bool:
    """Whether as many GPUs are idle or about to be, wherever they are."""
    tables = ssn.tables
    if not _is_concerned(ssn, part.job):
        return False
    gpu = gpu_column(tables)
    if gpu < 0:
        return True
    free = tables.nodes.books[:, FUTURE, gpu].sum()
    if ssn.ledger.devices is not None:
        free += ssn.ledger.devices.unused()
    asked = part.amount(tables)[gpu] - claimed_gpus(tables, part.rows).sum()
    return bool(asked - free < EPS)


def _is_concerned(ssn: Session, job: int) -> bool:
    """Whether anybody may be moved for a job: it is preemptible; one of Volcano's was admitted, and asks for nothing
    that this search does not know of: minimums by role, a network topology."""
    jobs = ssn.tables.jobs
    if jobs.groups[job].gang is not None:
        return bool(jobs.preemptible[job])
    admitted = jobs.phase[job] != PENDING_PHASE or not ssn.policy.has_action("enqueue")
    return admitted and not (jobs.has_topology[job] or jobs.has_policy[job] or jobs.role_min[job])


def _may_be_moved(ssn: Session, job: int) -> bool:
    """Whether a job of Volcano's may: not if it was promised something in this cycle, which nobody may take away, nor
    if it must be near to itself. Of KAI's, all may."""
    jobs = ssn.tables.jobs
    if jobs.groups[job].gang is not None:
        return True
    promised = jobs.counts[job, TaskStatus.ALLOCATED] + jobs.counts[job, TaskStatus.PIPELINED]
    return not promised and not (jobs.has_topology[job] or jobs.has_policy[job] or jobs.role_min[job])


def _may_leave(ssn: Session, job: int, *, most: int) -> Callable[[int], bool]:
    """At most so many jobs, those that would leave first. KAI takes those that its hash map gives first, and one more
    than the limit."""
    allowed = let_through(ssn, job, consolidate_victims, lambda row: _may_be_moved(ssn, row))
    if most < 0:
        return allowed
    rows = [row for row in preemptible_jobs(ssn).tolist() if allowed(row)]
    keys = ssn.order.job_keys()(rows)
    in_order = [row for _, row in sorted(zip(keys, rows, strict=True))]
    return set(in_order[-most:]).__contains__
