"""consolidation: running jobs are moved so that a waiting one fits; nobody is lost. Source: KAI consolidation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pumice.columns.dtypes import EPS
from pumice.columns.nodes import FUTURE
from pumice.framework.session import Session
from pumice.kai import points
from pumice.kai.amounts import gpu_column
from pumice.kai.victims import let_through
from pumice.scenario.parts import Part
from pumice.scenario.points import consolidate_valid
from pumice.scenario.search import preemptible_jobs, search
from pumice.scenario.solve import Rules


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
    if not tables.jobs.preemptible[part.job]:
        return False
    gpu = gpu_column(tables)
    if gpu < 0:
        return True
    free = tables.nodes.books[:, FUTURE, gpu].sum()
    if ssn.ledger.devices is not None:
        free += ssn.ledger.devices.unused()
    return bool(part.amount(tables)[gpu] - free < EPS)


def _may_leave(ssn: Session, job: int, *, most: int) -> Callable[[int], bool]:
    """At most so many jobs, those that would leave first. KAI takes those that its hash map gives first, and one more
    than the limit."""
    allowed = let_through(ssn, job, points.consolidate_victims)
    if most < 0:
        return allowed
    rows = [row for row in preemptible_jobs(ssn).tolist() if allowed(row)]
    keys = ssn.order.job_keys()(rows)
    in_order = [row for _, row in sorted(zip(keys, rows, strict=True))]
    return set(in_order[-most:]).__contains__
