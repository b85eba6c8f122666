"""allocate: jobs take turns, each is offered a chunk on what is idle or about to be. Source: KAI allocate."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.kai.engine.budget import tries
from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.counters import Tally, tally
from pumice.kai.engine.equivalence import Alike
from pumice.kai.engine.parts import Part
from pumice.kai.engine.place_part import placer
from pumice.kai.engine.tree_order import Turns, waiting_jobs


def allocate(ssn: Session, *, promisedFirst: bool = True) -> None:
    """A gang is placed whole, then an elastic job grows by one task at a time, each growth in turn with all others. A
    job that fails is not tried again; others only take room, so neither are those like it.

    ``promisedFirst``: before all others, jobs for which others were evicted in an earlier cycle (decision 0017).
    """
    rows = waiting_jobs(ssn)
    if promisedFirst:
        promised = np.intersect1d(rows, ssn.tables.tasks.nominated_jobs())
        failed = _keep_promises(ssn, promised) if len(promised) else []
        rows = rows[~np.isin(rows, failed)] if failed else rows
    _take_turns(ssn, rows, grow=True)


def _keep_promises(ssn: Session, rows: AnyArray) -> list[int]:
    """A turn for each job, to which tasks go where they were promised a place. The jobs that failed."""
    placer(ssn).as_promised = True
    try:
        return _take_turns(ssn, rows, grow=False)
    finally:
        placer(ssn).as_promised = False


def _take_turns(ssn: Session, rows: AnyArray, *, grow: bool) -> list[int]:
    """A turn for each job, and further ones for those that ``grow``. The jobs that failed."""
    turns, alike, allowed = Turns(ssn, rows), Alike(ssn, rows), tries(ssn)
    failed: list[int] = []
    for job, part in turns:
        if part is None or alike.failed(job):
            turns.drop(job, alike.leading)
            failed.append(job)
            continue
        tally(ssn, Tally.TRIED)
        allowed.begin(part)
        with ssn.turn(ssn.tables.jobs.uids[job]):
            refused = _allocate(ssn, part)
            if refused is not None:
                alike.placed(job)
                tally(ssn, Tally.PLACED)
                if grow and not refused and chunk_of(ssn, job) is not None:
                    turns.push(job)
            else:
                alike.fails(job, placer(ssn).why, alike=not allowed.cut)
                allowed.failed()
                turns.drop(job, alike.leading)
                failed.append(job)
    alike.tell()
    return failed


def _allocate(ssn: Session, part: Part) -> list[str] | None:
    """Place and commit a chunk: the pods whose binding was refused; None where it found no place. Whoever is refused
    is not tried again in this cycle."""
    with ssn.statement() as stmt:
        return stmt.commit() if placer(ssn).place(stmt, part) else None
