"""Jobs take turns in looking for victims. Source: KAI reclaim, preempt, consolidation."""

from __future__ import annotations

from pumice.framework.session import Session
from pumice.scenario.chunks import chunk_of
from pumice.scenario.contest import Waiting
from pumice.scenario.solve import Rules, solve
from pumice.scenario.turns import Turns, waiting_jobs


def search(ssn: Session, rules: Rules) -> None:
    """Each waiting job once, the best one first; what makes room for one is committed before the next one asks."""
    rows = waiting_jobs(ssn)
    if not len(rows):
        return
    waiting, job_of = Waiting(ssn, rows), ssn.tables.tasks.job
    for job in Turns(ssn, rows):
        part = chunk_of(ssn, job)
        if part is None or not rules.may_try(ssn, part):
            continue
        with ssn.turn(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
            solution = solve(ssn, stmt, part, rules, waiting)
            if solution is not None:
                stmt.commit()
                waiting.changed({job, *job_of[list(solution.evicted)].tolist()})
