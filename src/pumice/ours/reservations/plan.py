"""Which waiting jobs get a reservation, from when on, and what others may take until then.

Source: EASY backfilling (Lifka, The ANL/IBM SP Scheduling System, 1995) for one job, conservative backfilling (Mu'alem
and Feitelson, 2001) for several, by counts of places in place of processors.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import NamedTuple
from zlib import crc32

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.jobs import PENDING_PHASE
from pumice.framework.cycle.session import Session
from pumice.model.blockers import AHEAD, OVERRUN, REPLANNED, ROOM, STARTED, MovedBy
from pumice.model.status import TaskStatus
from pumice.model.workloads.reservation import Reservation
from pumice.ours.reservations.delay import SaidStart, due_since, needed_of, said_starts
from pumice.ours.reservations.demands import Demands
from pumice.ours.reservations.room_over_time import Demand, RoomOverTime, fits, places, places_lost_by, pods_of
from pumice.ours.reservations.running import HOLDING, RunningJobs
from pumice.ours.reservations.slots import Slot, Slots

#: Waiting jobs that are planned in one cycle at most. Those that fit at once come first and cost a plan each.
PLANS_MAX = 64


class Kept(NamedTuple):
    """Room that is kept for a job (its row), from the moment that the reservation says. ``choices``: what it demands in
    each domain in which it may be; ``demands``: in the one in which room is kept."""

    job: int
    demands: Sequence[Demand]
    choices: Sequence[Sequence[Demand]]
    reservation: Reservation


class Claim(NamedTuple):
    """Places that others must leave: one pod of a class takes ``lost`` (C,) of them at most, and ``spare`` may be taken
    by jobs that would end after ``begins``. ``within`` (N,): the places are on these nodes only; None: on any."""

    kept: Kept
    begins: float
    spare: int
    lost: F64
    within: Bool | None


class Plan:
    """The reservations of a session.

    ``rank`` (J,): the place in the order of the planned jobs, 1 for the first, 0 for jobs without a plan. ``kept``: the
    reservations, that of the oldest job first. ``claims``: by the moment at which they begin. ``late`` (J,): how many
    of the first claims a job has to leave their places, because it would end after they begin.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        most: int,
        after_s: float,
        holds_s: float,
        unknown_s: float,
        grace_s: float,
        trusts_s: float,
        backfill: bool,
    ) -> None:
        self.ssn, self.after_s, self.holds_s = ssn, after_s, holds_s
        self._most, self._trusts_s, self._backfill = most, trusts_s, backfill
        self.running, self._demands = RunningJobs(ssn, unknown_s, grace_s), Demands(ssn)
        jobs = ssn.tables.jobs.capacity
        self.rank, self.late = np.zeros(jobs), np.zeros(jobs)
        self.said = said_starts(ssn.snapshot.notes)
        self.kept: list[Kept] = []
        self.claims: list[Claim] = []
        self._slots: Slots | None = None
        self._lost: dict[Hashable, F64] = {}
        #: Jobs that fit now and go before: the room that the plan rests on is without these pods of them.
        self.starting: dict[int, Sequence[Demand]] = {}
        #: Since when jobs were due after the last cycle, by key.
        self.due_before = due_since(ssn.snapshot.notes)
        #: Jobs for which room was kept for as long as they were to run there, and which found no place in it.
        self.given_up: list[int] = []
        self._fill()

    @property
    def is_firm(self) -> bool:
        """True if the starts of the reservations rest on what runs alone. If jobs before them start in this cycle too,
        their nodes are not decided yet."""
        return bool(self.kept) and not self.starting

    def as_numbers(self) -> F64:
        """Return the jobs and the starts of the reservations as numbers, none for none."""
        found = [(each.reservation.start, *each.reservation.job.encode(), -1.0) for each in self.kept]
        return np.array([number for each in found for number in each], dtype=np.float64)

    def lost(self) -> F64:
        """Return the places that a pod of each class takes from each claim. Shape (C, claims)."""
        columns = [claim.lost for claim in self.claims]
        return np.stack(columns, axis=1) if columns else np.zeros((self.ssn.tables.classes.capacity, 0))

    def starting_as_numbers(self) -> F64:
        """Return a number for what is counted as placed of each job that is to start now, and where; 0 for others.
        Shape (J,)."""
        found = np.zeros(len(self.rank))
        for job, demands in self.starting.items():
            for pods, each, nodes, *_ in demands:
                for part in (str(pods).encode(), each.tobytes(), nodes.tobytes()):
                    found[job] = crc32(part, int(found[job]))
        return found

    def within(self, job: int) -> Bool | None:
        """Return the nodes of the domain in which a job that starts now is planned, (N,); None for no such domain."""
        # Where it goes is decided later, and another domain may be the one in which room is kept for others.
        return self.starting[job][0].within if job in self.starting else None

    def _candidates(self) -> AnyArray:
        """Return waiting jobs that may get a reservation, oldest first."""
        jobs, rows = self.ssn.tables.jobs, self.ssn.live_jobs
        waited = self.ssn.now - jobs.creation[rows]
        # Bounded: a job that never starts, for whatever reason, must not keep nodes idle for ever.
        old = (waited >= self.after_s) & (waited <= self.after_s + self.holds_s)
        waits = (jobs.waits[rows] > 0) & (jobs.counts[rows][:, HOLDING].sum(axis=1) == 0)
        is_held = jobs.quarantined[rows] | (jobs.phase[rows] == PENDING_PHASE) | (jobs.gated[rows] > 0)
        rows = rows[old & waits & ~is_held]
        created = jobs.creation[rows]
        # Texts are slow to compare, so only jobs that can be among the oldest are sorted by name.
        if len(rows) > PLANS_MAX:
            rows = rows[created <= np.partition(created, PLANS_MAX - 1)[PLANS_MAX - 1]]
        oldest = sorted(rows.tolist(), key=lambda job: (jobs.creation[job], jobs.uids[job]))[:PLANS_MAX]
        return np.array(oldest, dtype=np.int64)

    def _fill(self) -> None:
        """Find the first jobs that do not fit now, once those before them have started, and reserve room for them."""
        candidates = self._candidates().tolist()
        # Most cycles have no candidate, and need no profile.
        if not candidates:
            return
        room = self.running.room(self.running.ends)
        if self._most == 1:
            self._reserve_one(candidates, room)
        else:
            self._reserve_several(candidates, room)
        self.claims.sort(key=lambda claim: claim.begins)
        if self.claims:
            begins = [claim.begins for claim in self.claims]
            self.late[:] = np.searchsorted(begins, self.ssn.now + self.running.estimates, side="left")

    def _reserve_one(self, candidates: Sequence[int], room: RoomOverTime) -> None:
        """Reserve for the first job that does not fit now. Jobs before it are counted on the nodes that they fit on."""
        now = self.ssn.now
        for i, job in enumerate(candidates):
            choices = self._demands.choices(job)
            starts = [room.earliest(demands, now) for demands in choices]
            start = min(starts, default=np.inf)
            # One that never fits keeps nothing, and the next one is planned.
            if not np.isfinite(start):
                continue
            if self._gives_up(job, start):
                continue
            demands = choices[starts.index(start)]
            self.rank[job] = i + 1
            until = start + self.running.estimate(job)
            if start <= now:
                room.take(demands, until)
                self.starting[job] = demands
                continue
            count = pods_of(demands)
            # Of pods that differ, places of one kind are no measure for the others, so nothing is spared.
            there = int(places(room.at(start), demands[0]).sum()) if len(demands) == 1 else count
            self._keep(job, demands, choices, start, until, [there - count], [demands])
            return

    def _reserve_several(self, candidates: Sequence[int], room: RoomOverTime) -> None:
        """Reserve for the first jobs that do not fit now, as many as there may be. None starts later than was said."""
        uids, now, slots = self.ssn.tables.jobs.uids, self.ssn.now, Slots(room, self.ssn.now)
        choices: dict[int, list[list[Demand]]] = {}
        # What was said first: whatever is planned for other jobs leaves it as it is.
        for job in candidates:
            said = self.said.get(uids[job])
            if said is None:
                continue
            choices[job], start = self._demands.choices(job), max(said.start, now)
            until = start + self.running.estimate(job)
            same = (Slot(job, tuple(demands), start, until) for demands in choices[job])
            # Where jobs ran longer than they said, the older one goes before those that were to start later.
            moved = next(filter(slots.can_add, same), None) or self._earliest(slots, job, choices[job])
            if moved is not None and not self._gives_up(job, moved.start):
                slots.add(moved)
        found: list[Slot] = []
        for job in candidates:
            if job in self.given_up:
                continue
            if job not in choices:
                choices[job] = self._demands.choices(job)
            before = slots.remove(job)
            planned = self._earliest(slots, job, choices[job])
            # Once the steps are spent, not all domains were tried.
            if before is not None and (planned is None or planned.start > before.start):
                planned = before
            if planned is None or self._gives_up(job, planned.start):
                continue
            slots.add(planned)
            found.append(planned)
            if planned.start <= now:
                self.starting[job] = planned.demands
            elif len(found) - len(self.starting) == self._most:
                break
        # More jobs were planned than may have a reservation: for the rest nothing is kept.
        for job in set(choices) - {slot.job for slot in found}:
            slots.remove(job)
        # Those that start now go first: a job that may only start because places are to spare must not take theirs.
        found.sort(key=lambda slot: slot.start > now)
        for place, slot in enumerate(found, 1):
            self.rank[slot.job] = place
            parts = [[demand] for demand in slot.demands]
            self._keep(slot.job, slot.demands, choices[slot.job], slot.start, slot.until, slots.spare(slot), parts)
        self._slots = slots

    def _earliest(self, slots: Slots, job: int, choices: Sequence[Sequence[Demand]]) -> Slot | None:
        """Return the first slot for a job in any of its domains, None for none."""
        found = [slots.earliest(job, demands, self.running.estimate(job)) for demands in choices]
        return min((slot for slot in found if slot is not None), key=lambda slot: slot.start, default=None)

    def _keep(
        self,
        job: int,
        demands: Sequence[Demand],
        choices: Sequence[Sequence[Demand]],
        start: float,
        until: float,
        spare: Sequence[int],
        parts: Sequence[Sequence[Demand]],
    ) -> None:
        """Keep room for a job. Of each part of its demands so many places are to spare."""
        yields = self._goes_before(job)
        spare = spare if yields else [0] * len(spare)
        count = pods_of(demands)
        found = Reservation(
            self.ssn.tables.jobs.uids[job], count, start, until, count + spare[0], spare[0], self._awaited(start)
        )
        kept = Kept(job, demands, choices, found)
        # What starts now has claims too, because pods beyond the minimum of another could take its places.
        if job not in self.starting:
            self.kept.append(kept)
        # A claim that has begun binds all jobs, however soon they say that they end.
        begins = start if yields else -np.inf
        self.claims += [
            Claim(kept, begins, each, self._lost_to(part), part[0].within)
            for each, part in zip(spare, parts, strict=True)
        ]

    def _gives_up(self, job: int, start: float) -> bool:
        """Return True, and note it, if a job that might start now has had its time to do so."""
        due = self.due_before.get(self.ssn.tables.jobs.uids[job])
        if due is None or start > self.ssn.now or self.ssn.now < due + self.running.estimate(job):
            return False
        self.given_up.append(job)
        return True

    def due(self) -> dict[int, float]:
        """Return since when jobs whose room is free have found no place. To be asked after the actions."""
        jobs, now, uids = (*self.starting, *self.given_up), self.ssn.now, self.ssn.tables.jobs.uids
        return {job: self.due_before.get(uids[job], now) for job in jobs if self.is_waiting(job)}

    def _goes_before(self, job: int) -> bool:
        """Return True if other jobs may start before a reserved one where their estimates say that they end."""
        said = self.said.get(self.ssn.tables.jobs.uids[job])
        # Estimates are claims of users. Where the start is much later than was said first they were not true, and a
        # stream of jobs that run longer than they say would hold back the reserved one forever.
        return self._backfill and (said is None or self.ssn.now <= said.first + self._trusts_s)

    def _lost_to(self, demands: Sequence[Demand]) -> F64:
        """Return how many places of some demands one pod of each class takes at most. Shape (C,)."""
        kinds = tuple(demand.kind for demand in demands)
        if kinds not in self._lost:
            tables = self.ssn.tables
            (classes, which, masks), found = self._waiting_classes, np.zeros(tables.classes.capacity)
            for demand in demands:
                shares = np.array([bool((mask & demand.nodes).any()) for mask in masks], dtype=bool)
                lost = places_lost_by(tables.classes.req[classes], demand)
                found[classes] = np.maximum(found[classes], np.where(shares[which], lost, 0.0))
            self._lost[kinds] = found
        return self._lost[kinds]

    @cached_property
    def _waiting_classes(self) -> tuple[AnyArray, AnyArray, list[Bool]]:
        """Return the classes of waiting tasks, the number of its nodes for each, and these as masks (N,)."""
        classes, masks = distinct(self.ssn.tables.tasks.cls[self._waiting]), dict[bytes, int]()
        found, which = list[Bool](), np.zeros(len(classes), dtype=np.int64)
        # Most classes may use the same nodes, and a tenant may have very many classes.
        for i, cls in enumerate(classes.tolist()):
            nodes = self._demands.nodes_of(cls)
            which[i] = masks.setdefault(nodes.tobytes(), len(found))
            if which[i] == len(found):
                found.append(nodes)
        return classes, which, found

    @cached_property
    def _waiting(self) -> AnyArray:
        tasks = self.ssn.tables.tasks
        found: AnyArray = (tasks.alive & (tasks.status == TaskStatus.PENDING) & (tasks.cls >= 0)).nonzero()[0]
        return found

    def is_waiting(self, job: int) -> bool:
        """Return True if a job waits, and no pod of it has a node."""
        jobs = self.ssn.tables.jobs
        return bool(jobs.alive[job] and jobs.waits[job] > 0 and jobs.counts[job, HOLDING].sum() == 0)

    def places_when_empty(self, kept: Kept) -> float:
        """Return how many pods of a reserved job fit where it may be, if nothing runs there."""
        empty = self.ssn.tables.nodes.facts.allocatable
        return max(float(places(empty, demands[0]).sum()) for demands in kept.choices)

    def delays(self, kept: Kept, said: SaidStart) -> tuple[MovedBy, ...]:
        """Return why a reserved job does not fit at the moment that was said before."""

        def fits_without(causes: Sequence[MovedBy]) -> bool:
            ends = self.running.ends.copy()
            ends[[rows[cause] for cause in causes]] = -np.inf
            free = self.running.room(ends).at(said.start)
            return any(fits(free, demands) is not None for demands in kept.choices)

        rows: dict[MovedBy, int] = {}
        start = max(said.start, self.ssn.now)
        wanted = Slot(kept.job, tuple(kept.demands), start, start + self.running.estimate(kept.job))
        first = self._slots.in_the_way(wanted) if self._slots is not None else None
        # If what runs leaves it room at that moment, it is another reserved job that does not.
        if first is not None and fits_without(()):
            return (MovedBy(AHEAD, self.ssn.tables.jobs.uids[first.job]),)
        for job in self._beyond(said.start, [demand for demands in kept.choices for demand in demands]):
            cause = self._cause(job, said)
            if cause is not None:
                rows[cause] = job
        order = sorted(rows, key=lambda each: (each.kind != OVERRUN, rows[each]))
        # Overdue jobs first: one that has started since was often let in because nothing was to be delayed by it.
        found = needed_of(order, fits_without)
        if found:
            return tuple(found)
        has_less = self.places_when_empty(kept) < said.places
        return (MovedBy(ROOM if has_less else REPLANNED),)

    def _beyond(self, moment: float, demands: Sequence[Demand]) -> list[int]:
        """Return jobs that hold nodes which the demands may use, and are expected to end after a moment."""
        tasks, usable = self.ssn.tables.tasks, np.logical_or.reduce([demand.nodes for demand in demands])
        rows = self.running.holding[usable[tasks.node[self.running.holding]]]
        found = distinct(tasks.job[rows][tasks.job[rows] >= 0])
        return [int(job) for job in found if np.isfinite(self.running.ends[job]) and self.running.ends[job] > moment]

    def _cause(self, job: int, said: SaidStart) -> MovedBy | None:
        key, started = self.ssn.tables.jobs.uids[job], float(self.running.starts[job])
        if started >= said.at:
            return MovedBy(STARTED, key)
        # One that was to end later already then is no cause.
        return MovedBy(OVERRUN, key) if started + self.running.estimate(job) <= said.start else None

    def _awaited(self, start: float) -> tuple[str, ...]:
        """Return the keys of some jobs whose ends the reservation waits for, the latest last."""
        ends, uids = self.running.ends, self.ssn.tables.jobs.uids
        rows = (ends <= start).nonzero()[0]
        return tuple(uids[row] for row in rows[np.argsort(ends[rows], kind="stable")][-3:].tolist())
