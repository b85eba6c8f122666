"""reclaim: jobs take back what is theirs from other queues. Source: KAI reclaim."""

from __future__ import annotations

from pumice.columns.dtypes import AnyArray
from pumice.columns.views import Job
from pumice.framework.session import Session
from pumice.kai import points
from pumice.kai.victims import let_through, preemptible
from pumice.scenario.parts import Part, amount_of
from pumice.scenario.search import search
from pumice.scenario.solve import Rules


def reclaim(ssn: Session) -> None:
    """Whoever stays within its fair share may have others evicted that hold more than theirs."""
    search(ssn, Rules("reclaim", _may_try, _candidates, points.reclaim_valid))


def _may_try(ssn: Session, part: Part) -> bool:
    return bool(ssn.ask(points.may_reclaim, Job(ssn.tables, part.job), amount_of(ssn.tables, part.rows)))


def _candidates(ssn: Session, job: int) -> AnyArray:
    queue = ssn.tables.jobs.queue
    return let_through(ssn, job, preemptible(ssn, job) & (queue != queue[job]), points.reclaim_victims)
