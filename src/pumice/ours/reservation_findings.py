"""What a cycle says of reserved starts: the start, why it is later than was said, or that it is no longer reserved."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.model.blockers import AHEAD, REPLANNED, TOO_LONG, MovedBy, StartReserved
from pumice.ours.reservation_delay import LATER_S, SaidStart, notes_of, said_starts
from pumice.ours.reservation_plan import Plan


class ReservationFindings:
    """``of_jobs``: by key of the job. ``notes``: what the next cycle has to know."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        before = said_starts(plan.ssn.snapshot.notes)
        self.of_jobs = dict(self._ended(before))
        said = {job: each for job, each in before.items() if job not in self.of_jobs and self._still_waits(job)}
        # Otherwise jobs before it start in this cycle, and where they go is not decided yet: nothing is said.
        if plan.is_firm:
            said |= self._reserved(before)
        self.notes = notes_of(said, before)

    def _reserved(self, before: dict[str, SaidStart]) -> dict[str, SaidStart]:
        """Take in the start that is reserved in this cycle, and return it for the next."""
        plan, kept = self._plan, self._plan.reservation
        assert kept is not None and plan.reserved is not None, "firm without a reservation"
        start, now, was = kept.start, plan.ssn.now, before.get(kept.job)
        places = plan.places_when_empty(plan.reserved[1][0])
        if was is not None and start > was.start + LATER_S:
            causes = plan.delays(was)
            self.of_jobs[kept.job] = StartReserved(start, kept.basis, was.first, was.start, causes)
            return {kept.job: SaidStart(start, now, was.first, places)}
        first = start if was is None else was.first
        self.of_jobs[kept.job] = StartReserved(start, kept.basis, first)
        # Unchanged as long as the start is: a note that changes each cycle would be a change of the snapshot.
        is_same = was is not None and abs(start - was.start) <= LATER_S
        return {kept.job: was if was is not None and is_same else SaidStart(start, now, first, places)}

    def _ended(self, before: dict[str, SaidStart]) -> Iterator[tuple[str, StartReserved]]:
        """Yield jobs that wait on without the room that was reserved for them."""
        plan, kept = self._plan, self._plan.reservation
        # Of a job that has started or is gone nothing is said: its notes end because it is not kept.
        for job, said in before.items():
            row = plan.row_of(job)
            # A job that is planned for this cycle starts, or is looked at again in the next.
            if row is None or not plan.is_waiting(row) or plan.rank[row] > 0:
                continue
            if plan.is_too_old(row):
                cause = MovedBy(TOO_LONG)
            elif kept is not None:
                cause = MovedBy(AHEAD, kept.job)
            else:
                cause = MovedBy(REPLANNED)
            yield job, StartReserved(None, (), said.first, said.start, (cause,))

    def _still_waits(self, job: str) -> bool:
        row = self._plan.row_of(job)
        return row is not None and self._plan.is_waiting(row)
