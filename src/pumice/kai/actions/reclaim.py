"""reclaim: jobs take back what is theirs from other queues. Source: KAI reclaim."""

from __future__ import annotations

from collections.abc import Callable

from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.kai import points
from pumice.kai.engine.parts import Part
from pumice.kai.engine.search import search
from pumice.kai.engine.solve import Rules
from pumice.kai.victims import let_through


def reclaim(ssn: Session) -> None:
    """Whoever stays within its fair share may have others evicted that hold more than theirs."""
    search(ssn, Rules("reclaim", _may_try, _of_queue, _may_leave, points.reclaim_valid))


def _may_try(ssn: Session, part: Part) -> bool:
    return bool(ssn.ask(points.may_reclaim, Job(ssn.tables, part.job), part.amount(ssn.tables)))


def _of_queue(ssn: Session, job: int, queue: int) -> bool:
    return queue != int(ssn.tables.jobs.queue[job])


def _may_leave(ssn: Session, job: int) -> Callable[[int], bool]:
    return let_through(ssn, job, points.reclaim_victims)
