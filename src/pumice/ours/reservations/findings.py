"""What a cycle says of reserved starts: the start, why it is later than was said, or that it is no longer reserved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pumice.model.blockers import AHEAD, NO_PLACE, REPLANNED, TOO_LONG, MovedBy, StartReserved
from pumice.ours.reservations.delay import LATER_S, SaidStart, notes_of
from pumice.ours.reservations.plan import Kept, Plan


class ReservationFindings:
    """``of_jobs``: by key of the job. ``notes``: what the next cycle has to know."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        before = plan.said
        self.of_jobs = dict(self._ended(before))
        said = {job: each for job, each in before.items() if job not in self.of_jobs and self._still_waits(job)}
        # Otherwise jobs before them start in this cycle, and where they go is not decided yet: nothing is said.
        if plan.is_firm:
            for kept in plan.kept:
                said[kept.reservation.job] = self._reserved(kept, before.get(kept.reservation.job))
        self.notes = notes_of(said, before)

    def _reserved(self, kept: Kept, was: SaidStart | None) -> SaidStart:
        """Take in the start that is reserved for a job in this cycle, and return it for the next."""
        plan, found = self._plan, kept.reservation
        start, now, places = found.start, plan.ssn.now, plan.places_when_empty(kept)
        if was is not None and start > was.start + LATER_S:
            causes = plan.delays(kept, was)
            self.of_jobs[found.job] = StartReserved(start, found.basis, was.first, was.start, causes)
            return SaidStart(start, now, was.first, places)
        first = start if was is None else was.first
        self.of_jobs[found.job] = StartReserved(start, found.basis, first)
        # Unchanged as long as the start is: a note that changes each cycle would be a change of the snapshot.
        is_same = was is not None and abs(start - was.start) <= LATER_S
        return was if was is not None and is_same else SaidStart(start, now, first, places)

    def _ended(self, before: Mapping[str, SaidStart]) -> Iterator[tuple[str, StartReserved]]:
        """Yield jobs that wait on without the room that was reserved for them."""
        plan, kept = self._plan, self._plan.kept
        # Of a job that has started or is gone nothing is said: its notes end because it is not kept.
        for job, said in before.items():
            row = self._row_of(job)
            # A job that is planned for this cycle starts, or is looked at again in the next.
            if row is None or not plan.is_waiting(row) or plan.rank[row] > 0:
                continue
            # The policy's own bound is named first: it holds whatever else is true.
            if self._is_too_old(row):
                cause = MovedBy(TOO_LONG)
            elif row in plan.given_up:
                cause = MovedBy(NO_PLACE)
            elif kept:
                cause = MovedBy(AHEAD, kept[-1].reservation.job)
            else:
                cause = MovedBy(REPLANNED)
            yield job, StartReserved(None, (), said.first, said.start, (cause,))

    def _row_of(self, key: str) -> int | None:
        """Return the row of a job, None if it is not there."""
        ssn = self._plan.ssn
        return next((row for row in ssn.live_jobs.tolist() if ssn.tables.jobs.uids[row] == key), None)

    def _is_too_old(self, job: int) -> bool:
        """Return True if room has been kept for a job for as long as is allowed."""
        plan = self._plan
        return plan.ssn.now - float(plan.ssn.tables.jobs.creation[job]) > plan.after_s + plan.holds_s

    def _still_waits(self, job: str) -> bool:
        row = self._row_of(job)
        return row is not None and self._plan.is_waiting(row)
