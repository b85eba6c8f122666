"""preempt: jobs take the place of others of less priority in their queue. Source: KAI preempt."""

from __future__ import annotations

from collections.abc import Callable

from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.kai import points
from pumice.kai.engine.parts import Part
from pumice.kai.engine.search import search
from pumice.kai.engine.solve import Rules
from pumice.kai.reasons import NON_PREEMPTIBLE_OVER_QUOTA
from pumice.kai.victims import let_through


def preempt(ssn: Session) -> None:
    """A job may have jobs of strictly lower priority of its queue evicted."""
    search(ssn, Rules("preempt", _may_try, _of_queue, _may_leave, points.preempt_valid))


def _may_try(ssn: Session, part: Part) -> bool:
    """A job that is not preemptible must stay within its queue's quota."""
    jobs = ssn.tables.jobs
    if jobs.preemptible[part.job]:
        return True
    queue = Queue(ssn.tables, int(jobs.queue[part.job]))
    why: str | None = ssn.ask(points.may_take, queue, part.amount(ssn.tables), False)
    return why != NON_PREEMPTIBLE_OVER_QUOTA


def _of_queue(ssn: Session, job: int, queue: int) -> bool:
    return queue == int(ssn.tables.jobs.queue[job])


def _may_leave(ssn: Session, job: int) -> Callable[[int], bool]:
    priority = ssn.tables.jobs.priority
    own = int(priority[job])
    return let_through(ssn, job, points.preempt_victims, lambda row: int(priority[row]) < own)
