"""Jobs take turns in looking for victims. Source: KAI reclaim, preempt, consolidation."""

from __future__ import annotations

from pumice.framework.session import Session
from pumice.scenario.alike import Alike
from pumice.scenario.chunks import chunk_of
from pumice.scenario.contest import Waiting
from pumice.scenario.solve import Refuted, Rules, Solution, solve
from pumice.scenario.turns import Turns, waiting_jobs


def search(ssn: Session, rules: Rules) -> None:
    """Each waiting job once, the best one first; what makes room for one is committed before the next one asks."""
    rows = waiting_jobs(ssn)
    if not len(rows):
        return
    waiting, job_of = Waiting(ssn, rows), ssn.tables.tasks.job
    turns, alike = Turns(ssn, rows), Alike(ssn, rows)
    for job in turns:
        part = chunk_of(ssn, job)
        if part is None or alike.failed(job):
            turns.drop(job, alike.failed)
            continue
        with ssn.turn(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
            if not rules.may_try(ssn, part):
                alike.fails(job, "has no case")
            elif isinstance(found := solve(ssn, stmt, part, rules, waiting), Solution):
                stmt.commit()
                alike.forget()
                alike.placed(job)
                waiting.changed({job, *job_of[list(found.evicted)].tolist()})
            else:
                alike.fails(job, "nobody may leave for it", alike=found is Refuted.WITHOUT_A_TRY)
        turns.drop(job, alike.failed)
    alike.tell()
