"""Jobs take turns in looking for victims. Source: KAI reclaim, preempt, consolidation."""

from __future__ import annotations

from pumice.columns.counting import ACTIVE
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.kai.engine.budget import tries
from pumice.kai.engine.counters import Tally, tally
from pumice.kai.engine.equivalence import Alike
from pumice.kai.engine.job_order import Standing
from pumice.kai.engine.parts import active_count
from pumice.kai.engine.replacement import Waiting
from pumice.kai.engine.single_task import Following
from pumice.kai.engine.solve import Refuted, Rules, Solution
from pumice.kai.engine.tree_order import Turns, queue_tree, waiting_jobs
from pumice.model.blockers import NoCase, NoVictims


def search(ssn: Session, rules: Rules) -> None:
    """Each waiting job once, the best one first; what makes room for one is committed before the next one asks."""
    rows = waiting_jobs(ssn)
    if not len(rows):
        return
    waiting, job_of = Waiting(ssn, rows), ssn.tables.tasks.job
    standing = Standing(ssn, preemptible_jobs(ssn))
    turns, alike = Turns(ssn, rows), Alike(ssn, rows)
    following, allowed = Following(ssn, rules, waiting, standing), tries(ssn)
    for job, part in turns:
        if part is None or alike.failed(job):
            turns.drop(job, alike.leading)
            continue
        tally(ssn, Tally.TRIED)
        allowed.begin(part)
        with ssn.turn(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
            if not rules.may_try(ssn, part):
                alike.fails(job, NoCase())
            elif isinstance(found := following.solve(stmt, part), Solution):
                stmt.commit()
                alike.forget()
                alike.placed(job)
                tally(ssn, Tally.PLACED)
                changed = {job, *job_of[list(found.evicted)].tolist()}
                waiting.changed(changed)
                standing.put(changed, there=[each for each in changed if may_be_victim(ssn, each)])
            else:
                alike.fails(job, NoVictims(), alike=found is Refuted.WITHOUT_A_TRY)
                allowed.failed()
        turns.drop(job, alike.leading)
    alike.tell()


def preemptible_jobs(ssn: Session) -> AnyArray:
    """Rows of jobs that may be evicted and have something to give."""
    jobs = ssn.tables.jobs
    found = jobs.alive & jobs.preemptible & (jobs.queue >= 0) & (jobs.counts @ ACTIVE > 0)
    rows: AnyArray = (found & queue_tree(ssn).leaf[jobs.queue]).nonzero()[0]
    return rows


def may_be_victim(ssn: Session, job: int) -> bool:
    """Whether one is of these."""
    jobs = ssn.tables.jobs
    return bool(jobs.preemptible[job]) and active_count(jobs.counts[job].tolist()) > 0
