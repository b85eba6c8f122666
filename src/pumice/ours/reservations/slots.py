"""Times that are reserved for several waiting jobs, so that none of them starts later than its own.

A slot says that the pods of a job are on nodes from one moment to another, and not on which: how many places it takes
from another job is counted, at most. So a slot stays right wherever the jobs before it are placed, and a plan costs
nothing by node. Source: conservative backfilling (Mu'alem and Feitelson, Utilization, Predictability, Workloads, and
User Runtime Estimates in Scheduling the IBM SP2 with Backfilling, 2001), by counts of places in place of processors.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import F64, I64, Bool
from pumice.ours.reservations.room_over_time import Demand, RoomOverTime, fits, places_taken

#: Moments at which running jobs end that are looked at, at most. What ends between two of them counts from the later.
MOMENTS_MAX = 128
#: Steps of one plan, at most: one for each search, and for each start that is tried for pods of several kinds; for each
#: kind as many as there are moments.
STEPS_MAX = 4_096


class Slot(NamedTuple):
    """From ``start`` to ``until`` a job (its row) has what it demands."""

    job: int
    demands: tuple[Demand, ...]
    start: float
    until: float

    def overlaps(self, other: Slot) -> bool:
        """Return True if both are there at some moment."""
        return self.start < other.until and other.start < self.until


class _Rows(NamedTuple):
    """A row for each demand of each slot. ``places`` (moments, rows): if there were no slots. ``takes`` (rows, rows):
    how many places row i takes from row j. ``needs`` (rows,): places that must be left for it, which is what it asks
    for, or less where unlike pods fit only as they are packed."""

    job: I64
    begins: F64
    ends: F64
    places: F64
    takes: F64
    needs: F64

    def of(self, keeps: Bool) -> _Rows:
        """Return some of the rows."""
        return _Rows(
            self.job[keeps],
            self.begins[keeps],
            self.ends[keeps],
            self.places[:, keeps],
            self.takes[np.ix_(keeps, keeps)],
            self.needs[keeps],
        )


class Slots:
    """Slots over what is free as running jobs end."""

    def __init__(self, room: RoomOverTime, now: float) -> None:
        self._room, self._now, self._steps = room, now, STEPS_MAX
        ends = room.moments(now)
        if len(ends) > MOMENTS_MAX:
            # Fewer moments make starts later and never too early, because room only grows between them.
            ends = ends[np.linspace(0, len(ends) - 1, MOMENTS_MAX).round().astype(np.int64)]
        self._moments = np.concatenate(([now], ends))
        self._slots: list[Slot] = []
        self._demands: list[Demand] = []
        none = np.empty(0)
        self._rows = _Rows(none.astype(np.int64), none, none, np.empty((len(self._moments), 0)), np.empty((0, 0)), none)
        self._places: dict[Hashable, F64] = {}
        self._taken: dict[Hashable, int] = {}

    def add(self, slot: Slot) -> None:
        """Keep a slot that can be added."""
        rows, count = self._with(slot), len(self._demands)
        least = self._left(rows, slot.start, slot.until)[0][:, count:].min(axis=0)
        # By counts unlike pods may not fit at all. Then nothing more may be taken while they are there.
        rows.needs[count:] = np.minimum(rows.needs[count:], least)
        self._rows = rows
        self._slots.append(slot)
        self._demands += slot.demands

    def remove(self, job: int) -> Slot | None:
        """Take the slot of a job away, and return it; None if it has none."""
        found = next((slot for slot in self._slots if slot.job == job), None)
        if found is not None:
            keeps = self._rows.job != job
            self._slots.remove(found)
            self._demands = [each for each, stays in zip(self._demands, keeps.tolist(), strict=True) if stays]
            self._rows = self._rows.of(keeps)
        return found

    def can_add(self, slot: Slot) -> bool:
        """Return True if a slot leaves all others what they need, and has enough itself."""
        return self._fits(self._with(slot), slot)

    def earliest(self, job: int, demands: Sequence[Demand], lasts_s: float) -> Slot | None:
        """Return the first slot that can be added for a job, None if there is none or the steps are spent."""
        if self._steps <= 0:
            return None
        rows = self._with(Slot(job, tuple(demands), inf, inf))
        ends = self._rows.ends
        # Between these moments nothing changes.
        moments = distinct(np.concatenate((self._moments, self._rows.begins, ends[np.isfinite(ends)])))
        moments = moments[moments >= self._now]
        if len(demands) > 1:
            return self._first_of_unlike(rows, moments, Slot(job, tuple(demands), inf, lasts_s))
        self._steps -= 1
        rows.begins[-1] = self._now
        left, is_there = self._left_at(rows, moments)
        bad = moments[((left < rows.needs) & is_there).any(axis=1)]
        # A slot may begin where none of these moments lies between its start and its end.
        after = np.append(bad, inf)[np.searchsorted(bad, moments)]
        good = moments[after >= moments + lasts_s]
        return None if not len(good) else Slot(job, tuple(demands), float(good[0]), float(good[0]) + lasts_s)

    def _first_of_unlike(self, rows: _Rows, moments: F64, wanted: Slot) -> Slot | None:
        """Return the first slot for pods of several kinds. ``wanted``: until so many seconds after its start."""
        mine = rows.job == wanted.job
        for start in moments.tolist():
            if self._steps <= 0:
                return None
            slot = wanted._replace(start=start, until=start + wanted.until)
            rows.begins[mine], rows.ends[mine] = slot.start, slot.until
            if self._fits(rows, slot):
                return slot
        return None

    def spare(self, slot: Slot) -> list[int]:
        """Return for each demand of a slot how many of its places may be taken by jobs that start now and stay."""
        left, is_there = self._left(self._rows, slot.start, slot.until)
        # Over the whole slot: of a job that starts now and is late nothing says when it ends.
        least = np.where(is_there, left - self._rows.needs, inf).min(axis=0)
        found: list[int] = least[self._rows.job == slot.job].astype(np.int64).tolist()
        return found

    def in_the_way(self, wanted: Slot) -> Slot | None:
        """Return the first slot of another job at the time of one that is wanted."""
        return next((slot for slot in self._slots if slot.job != wanted.job and slot.overlaps(wanted)), None)

    def _fits(self, rows: _Rows, slot: Slot) -> bool:
        self._steps -= 1
        if len(slot.demands) > 1 and self.in_the_way(slot) is None:
            # Unlike pods that share nodes with no other slot: packed as they will be.
            return fits(self._room.at(slot.start), slot.demands) is not None
        left, is_there = self._left(rows, slot.start, slot.until)
        return bool(((left >= rows.needs) | ~is_there).all())

    def _left(self, rows: _Rows, start: float, until: float) -> tuple[F64, Bool]:
        """Return the places that are left for each row at each moment from ``start`` to ``until`` at which a slot
        begins, and whether the row is there then. Shapes (moments, rows)."""
        # Places become fewer only where a slot begins.
        inside = (rows.begins > start) & (rows.begins < until)
        return self._left_at(rows, distinct(np.concatenate(([start], rows.begins[inside]))))

    def _left_at(self, rows: _Rows, moments: F64) -> tuple[F64, Bool]:
        """Return the places that are left for each row at some moments, and whether the row is there then. Shapes
        (moments, rows)."""
        is_there = (rows.begins <= moments[:, None]) & (moments[:, None] < rows.ends)
        index = np.searchsorted(self._moments, moments, side="right") - 1
        return rows.places[index] - is_there.astype(np.float64) @ rows.takes, is_there

    def _with(self, slot: Slot) -> _Rows:
        """Return the rows with those of one more slot, which come last."""
        rows, new, count = self._rows, slot.demands, len(slot.demands)
        every = [*self._demands, *new]
        takes = np.zeros((len(every), len(every)))
        takes[: len(self._demands), : len(self._demands)] = rows.takes
        for i in range(len(self._demands), len(every)):
            takes[i] = [self._takes(every[i], other) for other in every]
            takes[:, i] = [self._takes(other, every[i]) for other in every]
            takes[i, i] = 0.0
        return _Rows(
            np.append(rows.job, np.full(count, slot.job)),
            np.append(rows.begins, np.full(count, slot.start)),
            np.append(rows.ends, np.full(count, slot.until)),
            np.column_stack((rows.places, *(self._places_of(demand) for demand in new))),
            takes,
            np.append(rows.needs, [float(demand.pods) for demand in new]),
        )

    def _places_of(self, demand: Demand) -> F64:
        """Return how many places there are for a demand at each moment, slots apart. Shape (moments,)."""
        if demand.kind not in self._places:
            self._steps -= len(self._moments)
            self._places[demand.kind] = self._room.places_at(demand, self._moments)
        return self._places[demand.kind]

    def _takes(self, taker: Demand, demand: Demand) -> int:
        """Return how many places for a demand the pods of another take at most, wherever they are placed."""
        question = taker.kind, taker.pods, demand.kind
        if question not in self._taken:
            # Which nodes they share is not looked at: pods could go to any of them.
            apart = not (taker.nodes & demand.nodes).any()
            self._taken[question] = 0 if apart else places_taken(taker, demand)
        return self._taken[question]
