"""reclaim: evict jobs of queues above their fair share for jobs of queues below theirs. Source: KAI reclaim action."""

from __future__ import annotations

from collections.abc import Callable

from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.kai import points
from pumice.kai.engine.budget import STEPS_MAX
from pumice.kai.engine.parts import Part
from pumice.kai.engine.search import search
from pumice.kai.engine.solve import Rules
from pumice.kai.victims import let_through


def reclaim(ssn: Session, *, maxSearchSteps: int = STEPS_MAX) -> None:
    """Search victims in other queues for each pending job whose queue stays within its fair share.

    ``maxSearchSteps``: counted steps in a cycle, shared out over queues and namespaces; 0 for no limit.
    """
    asks = (points.may_reclaim, points.reclaim_victims, points.reclaim_valid)
    search(ssn, Rules("reclaim", _may_try, _of_queue, _may_leave, points.reclaim_valid, asks), maxSearchSteps)


def _may_try(ssn: Session, part: Part) -> bool:
    """Return True if plugins allow the job to reclaim."""
    # Asked before the search, which is what costs: a queue that would exceed its share may take from no victim.
    return bool(ssn.ask(points.may_reclaim, Job(ssn.tables, part.job), part.amount(ssn.tables)))


def _of_queue(ssn: Session, job: int, queue: int) -> bool:
    """Return True if a queue is not the job's own queue."""
    return queue != int(ssn.tables.jobs.queue[job])


def _may_leave(ssn: Session, job: int) -> Callable[[int], bool]:
    """Return a test that is True for jobs that may be evicted for a job."""
    return let_through(ssn, job, points.reclaim_victims)
