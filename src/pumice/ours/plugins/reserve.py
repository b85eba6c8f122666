"""reserve: keep room for the jobs that have waited longest, at the earliest moments at which they fit by estimates.

Others may start before them if they end before that moment, or take places that they leave over. Source: EASY
backfilling (Lifka, The ANL/IBM SP Scheduling System, 1995) for one job; conservative backfilling (Mu'alem and
Feitelson, 2001), up to a bound, for several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pumice.algorithms.groups import distinct, nth_of_its_group
from pumice.api import (
    I64,
    ROWS,
    AnyArray,
    FilterResult,
    Job,
    JobRows,
    NodeRows,
    Queue,
    Session,
    Task,
    TaskRows,
    TaskRun,
    Unfit,
    plugin,
    points,
)
from pumice.model.blockers import RoomReserved
from pumice.ours.reservations.delay import JOBS_MAX, notes_of_due
from pumice.ours.reservations.findings import ReservationFindings
from pumice.ours.reservations.plan import PLANS_MAX, Plan
from pumice.ours.time_arguments import seconds_of, wrong_seconds

NAME = "reserve"


@plugin(NAME)
class Reserve:
    """Keep room for jobs that have waited for long.

    ``reservations``: for so many jobs at most. With 1 this one may move all others back; with more each of them keeps
    the start that was said. ``after``: only a job that has waited for so long gets a reservation (0s: the oldest one
    always, as in EASY). ``holdsUpTo``: for how long after that room is kept for it at most; if the job is not placed
    although its room is free, only for as long as its estimate. ``withoutEstimate``: estimate of jobs that have none.
    ``grace``: for how long after its estimate a job may take to end. ``trustsFor``: for how long after the start that
    was said first others may still start before the job because of their estimates. ``backfill`` False: no job starts
    before the reserved one (with ``after: 0s`` that is first come, first served). For a gang with a hard topology room
    is kept within one domain, for equal sub-groups each in one. Jobs of which unlike sub-groups must each be within a
    domain get no reservation.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        reservations: int = 1,
        after: str = "96h",
        holdsUpTo: str = "10d",
        withoutEstimate: str = "24h",
        grace: str = "0s",
        trustsFor: str = "24h",
        backfill: bool = True,
    ) -> None:
        self.ssn, self.after = ssn, seconds_of(after)
        plan = self.plan = Plan(
            ssn,
            most=reservations,
            after_s=self.after,
            holds_s=seconds_of(holdsUpTo),
            unknown_s=seconds_of(withoutEstimate),
            grace_s=seconds_of(grace),
            trusts_s=seconds_of(trustsFor),
            backfill=backfill,
        )
        self.kept, self.claims, self.is_firm = plan.kept, plan.claims, plan.is_firm
        found = ReservationFindings(plan)
        for job, finding in found.of_jobs.items():
            ssn.trace.tell(job, finding)
        ssn.notes |= found.notes
        # Columns, so that what is kept from cycle to cycle is dropped when the plan changes.
        self.rank = ssn.column(f"{NAME}.rank", "job", values=plan.rank)
        self.late = ssn.column(f"{NAME}.late", "job", values=plan.late)
        self.lost = ssn.column(f"{NAME}.lost", "class", values=plan.lost())
        self.spare = ssn.column(f"{NAME}.spare", values=np.array([float(claim.spare) for claim in plan.claims]))
        # No code reads this column. It makes answers rest on what is planned for the jobs that start.
        ssn.column(f"{NAME}.starts", "job", values=plan.starting_as_numbers())
        planned = [(row, demand) for row, demands in plan.starting.items() for demand in demands]
        # Pods that the plan counts as placed and that have no node yet, of each job and each kind.
        self.left = ssn.column(f"{NAME}.left", values=np.array([float(demand.pods) for _, demand in planned]))
        self.kinds: dict[int, dict[int, int]] = {row: {} for row in plan.starting}
        for number, (row, demand) in enumerate(planned):
            self.kinds[row] |= dict.fromkeys(demand.classes, number)
        # Claims in a domain keep late pods off its nodes; others are counted wherever a pod goes.
        self.domains = [claim.within for claim in plan.claims]
        self.in_domain = np.array([within is not None for within in self.domains], dtype=bool)
        self.claimed_by = np.array([claim.kept.job for claim in plan.claims], dtype=np.int64)
        # What the refusals name, so that none is repeated after it has become wrong.
        self.named = ssn.column(f"{NAME}.named", values=plan.as_numbers())
        # Without a reservation nothing is asked, so that equal jobs share their failures.
        self.unused_points = () if self.claims else (points.allocatable, points.on_allocate)
        if all(within is None for within in (*self.domains, *map(plan.within, plan.starting))):
            self.unused_points = (*self.unused_points, points.predicate)

    @staticmethod
    def problems(
        *,
        reservations: int,
        after: str,
        holdsUpTo: str,
        withoutEstimate: str,
        grace: str,
        trustsFor: str,
        backfill: bool,
    ) -> Iterator[str]:
        if not 1 <= reservations <= JOBS_MAX:
            yield f"argument reservations: found {reservations}, wanted 1 to {JOBS_MAX}"
        yield from wrong_seconds("after", after, least=0)
        yield from wrong_seconds("holdsUpTo", holdsUpTo)
        yield from wrong_seconds("withoutEstimate", withoutEstimate)
        yield from wrong_seconds("grace", grace, least=0)
        yield from wrong_seconds("trustsFor", trustsFor, least=0)

    def figures(self) -> Mapping[str, AnyArray]:
        """Return the reservations for metrics and reports: their starts, the rows of their jobs (one of -1 for none),
        and the places that others may take. No start is named in the cycle in which jobs before them start as well,
        because where these go is not decided yet."""
        kept = self.kept
        starts = [each.reservation.start if self.is_firm else np.nan for each in kept]
        return {
            "reserve.start": np.array(starts or [np.nan]),
            "reserve.job": np.array([each.job for each in kept] or [-1]),
            "reserve.spare": self.spare.array if kept else np.array([-1.0]),
        }

    def wakes_at(self) -> float | None:
        """Return when a reservation begins, or the next waiting job may get one."""
        jobs, rows, now = self.ssn.tables.jobs, self.ssn.live_jobs, self.ssn.now
        due = jobs.creation[rows[jobs.waits[rows] > 0]] + self.after
        due = np.append(due, [*(each.reservation.start for each in self.kept), *self._kept_until()])
        due = due[(due > now) & np.isfinite(due)]
        return float(due.min()) if len(due) else None

    @points.session_close
    def note_due(self) -> None:
        """Note since when jobs have found no place although their room is free."""
        uids = self.ssn.tables.jobs.uids
        due = {uids[job]: since for job, since in self.plan.due().items()}
        self.ssn.notes |= notes_of_due(due, self.plan.due_before)

    @points.job_order(reads=(ROWS, f"{NAME}.rank"))
    def job_order(self, jobs: JobRows) -> I64:
        """Return the order key: planned jobs first, in the order of the plan. Shape (rows,)."""
        rank = self.rank.array[jobs.rows].astype(np.int64)
        return np.where(rank > 0, rank, PLANS_MAX + 1)

    @points.allocatable(
        reads=(ROWS, *(f"{NAME}.{name}" for name in ("late", "lost", "spare", "named", "starts", "left")))
    )
    def allocatable(self, queue: Queue, tasks: TaskRows) -> int | Unfit:
        """Return how many of the tasks leave the reserved jobs their room."""
        job = int(tasks.job[0])
        # The filter lets the minimum of a job that starts into all domains, so pods beyond it are counted here.
        starts = job in self.kinds
        claims = self._all_binding(job) if starts else self._binding(job, in_domains=False)
        classes = self.ssn.tables.tasks.cls[tasks.rows]
        is_one = bool((classes == classes[0]).all())
        # One row for equal pods: a gang may have thousands of them, and there are up to 64 claims.
        each = self.lost.array[classes[:1] if is_one else classes][:, claims]
        if not each.any():
            return len(tasks)
        spare, missing = self.spare.array[claims], self._missing(job)
        planned = np.zeros(len(tasks), dtype=bool)
        if starts:
            # The plan is without the minimum of a job that starts now, and pods beyond it are late as others are.
            planned, missing = self._planned_kinds(job, classes) >= 0, 0
        first, free = each[0], int(planned.sum())
        if is_one:
            are_equal, first = free in (0, len(tasks)), first * (not free)
        else:
            each[planned] = 0.0
            are_equal = bool((each == first).all())
        # Asked about the whole minimum at once: a gang that gets only a part of it would be placed in vain.
        short = first * max(missing, 1) > spare
        if short.any() and are_equal:
            return self._refusal(int(claims[short.argmax()]))
        # Pods that differ, or that go beyond the minimum: as many as the spared places allow, in order.
        if (spare < 0).any():
            return 0
        if is_one:
            takes = each[0] > 0
            return min(len(tasks), free + int((spare[takes] // each[0][takes]).min()))
        return int((np.cumsum(each, axis=0) <= spare).all(axis=1).sum())

    @points.predicate(
        reads=(ROWS, *(f"{NAME}.{name}" for name in ("late", "lost", "spare", "named", "starts", "left")))
    )
    def predicate(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Reject the nodes of domains in which no place is left to spare. Shape (rows,)."""
        tasks = self.ssn.tables.tasks
        job = int(tasks.job[task.row])
        if job in self.kinds:
            return self._beyond_plan(job, int(tasks.cls[task.row]), nodes)
        claims = self._binding(job, in_domains=True)
        lost, spare = self.lost.array[tasks.cls[task.row]], self.spare.array
        codes, why = np.zeros(len(nodes.rows), dtype=np.int32), list[tuple[Unfit, ...]]([()])
        for claim in claims[lost[claims] > spare[claims]].tolist():
            within = self.domains[claim]
            assert within is not None, "a claim in no domain"
            # Of several claims on a node the one that begins first is named.
            is_new = within[nodes.rows] & (codes == 0)
            if is_new.any():
                codes[is_new] = len(why)
                why.append((self._refusal(claim),))
        return FilterResult(codes, tuple(why)) if len(why) > 1 else None

    def _beyond_plan(self, job: int, cls: int, nodes: NodeRows) -> FilterResult | None:
        """Reject the nodes outside the domain in which a job is to start, if the job would take places of others
        there. Shape (rows,)."""
        within = self.plan.within(job)
        # Most jobs may be anywhere, and the plan counts on no node for them.
        if within is None or within[nodes.rows].all():
            return None
        claims = self._all_binding(job)
        # All of it at once, since all of it goes to the domain of its first pod.
        each = {number: self.lost.array[of][claims] * self.left.array[number] for of, number in self.kinds[job].items()}
        short = np.maximum(sum(each.values()), self.lost.array[cls][claims]) > self.spare.array[claims]
        if not short.any():
            return None
        return FilterResult.of(within[nodes.rows], self._refusal(int(claims[short.argmax()])))

    def _refusal(self, claim: int) -> Unfit:
        """Return that a claim refuses a pod."""
        kept = self.claims[claim].kept.reservation
        return Unfit(f"room is reserved for {kept.job}", blocker=RoomReserved(kept.job, kept.start))

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        """Count the places that late jobs take."""
        tasks, job = self.ssn.tables.tasks, int(self.ssn.tables.tasks.job[run.rows[0]])
        claims = self._all_binding(job)
        if len(claims):
            rows, nodes = np.array(run.rows), np.array(run.nodes)
            if job in self.kinds:
                kinds, within = self._planned_kinds(job, tasks.cls[rows]), self.plan.within(job)
                placed = np.bincount(kinds[kinds >= 0], minlength=len(self.left.array))
                self.ssn.journal.add(self.left, placed.nonzero()[0], -placed[placed > 0])
                # A job that went to another domain than planned has taken what is to spare there.
                if within is None or within[nodes[0]]:
                    rows, nodes = rows[kinds < 0], nodes[kinds < 0]
            # By class: a gang may have thousands of pods, and there are up to 64 claims.
            taken = np.zeros(len(claims))
            classes = tasks.cls[rows]
            for cls in distinct(classes).tolist():
                lost, of_class = self.lost.array[cls][claims], classes == cls
                counts = [
                    of_class.sum() if within is None else within[nodes][of_class].sum()
                    for within in (self.domains[claim] for claim in claims.tolist())
                ]
                taken += lost * counts
            # Through the journal, so that an attempt that fails gives its places back.
            self.ssn.journal.add(self.spare, claims, -taken)

    def _kept_until(self) -> list[float]:
        """Return until when the room is kept of each job that has found no place in it."""
        plan = self.plan
        return [since + plan.running.estimate(job) for job, since in plan.due().items() if job not in plan.given_up]

    def _missing(self, job: int) -> int:
        """Return how many pods a job has to get until it has its minimum, below 0 for pods beyond it."""
        tables = self.ssn.tables
        return int(tables.jobs.min_available[job]) - Job(tables, job).held_count

    def _planned_kinds(self, job: int, classes: AnyArray) -> I64:
        """Return of some tasks of a job that starts now the kind of which each is one, for as many as the plan counts
        as placed and are left, -1 for others. ``classes`` and result: shape (tasks,)."""
        known = distinct(classes)
        kinds = np.array([self.kinds[job].get(cls, -1) for cls in known.tolist()], dtype=np.int64)
        found = kinds[np.searchsorted(known, classes)]
        # Pods of one kind in the place of another would take places that the plan has given away.
        return np.where(nth_of_its_group(found) < self.left.array[found], found, -1)

    def _all_binding(self, job: int) -> I64:
        """Return all claims whose places a job has to leave, those in no domain first."""
        return np.concatenate([self._binding(job, in_domains=each) for each in (False, True)])

    def _binding(self, job: int, *, in_domains: bool) -> I64:
        """Return the claims whose places a job has to leave: those that begin before it ends, less its own; those in a
        domain, or the others."""
        # Of a pod without a job nothing says when it ends.
        first = len(self.claims) if job < 0 else int(self.late.array[job])
        found: I64 = ((self.claimed_by[:first] != job) & (self.in_domain[:first] == in_domains)).nonzero()[0]
        return found
