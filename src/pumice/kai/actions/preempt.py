"""preempt: evict jobs of lower priority in the same queue. Source: KAI preempt action."""

from __future__ import annotations

from collections.abc import Callable

from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.kai import points
from pumice.kai.engine.budget import STEPS_MAX
from pumice.kai.engine.parts import Part
from pumice.kai.engine.search import search
from pumice.kai.engine.solve import Rules
from pumice.kai.reasons import NON_PREEMPTIBLE_OVER_QUOTA
from pumice.kai.victims import let_through


def preempt(ssn: Session, *, maxSearchSteps: int = STEPS_MAX) -> None:
    """Search victims of strictly lower priority for each pending job.

    ``maxSearchSteps``: counted steps in a cycle, shared out over queues and namespaces; 0 for no limit.
    """
    asks = (points.preempt_victims, points.preempt_valid)
    search(ssn, Rules("preempt", _may_try, _of_queue, _may_leave, points.preempt_valid, asks), maxSearchSteps)


def _may_try(ssn: Session, part: Part) -> bool:
    """Return True unless a non-preemptible job would exceed the quota of its queue."""
    jobs = ssn.tables.jobs
    if jobs.preemptible[part.job]:
        return True
    queue = Queue(ssn.tables, int(jobs.queue[part.job]))
    why: str | None = ssn.ask(points.may_take, queue, part.amount(ssn.tables), False)
    # Evictions within the queue do not change its limit, so only the quota is checked here. The placement checks both.
    return why != NON_PREEMPTIBLE_OVER_QUOTA


def _of_queue(ssn: Session, job: int, queue: int) -> bool:
    """Return True if a queue is the job's own queue."""
    return queue == int(ssn.tables.jobs.queue[job])


def _may_leave(ssn: Session, job: int) -> Callable[[int], bool]:
    """Return a test that is True for jobs that may be evicted for a job."""
    priority = ssn.tables.jobs.priority
    own = int(priority[job])
    # Strictly lower: jobs of equal priority would evict each other cycle after cycle.
    return let_through(ssn, job, points.preempt_victims, lambda row: int(priority[row]) < own)
