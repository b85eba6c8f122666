"""consolidation: running jobs are moved so that a waiting one fits; nobody is lost. Source: KAI consolidation."""

from __future__ import annotations

from functools import partial

from pumice.columns.dtypes import EPS, AnyArray
from pumice.columns.nodes import FUTURE
from pumice.framework.session import Session
from pumice.kai import points
from pumice.kai.victims import let_through, preemptible
from pumice.scenario.parts import Part, amount_of
from pumice.scenario.points import consolidate_valid
from pumice.scenario.search import search
from pumice.scenario.solve import Rules

_GPU = "nvidia.com/gpu"


def consolidation(ssn: Session, *, maxConsolidationPreemptees: int = 16) -> None:
    """Only for preemptible jobs. ``maxConsolidationPreemptees``: so many jobs may be moved for one, -1 without limit, 0
    for none at all."""
    if maxConsolidationPreemptees == 0:
        return
    candidates = partial(_candidates, most=maxConsolidationPreemptees)
    search(ssn, Rules("consolidation", _may_try, candidates, consolidate_valid, every_victim_placed=True))


def _may_try(ssn: Session, part: Part) -> bool:
    """Whether as many GPUs are idle or about to be, wherever they are."""
    tables = ssn.tables
    if not tables.jobs.preemptible[part.job]:
        return False
    gpu = tables.axis.column.get(_GPU, -1)
    if gpu < 0:
        return True
    free = tables.nodes.books[:, FUTURE, gpu].sum()
    return bool(amount_of(tables, part.rows)[gpu] - free < EPS)


def _candidates(ssn: Session, job: int, *, most: int) -> AnyArray:
    rows = let_through(ssn, job, preemptible(ssn, job), points.consolidate_victims)
    return rows if most < 0 else _worst(ssn, rows, most)


def _worst(ssn: Session, rows: AnyArray, most: int) -> AnyArray:
    """So many jobs that would leave first. KAI takes those that its hash map gives first, and one more than the
    limit."""
    if len(rows) <= most:
        return rows
    in_order: AnyArray = rows[sorted(range(len(rows)), key=ssn.order.job_keys()(rows.tolist()).__getitem__)]
    return in_order[-most:]
