"""reserve: keep room for the job that has waited longest, at the earliest moment at which it fits by estimates.

Others may start before it if they end before that moment, or take places that it leaves over. Source: EASY backfilling
(Lifka, The ANL/IBM SP Scheduling System, 1995).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pumice.api import (
    I64,
    ROWS,
    AnyArray,
    Job,
    JobRows,
    Queue,
    Session,
    TaskRows,
    TaskRun,
    Unfit,
    plugin,
    points,
)
from pumice.model.blockers import RoomReserved
from pumice.ours.reservation_findings import ReservationFindings
from pumice.ours.reservation_plan import PLANS_MAX, Plan
from pumice.ours.time_arguments import seconds_of, wrong_seconds

NAME = "reserve"


@plugin(NAME)
class Reserve:
    """Keep room for one job.

    ``after``: only a job that has waited for so long gets a reservation (0s: the oldest one always, as in EASY).
    ``holdsUpTo``: for how long after that room is kept for it at most. ``withoutEstimate``: estimate of jobs that have
    none. ``grace``: for how long after its estimate a job may take to end. ``trustsFor``: for how long after the start
    that was said first others may still start before the job because of their estimates. ``backfill`` False: no job
    starts before the reserved one (with ``after: 0s`` that is first come, first served). Jobs with a topology or
    sub-groups get no reservation yet.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        after: str = "96h",
        holdsUpTo: str = "10d",
        withoutEstimate: str = "24h",
        grace: str = "0s",
        trustsFor: str = "24h",
        backfill: bool = True,
    ) -> None:
        self.ssn, self.after = ssn, seconds_of(after)
        plan = Plan(
            ssn,
            after_s=self.after,
            holds_s=seconds_of(holdsUpTo),
            unknown_s=seconds_of(withoutEstimate),
            grace_s=seconds_of(grace),
            trusts_s=seconds_of(trustsFor),
            backfill=backfill,
        )
        self.reservation, self.reserved_job, self.is_firm = plan.reservation, plan.reserved_job, plan.is_firm
        found = ReservationFindings(plan)
        for job, finding in found.of_jobs.items():
            ssn.trace.tell(job, finding)
        ssn.notes |= found.notes
        # Columns, so that what is kept from cycle to cycle is dropped when the plan changes.
        self.rank = ssn.column(f"{NAME}.rank", "job", values=plan.rank)
        self.late = ssn.column(f"{NAME}.late", "job", values=plan.late)
        self.lost = ssn.column(f"{NAME}.lost", "class", values=plan.lost)
        spare = -1.0 if self.reservation is None else float(self.reservation.spare)
        self.spare = ssn.column(f"{NAME}.spare", values=np.array([spare]))
        # What the refusals name, so that none is repeated after it has become wrong.
        self.named = ssn.column(f"{NAME}.named", values=plan.as_numbers())
        # Without a reservation nothing is asked, so that equal jobs share their failures.
        self.unused_points = (points.allocatable, points.on_allocate) if self.reservation is None else ()

    @staticmethod
    def problems(
        *, after: str, holdsUpTo: str, withoutEstimate: str, grace: str, trustsFor: str, backfill: bool
    ) -> Iterator[str]:
        yield from wrong_seconds("after", after, least=0)
        yield from wrong_seconds("holdsUpTo", holdsUpTo)
        yield from wrong_seconds("withoutEstimate", withoutEstimate)
        yield from wrong_seconds("grace", grace, least=0)
        yield from wrong_seconds("trustsFor", trustsFor, least=0)

    def figures(self) -> Mapping[str, AnyArray]:
        """Return the reservation for metrics and reports: its start, the row of its job (-1 for none), and the places
        that others may take. No start is named in the cycle in which jobs before it start as well, because where these
        go is not decided yet."""
        kept = self.reservation
        return {
            "reserve.start": np.array([kept.start if kept is not None and self.is_firm else np.nan]),
            "reserve.job": np.array([self.reserved_job]),
            "reserve.spare": self.spare.array,
        }

    def wakes_at(self) -> float | None:
        """Return when the reservation begins, or the next waiting job may get one."""
        jobs, rows, now = self.ssn.tables.jobs, self.ssn.live_jobs, self.ssn.now
        due = jobs.creation[rows[jobs.waits[rows] > 0]] + self.after
        start = np.inf if self.reservation is None else self.reservation.start
        due = np.append(due, start)
        due = due[(due > now) & np.isfinite(due)]
        return float(due.min()) if len(due) else None

    @points.job_order(reads=(ROWS, f"{NAME}.rank"))
    def job_order(self, jobs: JobRows) -> I64:
        """Return the order key: planned jobs first, in the order of the plan. Shape (rows,)."""
        rank = self.rank.array[jobs.rows].astype(np.int64)
        return np.where(rank > 0, rank, PLANS_MAX + 1)

    @points.allocatable(reads=(ROWS, *(f"{NAME}.{name}" for name in ("late", "lost", "spare", "named"))))
    def allocatable(self, queue: Queue, tasks: TaskRows) -> int | Unfit:
        """Return how many of the tasks leave the reserved job its room."""
        kept, job, tables = self.reservation, int(tasks.job[0]), self.ssn.tables
        if kept is None or not self.late.array[job]:
            return len(tasks)
        each = self.lost.array[tables.tasks.cls[tasks.rows]]
        if not each.any():
            return len(tasks)
        spare = float(self.spare.array[0])
        jobs = tables.jobs
        missing = int(jobs.min_available[job]) - Job(tables, job).held_count
        # Asked about the whole minimum at once: a gang that gets only a part of it would be placed in vain.
        if each[0] * max(missing, 1) > spare and (each == each[0]).all():
            return Unfit(f"room is reserved for {kept.job}", blocker=RoomReserved(kept.job, kept.start))
        # Pods that differ, or that go beyond the minimum: as many as the spared places allow, in order.
        return int((np.cumsum(each) <= spare).sum())

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        """Count the places that late jobs take."""
        job = int(self.ssn.tables.tasks.job[run.rows[0]])
        # Through the journal, so that an attempt that fails gives its places back.
        if job < 0 or self.late.array[job]:
            taken = float(self.lost.array[self.ssn.tables.tasks.cls[list(run.rows)]].sum())
            self.ssn.journal.add(self.spare, 0, -taken)
