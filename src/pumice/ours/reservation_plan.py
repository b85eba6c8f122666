"""Which waiting job gets a reservation, from when on, and what others may take until then.

Source: EASY backfilling (Lifka, The ANL/IBM SP Scheduling System, 1995), by counts of places in place of processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.nodes import IDLE, RELEASING
from pumice.framework.cycle.session import Session
from pumice.model.blockers import OVERRUN, REPLANNED, ROOM, STARTED, MovedBy
from pumice.model.status import ALLOCATED_STATUSES, TaskStatus
from pumice.model.workloads.estimate import expected_end_s
from pumice.model.workloads.reservation import Reservation
from pumice.ours.reservation_delay import SaidStart, needed_of, said_starts
from pumice.ours.room_over_time import Demand, RoomOverTime, fits, places, places_lost
from pumice.placing.derived import derived
from pumice.placing.filters.nodes import stable_codes

#: Waiting jobs that are planned in one cycle at most. Those that fit at once come first and cost a plan each.
PLANS_MAX = 64
_HOLDING = sorted(ALLOCATED_STATUSES)


class Plan:
    """The reservation of a session, None for none.

    ``rank`` (J,): the place in the order of the planned jobs, 1 for the first, 0 for jobs without a plan. ``late``
    (J,): 1 for jobs that would end after the reservation begins. ``lost`` (C,): places of the reserved job that one pod
    of a class takes at most. ``reserved``: row of the reserved job, and what it needs.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        after_s: float,
        holds_s: float,
        unknown_s: float,
        grace_s: float,
        trusts_s: float,
        backfill: bool,
    ) -> None:
        self.ssn, self.after_s, self.holds_s, self.unknown_s = ssn, after_s, holds_s, unknown_s
        self._grace_s, self._trusts_s, self._backfill = grace_s, trusts_s, backfill
        jobs, classes = ssn.tables.jobs.capacity, ssn.tables.classes.capacity
        self.rank, self.late, self.lost = np.zeros(jobs), np.zeros(jobs), np.zeros(classes)
        self.reservation: Reservation | None = None
        self.reserved: tuple[int, list[Demand]] | None = None
        self._fill()

    @property
    def reserved_job(self) -> int:
        """The row of the job for which room is reserved, -1 for none."""
        return -1 if self.reserved is None else self.reserved[0]

    @property
    def is_firm(self) -> bool:
        """True if the start of the reservation rests on what runs alone. If jobs before it start in this cycle too,
        their nodes are not decided yet."""
        return self.reservation is not None and int((self.rank > 0).sum()) == 1

    def as_numbers(self) -> F64:
        """Return the job and the start of the reservation as numbers, none for none."""
        kept = self.reservation
        return np.array([] if kept is None else [kept.start, *kept.job.encode()], dtype=np.float64)

    def _candidates(self) -> AnyArray:
        """Return waiting jobs that may get a reservation, oldest first."""
        jobs, rows = self.ssn.tables.jobs, self.ssn.live_jobs
        waited = self.ssn.now - jobs.creation[rows]
        # Bounded: a job that never starts, for whatever reason, must not keep nodes idle for ever.
        old = (waited >= self.after_s) & (waited <= self.after_s + self.holds_s)
        waits = (jobs.waits[rows] > 0) & (jobs.counts[rows][:, _HOLDING].sum(axis=1) == 0)
        plain = ~jobs.has_topology[rows] & ~jobs.has_policy[rows] & ~jobs.quarantined[rows]
        rows = rows[old & waits & plain & (jobs.phase[rows] != PENDING_PHASE) & (jobs.gated[rows] == 0)]
        created = jobs.creation[rows]
        # Texts are slow to compare, so only jobs that can be among the oldest are sorted by name.
        if len(rows) > PLANS_MAX:
            rows = rows[created <= np.partition(created, PLANS_MAX - 1)[PLANS_MAX - 1]]
        oldest = sorted(rows.tolist(), key=lambda job: (jobs.creation[job], jobs.uids[job]))[:PLANS_MAX]
        return np.array(oldest, dtype=np.int64)

    def _fill(self) -> None:
        """Find the first job that does not fit now, once those before it have started, and reserve room for it."""
        jobs, now, candidates = self.ssn.tables.jobs, self.ssn.now, self._candidates().tolist()
        # Most cycles have no candidate, and need no profile.
        if not candidates:
            return
        room = self._room(self._ends)
        for i, job in enumerate(candidates):
            demands = self._demands(job)
            start = room.earliest(demands, now)
            # One that never fits keeps nothing, and the next one is planned.
            if not np.isfinite(start):
                continue
            self.rank[job] = i + 1
            until = start + self._estimate(job)
            if start <= now:
                room.take(demands, until)
                continue
            self._reserve(job, demands, room, start, until)
            estimates = np.where(jobs.estimate_s > 0, jobs.estimate_s, self.unknown_s) + self._grace_s
            # Those that were planned before it are part of the room that its plan rests on.
            self.late[:] = ((now + estimates > start) | (not self._goes_before(job))) & (self.rank == 0)
            self._count_lost(demands)
            return

    def _reserve(self, job: int, demands: list[Demand], room: RoomOverTime, start: float, until: float) -> None:
        free, count = room.at(start), sum(demand.pods for demand in demands)
        there = int(places(free, demands[0]).sum()) if len(demands) == 1 else count
        # Of pods that differ, places of one kind are no measure for the others, so nothing is spared.
        there = there if self._goes_before(job) else count
        self.reserved = job, demands
        self.reservation = Reservation(
            self.ssn.tables.jobs.uids[job], count, start, until, there, there - count, self._awaited(start)
        )

    def _goes_before(self, job: int) -> bool:
        """Return True if other jobs may start before the reserved one where their estimates say that they end."""
        said = said_starts(self.ssn.snapshot.notes).get(self.ssn.tables.jobs.uids[job])
        # Estimates are claims of users. Where the start is much later than was said first they were not true, and a
        # stream of jobs that run longer than they say would hold back the reserved one forever.
        return self._backfill and (said is None or self.ssn.now <= said.first + self._trusts_s)

    def _count_lost(self, demands: list[Demand]) -> None:
        """Count how many places of the reserved job one pod of each class takes at most."""
        tables = self.ssn.tables
        asked = demands if len(demands) == 1 else [Demand(1, d.each, d.nodes) for d in demands]
        for cls in distinct(tables.tasks.cls[self._waiting()]).tolist():
            mine = self._nodes_of(cls)
            shared = [demand for demand in asked if (demand.nodes & mine).any()]
            self.lost[cls] = max((places_lost(tables.classes.req[cls], demand) for demand in shared), default=0)

    def _waiting(self) -> AnyArray:
        tasks = self.ssn.tables.tasks
        found: AnyArray = (tasks.alive & (tasks.status == TaskStatus.PENDING) & (tasks.cls >= 0)).nonzero()[0]
        return found

    def _demands(self, job: int) -> list[Demand]:
        """Return what a job needs at least, its first tasks up to its minimum, by class."""
        tables = self.ssn.tables
        # Only the minimum: pods beyond it start one by one, and nothing is kept for them.
        rows = tables.jobs.tasks[job]
        rows = rows[tables.tasks.status[rows] == TaskStatus.PENDING][: max(int(tables.jobs.min_available[job]), 1)]
        # By class: a gang of thousands of equal pods costs as much as one pod.
        classes, counts = np.unique(tables.tasks.cls[rows], return_counts=True)
        found = [
            Demand(count, tables.classes.req[cls], self._nodes_of(cls))
            for cls, count in zip(classes.tolist(), counts.tolist(), strict=True)
        ]
        # Large pods first, because small ones find room between them.
        return sorted(found, key=lambda demand: (-demand.each).tolist())

    def _nodes_of(self, cls: int) -> Bool:
        """Return the nodes that may take pods of a class, by what does not change as pods come and go. Shape (N,)."""
        tables = self.ssn.tables
        codes = stable_codes(derived(self.ssn), tables.classes.specs[cls], affinity=True, taints=True).codes
        found: Bool = (codes == 0) & (tables.nodes.quarantined_by == 0)
        return found

    def row_of(self, key: str) -> int | None:
        """Return the row of a job, None if it is not there."""
        jobs = self.ssn.tables.jobs
        return next((row for row in self.ssn.live_jobs.tolist() if jobs.uids[row] == key), None)

    def is_waiting(self, job: int) -> bool:
        """Return True if a job waits, and no pod of it has a node."""
        jobs = self.ssn.tables.jobs
        return bool(jobs.alive[job] and jobs.waits[job] > 0 and jobs.counts[job, _HOLDING].sum() == 0)

    def is_too_old(self, job: int) -> bool:
        """Return True if room has been kept for a job for as long as is allowed."""
        return self.ssn.now - float(self.ssn.tables.jobs.creation[job]) > self.after_s + self.holds_s

    def places_when_empty(self, demand: Demand) -> float:
        """Return how many pods of a demand fit on the nodes that may take it, if nothing runs there."""
        return float(places(self.ssn.tables.nodes.facts.allocatable, demand).sum())

    def delays(self, said: SaidStart) -> tuple[MovedBy, ...]:
        """Return why the reserved job does not fit at the moment that was said before."""
        assert self.reserved is not None, "nothing is reserved"
        _, demands = self.reserved

        def fits_without(causes: Sequence[MovedBy]) -> bool:
            ends = self._ends.copy()
            ends[[rows[cause] for cause in causes]] = -np.inf
            return fits(self._room(ends).at(said.start), demands) is not None

        rows = {self._cause(job, said): job for job in self._beyond(said.start, demands)}
        order = sorted((each for each in rows if each is not None), key=lambda each: (each.kind != OVERRUN, rows[each]))
        # Overdue jobs first: one that has started since was often let in because nothing was to be delayed by it.
        found = needed_of(order, fits_without)
        if found:
            return tuple(found)
        has_less = self.places_when_empty(demands[0]) < said.places
        return (MovedBy(ROOM if has_less else REPLANNED),)

    def _beyond(self, moment: float, demands: Sequence[Demand]) -> list[int]:
        """Return jobs that hold nodes which the demands may use, and are expected to end after a moment."""
        tasks, usable = self.ssn.tables.tasks, np.logical_or.reduce([demand.nodes for demand in demands])
        rows = self._holding[usable[tasks.node[self._holding]]]
        found = distinct(tasks.job[rows][tasks.job[rows] >= 0])
        return [int(job) for job in found if np.isfinite(self._ends[job]) and self._ends[job] > moment]

    def _cause(self, job: int, said: SaidStart) -> MovedBy | None:
        key, started = self.ssn.tables.jobs.uids[job], float(self._starts[job])
        if started >= said.at:
            return MovedBy(STARTED, key)
        # One that was to end later already then is no cause.
        return MovedBy(OVERRUN, key) if started + self._estimate(job) <= said.start else None

    @cached_property
    def _holding(self) -> AnyArray:
        """Return the rows of tasks that hold a node."""
        tasks = self.ssn.tables.tasks
        found: AnyArray = (tasks.alive & (tasks.node >= 0) & np.isin(tasks.status, _HOLDING)).nonzero()[0]
        return found

    def _room(self, ends: F64) -> RoomOverTime:
        tables = self.ssn.tables
        tasks, rows = tables.tasks, self._holding
        job = tasks.job[rows]
        # Pods without a job, such as those of a DaemonSet, are not expected to end.
        end = np.where(job >= 0, ends[job], np.inf)
        # What is being released counts as free: its pods have been asked to leave.
        free = tables.nodes.books[:, IDLE] + tables.nodes.books[:, RELEASING]
        return RoomOverTime(free, tasks.node[rows], tables.classes.req[tasks.cls[rows]], end)

    @cached_property
    def _starts(self) -> F64:
        """Return since when each job is running, ``inf`` for others. Shape (J,)."""
        tables, now = self.ssn.tables, self.ssn.now
        found = np.full(tables.jobs.capacity, np.inf)
        for job in (tables.jobs.alive & (tables.jobs.counts[:, _HOLDING].sum(axis=1) > 0)).nonzero()[0].tolist():
            # One pod of a gang tells when it started: they run together.
            pod = tables.tasks.pods[tables.jobs.tasks[job][0]]
            found[job] = now if pod.start_time is None else pod.start_time
        return found

    @cached_property
    def _ends(self) -> F64:
        """Return when each running job is expected to end, ``inf`` for others. Shape (J,)."""
        found = np.full(len(self._starts), np.inf)
        for job in np.isfinite(self._starts).nonzero()[0].tolist():
            found[job] = expected_end_s(float(self._starts[job]), self._estimate(job), self.ssn.now)
        return found

    def _estimate(self, job: int) -> float:
        return (float(self.ssn.tables.jobs.estimate_s[job]) or self.unknown_s) + self._grace_s

    def _awaited(self, start: float) -> tuple[str, ...]:
        """Return the keys of some jobs whose ends the reservation waits for, the latest last."""
        ends = self._ends
        rows = (ends <= start).nonzero()[0]
        return tuple(
            self.ssn.tables.jobs.uids[row] for row in rows[np.argsort(ends[rows], kind="stable")][-3:].tolist()
        )
