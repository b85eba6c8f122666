"""consolidation: move running jobs so that a waiting job fits. Every moved task gets a new place. Source: KAI
consolidation action.
"""

from __future__ import annotations

from collections.abc import Callable

from pumice.columns.dtypes import EPS
from pumice.columns.gpus.claimed import claimed_gpus
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.nodes import FUTURE
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.points import consolidate_victims
from pumice.kai.amounts import gpu_column
from pumice.kai.engine.budget import CONSOLIDATION_STEPS_MAX
from pumice.kai.engine.parts import Part
from pumice.kai.engine.points import consolidate_valid
from pumice.kai.engine.refutation import stays_over_limit
from pumice.kai.engine.search import search
from pumice.kai.engine.solve import Rules
from pumice.kai.victims import let_through
from pumice.model.status import TaskStatus


def consolidation(
    ssn: Session, *, maxConsolidationPreemptees: int = 16, maxSearchSteps: int = CONSOLIDATION_STEPS_MAX
) -> None:
    """Move jobs for each waiting preemptible job.

    ``maxConsolidationPreemptees``: largest number of jobs to move for one job; -1: no limit; 0: the action does
    nothing. ``maxSearchSteps``: counted steps in a cycle, shared out over queues and namespaces; 0 for no limit.
    """
    if maxConsolidationPreemptees == 0:
        return
    asks, most = (consolidate_victims, consolidate_valid), maxConsolidationPreemptees
    rules = Rules(
        "consolidation", _may_try, _everywhere, _may_leave, consolidate_valid, asks, every_victim_placed=True, most=most
    )
    search(ssn, rules, maxSearchSteps)


def _everywhere(ssn: Session, job: int, queue: int) -> bool:
    """Return True: jobs of all queues may be moved."""
    return True


def _may_try(ssn: Session, part: Part) -> bool:
    """Return True if the job is eligible, its queue may take it, and the cluster has enough idle and releasing GPUs for
    it."""
    tables = ssn.tables
    if not _is_concerned(ssn, part.job) or stays_over_limit(ssn, part):
        return False
    gpu = gpu_column(tables)
    if gpu < 0:
        return True
    # Moving jobs frees nothing in total, so a search without enough GPUs in sum cannot succeed. GPUs are the scarce
    # resource; KAI checks no other.
    free = tables.nodes.books[:, FUTURE, gpu].sum()
    if ssn.ledger.devices is not None:
        free += ssn.ledger.devices.unused()
    asked = part.amount(tables)[gpu] - claimed_gpus(tables, part.rows).sum()
    return bool(asked - free < EPS)


def _is_concerned(ssn: Session, job: int) -> bool:
    """Return True if jobs may be moved for a job. A Volcano job must be admitted and free of topologies and minimums
    by role."""
    jobs = ssn.tables.jobs
    if jobs.groups[job].gang is not None:
        return bool(jobs.preemptible[job])
    # The action may also run with Volcano's policy. The search places by KAI's rules, which know neither minimums by
    # role nor network topologies.
    admitted = jobs.phase[job] != PENDING_PHASE or not ssn.policy.has_action("enqueue")
    return admitted and not (jobs.has_topology[job] or jobs.has_policy[job] or jobs.role_min[job])


def _may_be_moved(ssn: Session, job: int) -> bool:
    """Return True if a job may be moved. A Volcano job must have no placements of this cycle, no topology and no
    minimums by role."""
    jobs = ssn.tables.jobs
    if jobs.groups[job].gang is not None:
        return True
    # Otherwise one action would undo what another one has just decided in the same cycle.
    promised = jobs.counts[job, TaskStatus.ALLOCATED] + jobs.counts[job, TaskStatus.PIPELINED]
    return not promised and not (jobs.has_topology[job] or jobs.has_policy[job] or jobs.role_min[job])


def _may_leave(ssn: Session, job: int) -> Callable[[int], bool]:
    """Return a test that is True for jobs that may be moved for a job."""
    return let_through(ssn, job, consolidate_victims, lambda row: _may_be_moved(ssn, row))
