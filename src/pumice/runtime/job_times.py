"""What happened to each job over time, in bounded memory: since when it is as it is, and why it waited how long.

A look compares each job with the look before. What changed is a moment; moments of all jobs share one ring, so that the
oldest are dropped first, while seconds by state are kept in full. Jobs that are gone keep their place until new ones
need it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from pumice.answers.waiting_codes import waiting_codes
from pumice.columns.counting import HELD
from pumice.columns.dtypes import F64, I8, I32, I64, AnyArray
from pumice.framework.cycle.outcome import Outcome
from pumice.reasons.shown_names import ShownNames
from pumice.runtime.job_states import CODES, EMPTY, ENDED, NUMBER_OF, STARTS, STATES, STATES_ON_NODES, WAITS, states_of

#: Jobs that are followed, and moments of all of them.
JOBS_MAX, MOMENTS_MAX = 20_000, 1 << 17
#: What a job can be, by number: the states of jobs, the codes of reasons for which they wait, and gone.
GONE = "gone"
LABELS = (*STATES, *(code.value for code in CODES), GONE)
_GONE = len(LABELS) - 1
_FIRST_CODE = len(STATES)
_OVER = (STATES[ENDED], GONE)


class JobStates(Struct, frozen=True):
    """The jobs (J) after a cycle. ``label``: into LABELS. ``queue``: into ``queues``. ``shown``: what people call those
    that they call by another name."""

    at: float
    names: Sequence[str]
    queues: Sequence[str]
    queue: I32
    created: F64
    label: I8
    shown: Mapping[str, str] = {}


def job_states(outcome: Outcome) -> JobStates:
    """Return what each job of a cycle is, and the code of its reason if it waits."""
    tables, rows = outcome.tables, outcome.live_jobs
    jobs = tables.jobs
    counts = jobs.counts[rows]
    label = states_of(counts, counts @ HELD)
    place = np.full(len(jobs.uids), -1)
    place[rows] = np.arange(len(rows))
    for row, code in waiting_codes(outcome):
        if label[place[row]] in (WAITS, EMPTY):
            label[place[row]] = _FIRST_CODE + NUMBER_OF[code]
    names, shown = [jobs.uids[row] for row in rows.tolist()], ShownNames(tables)
    return JobStates(
        outcome.now,
        names,
        list(tables.queues.names),
        jobs.queue[rows].copy(),
        jobs.creation[rows].copy(),
        label,
        {name: called for name in names if (called := shown.of(name)) != name},
    )


class Moment(Struct, frozen=True):
    """From ``at`` on the job was ``label``, one of LABELS."""

    at: float
    label: str


class JobTime(Struct, frozen=True):
    """A job over time. ``moments``: the oldest first; ``is_whole`` is False if older ones were dropped. ``seconds``: by
    label, the most first, up to the last look. ``shown``: what people call it."""

    name: str
    queue: str
    created: float
    moments: tuple[Moment, ...]
    seconds: dict[str, float]
    is_whole: bool
    shown: str

    @property
    def ended(self) -> float | None:
        """When its pods had ended, or it was gone; None if neither is so."""
        found = None
        for each in reversed(self.moments):
            if each.label not in _OVER:
                break
            found = each.at
        return found

    @property
    def started(self) -> float | None:
        """When it was first seen with nodes, None if it was not, or if it had some when it was first seen."""
        first = next((each for each in self.moments if each.label in STATES_ON_NODES), None)
        is_seen = first is not None and (first is not self.moments[0] or first.label == STATES[STARTS])
        return first.at if first is not None and is_seen else None

    def started_after(self, at: float) -> float | None:
        """Return when it first had nodes after a moment at which it waited, None if it had not."""
        return next((each.at for each in self.moments if each.at > at and each.label in STATES_ON_NODES), None)


class JobTimes:
    """``jobs_max``, ``moments_max``: see JOBS_MAX. All methods are for one thread."""

    def __init__(self, jobs_max: int = JOBS_MAX, moments_max: int = MOMENTS_MAX) -> None:
        self.at = -np.inf
        #: Jobs of the last look that are not followed, because there are too many.
        self.left_out = 0
        self._slot: OrderedDict[str, int] = OrderedDict()
        self._free = list(range(jobs_max - 1, -1, -1))
        # Names of those that are gone, in the order in which they went.
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._queue = [""] * jobs_max
        self._shown: dict[str, str] = {}
        self._created = np.zeros(jobs_max)
        self._label: I8 = np.full(jobs_max, _GONE, dtype=np.int8)
        self._since = np.zeros(jobs_max)
        self._dropped = np.zeros(jobs_max, dtype=bool)
        self._seconds = np.zeros((jobs_max, len(LABELS)), dtype=np.float32)
        self._moment_slot: I32 = np.full(moments_max, -1, dtype=np.int32)
        self._moment_at = np.zeros(moments_max)
        self._moment_label = np.zeros(moments_max, dtype=np.int8)
        self._moments = 0

    @property
    def nbytes(self) -> int:
        """Return what its arrays take, which does not grow."""
        arrays: list[AnyArray] = [self._created, self._label, self._since, self._dropped, self._seconds]
        arrays += [self._moment_slot, self._moment_at, self._moment_label]
        return sum(each.nbytes for each in arrays)

    # -- taking in -----------------------------------------------------------------------------------------------------

    def take(self, states: JobStates) -> None:
        """Take in the jobs after a cycle. A time before the last one counts as that."""
        at = self.at = max(states.at, self.at)
        slots = self._slots_of(states)
        followed = slots >= 0
        self.left_out = int(np.count_nonzero(~followed))
        here = np.zeros(len(self._label), dtype=bool)
        here[slots[followed]] = True
        gone = ((self._label != _GONE) & ~here).nonzero()[0]
        self._is_now(slots[followed], states.label[followed], at)
        if len(gone):
            self._is_now(gone, np.full(len(gone), _GONE, dtype=np.int8), at)
            wanted = set(gone.tolist())
            self._gone.update((name, None) for name, slot in self._slot.items() if slot in wanted)

    def _slots_of(self, states: JobStates) -> I64:
        """Return the slot of each job, -1 for one that is not followed. Shape (J,)."""
        find = self._slot.get
        slots = np.fromiter((find(name, -1) for name in states.names), dtype=np.int64, count=len(states.names))
        known = slots >= 0
        # One of the same name that was created at another time is another job.
        other = known & (self._created[slots] != states.created)
        for row in other.nonzero()[0].tolist():
            self._forget(states.names[row])
        known &= ~other
        # A job that is back is no longer among those that are gone, whose slots go to new ones below.
        for row in (known & (self._label[slots] == _GONE)).nonzero()[0].tolist():
            self._gone.pop(states.names[row], None)
        for row in (~known).nonzero()[0].tolist():
            name = states.names[row]
            slots[row] = self._new(name, states.queues[states.queue[row]], float(states.created[row]))
            if slots[row] >= 0 and name in states.shown:
                self._shown[name] = states.shown[name]
        return slots

    def _new(self, name: str, queue: str, created: float) -> int:
        if not self._free:
            if not self._gone:
                return -1
            self._forget(next(iter(self._gone)))
        slot = self._slot[name] = self._free.pop()
        self._queue[slot], self._created[slot], self._dropped[slot] = queue, created, False
        self._label[slot], self._seconds[slot] = _GONE, 0.0
        return slot

    def _forget(self, name: str) -> None:
        slot = self._slot.pop(name)
        self._gone.pop(name, None)
        self._shown.pop(name, None)
        self._moment_slot[self._moment_slot == slot] = -1
        self._label[slot] = _GONE
        self._free.append(slot)

    def _is_now(self, slots: AnyArray, labels: AnyArray, at: float) -> None:
        """Note what changed for these slots."""
        changed = self._label[slots] != labels
        rows, new = slots[changed], labels[changed]
        before = self._label[rows]
        # Nothing is counted for the time for which a job was gone.
        passed = np.where(before == _GONE, 0.0, at - self._since[rows])
        self._seconds[rows, before] += passed
        self._label[rows], self._since[rows] = new, at
        # More changes at once than there is room for are not kept one by one.
        room = len(self._moment_slot)
        self._dropped[rows[:-room]] = True
        rows, new = rows[-room:], new[-room:]
        places = np.arange(self._moments, self._moments + len(rows)) % room
        lost = self._moment_slot[places]
        self._dropped[lost[lost >= 0]] = True
        self._moment_slot[places], self._moment_at[places], self._moment_label[places] = rows, at, new
        self._moments += len(rows)

    # -- reading -------------------------------------------------------------------------------------------------------

    def waits(self, until: float) -> Iterator[tuple[str, str, float]]:
        """Yield the name of each job that waits now, each code for which it waited, and for how many seconds.
        ``until``: as in ``of``."""
        for name, slot in self._slot.items():
            now = int(self._label[slot])
            if not _FIRST_CODE <= now < _GONE:
                continue
            seconds = self._seconds[slot, _FIRST_CODE:_GONE].astype(np.float64)
            seconds[now - _FIRST_CODE] += max(self.at, until) - self._since[slot]
            for place in seconds.nonzero()[0].tolist():
                yield name, CODES[place].value, float(seconds[place])

    def of(self, name: str, until: float = -np.inf) -> JobTime | None:
        """Return a job over time, None for one that is not followed. ``until``: when the last cycle ended, if nothing
        has changed since the last look."""
        slot = self._slot.get(name)
        if slot is None:
            return None
        places = (self._moment_slot == slot).nonzero()[0]
        places = places[np.argsort((places - self._moments) % len(self._moment_slot), kind="stable")]
        moments = [
            Moment(at, LABELS[label])
            for at, label in zip(self._moment_at[places].tolist(), self._moment_label[places].tolist(), strict=True)
        ]
        seconds, now = self._seconds[slot].astype(np.float64), int(self._label[slot])
        if now != _GONE:
            seconds[now] += max(self.at, until) - self._since[slot]
        order = np.argsort(-seconds, kind="stable").tolist()
        by_label = {LABELS[label]: float(seconds[label]) for label in order if seconds[label] > 0}
        whole = not self._dropped[slot]
        return JobTime(
            name, self._queue[slot], float(self._created[slot]), tuple(moments), by_label, whole, self.shown(name)
        )

    def shown(self, name: str) -> str:
        """Return what people call a job that is followed, by its name here."""
        return self._shown.get(name, name)

    def gone(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the queue of each job that is gone, the last one first."""
        for name in reversed(self._gone):
            yield name, self._queue[self._slot[name]]
