"""allocate: place jobs in queue order, one chunk at a time, on idle and releasing resources. Source: KAI allocate
action.
"""

from __future__ import annotations

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.kai.engine.budget import STEPS_MAX, budget_for, in_turn
from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.counters import Tally, tally
from pumice.kai.engine.equivalence import EqualJobs
from pumice.kai.engine.parts import Part
from pumice.kai.engine.placement.other_groups import place_other_groups
from pumice.kai.engine.placement.place_part import NoPlacement, placer
from pumice.kai.engine.placement.small_gang import place_small_gang, place_small_tree
from pumice.kai.engine.tree_order import TreeOrder, waiting_jobs
from pumice.placing.nominations import kept_nominations
from pumice.placing.small_gangs import SmallGangs
from pumice.placing.small_trees import SmallTrees


def allocate(ssn: Session, *, promisedFirst: bool = True, maxSearchSteps: int = STEPS_MAX) -> None:
    """Place pending jobs. A gang is placed whole; then an elastic job grows by one task at a time.

    ``promisedFirst``: place jobs for which other jobs were evicted in an earlier cycle before all others
    (decision 0016). ``maxSearchSteps``: counted steps in a cycle for jobs with a topology or nested sub-groups, shared
    out over queues and namespaces; 0 for no limit.
    """
    rows = waiting_jobs(ssn)
    grouped = list(filter(placer(ssn).is_grouped, rows.tolist()))
    budget = budget_for(ssn, np.array(grouped, dtype=np.int64), maxSearchSteps)
    if promisedFirst:
        promised = distinct(rows[np.isin(rows, kept_nominations(ssn.tables.tasks, placer(ssn).feasible))])
        failed = _place_nominated(ssn, promised, budget) if len(promised) else []
        # Allocation only takes resources, so a job that failed once fails again in this cycle.
        rows = rows[~np.isin(rows, failed)] if failed else rows
    _allocate_in_order(ssn, rows, budget, grow=True)
    budget.end()


def _place_nominated(ssn: Session, rows: AnyArray, budget: Budget) -> list[int]:
    """Place nominated jobs, each task on its nominated node if possible, and return the jobs that failed."""
    # The flag is reset in any case: it also changes how later actions place.
    placer(ssn).as_promised = True
    try:
        return _allocate_in_order(ssn, rows, budget, grow=False)
    finally:
        placer(ssn).as_promised = False


def _allocate_in_order(ssn: Session, rows: AnyArray, budget: Budget, *, grow: bool) -> list[int]:
    """Place one chunk per job in queue order, more chunks for elastic jobs if ``grow``, and return the jobs that
    failed."""
    order, equal = TreeOrder(ssn, rows), EqualJobs(ssn, rows)
    small, failed = SmallGangs(ssn, placer(ssn).feasible), list[int]()
    trees = SmallTrees(ssn, placer(ssn).feasible, small)
    for job, part in in_turn(order, budget, counted=placer(ssn).is_grouped):
        # Equal jobs at the head of the queue would fail in the same way, so they are dropped with this one.
        if part is None or equal.failed(job):
            order.drop(job, equal.leading)
            failed.append(job)
            continue
        tally(ssn, Tally.TRIED)
        with ssn.fault_scope(ssn.tables.jobs.uids[job]):
            refused = _allocate(ssn, small, trees, part)
            if not isinstance(refused, NoPlacement):
                equal.placed(job)
                tally(ssn, Tally.PLACED)
                # A job of which a bind was refused waits for the next cycle: the cluster knows something that this
                # snapshot does not.
                if grow and not refused and chunk_of(ssn, job) is not None:
                    order.push(job)
            else:
                cut = placer(ssn).is_grouped(job) and budget.is_cut()
                equal.fails(job, refused.why, equal=not cut)
                order.drop(job, equal.leading)
                failed.append(job)
    equal.tell()
    return failed


def _allocate(ssn: Session, small: SmallGangs, trees: SmallTrees, part: Part) -> list[str] | NoPlacement:
    """Place and commit a chunk. Return the pods whose binding was refused, or why the chunk found no place."""
    with ssn.statement() as stmt:
        against = placer(ssn).place(stmt, part)
        # Whatever is tried beside the first way, the reason against the gang is what was found there.
        if against is None or (
            place_other_groups(ssn, stmt, part, against)
            or place_small_tree(ssn, trees, stmt, part.job)
            or place_small_gang(ssn, small, stmt, part)
        ):
            return stmt.commit()
        return against
