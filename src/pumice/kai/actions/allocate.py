"""allocate: jobs take turns, each is offered a chunk on what is idle or about to be. Source: KAI allocate."""

from __future__ import annotations

from pumice.framework.session import Session
from pumice.scenario.alike import Alike
from pumice.scenario.chunks import chunk_of
from pumice.scenario.parts import Part
from pumice.scenario.placing import placer
from pumice.scenario.turns import Turns, waiting_jobs


def allocate(ssn: Session) -> None:
    """A gang is placed whole, then an elastic job grows by one task at a time, each growth in turn with all others. A
    job that fails is not tried again; others only take room, so neither are those like it."""
    rows = waiting_jobs(ssn)
    turns, alike = Turns(ssn, rows), Alike(ssn, rows)
    for job, part in turns:
        if part is None or alike.failed(job):
            turns.drop(job, alike.leading)
            continue
        with ssn.turn(ssn.tables.jobs.uids[job]):
            refused = _allocate(ssn, part)
            if refused is not None:
                alike.placed(job)
                if not refused and chunk_of(ssn, job) is not None:
                    turns.push(job)
            else:
                alike.fails(job, placer(ssn).why)
                turns.drop(job, alike.leading)
    alike.tell()


def _allocate(ssn: Session, part: Part) -> list[str] | None:
    """Place and commit a chunk: the pods whose binding was refused; None where it found no place. Whoever is refused
    is not tried again in this cycle."""
    with ssn.statement() as stmt:
        return stmt.commit() if placer(ssn).place(stmt, part) else None
