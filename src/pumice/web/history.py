"""The cycles of a scheduler over time, in bounded memory: means and sums over equal parts of time, and the last cycles.

When all parts are filled, pairs become one, so that the whole time stays in view and only its grain gets coarser. From
``span_max_s`` on the oldest part goes for each new one.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64, AnyArray
from pumice.framework.cycle.trace import Fault
from pumice.web.columns.queues import QueueColumns
from pumice.web.columns.units import RESOURCES_MAX
from pumice.web.sample import CycleSample

#: Parts of time.
PARTS = 480
#: Queues that have curves, those nearest to the root first, and how many of them one answer has.
QUEUES_KEPT, QUEUES_CHARTED = 64, 24
#: Parts of a cycle that are counted each by its name: actions, and plugins that open and close.
SPANS_KEPT = 48
#: The last cycles that are kept one by one, and different faults.
CYCLES_KEPT, FAULTS_KEPT = 200, 50
_CLUSTER = ("offers", "used", "asked")
_QUEUE = ("used", "borrowed", "waiting", "guarantee", "deserved")
_COUNTS = ("cycles", "bound", "evicted", "faults", "cuts")


class CycleRow(Struct, frozen=True):
    """One of the last cycles. ``spans``: seconds by part."""

    number: int
    at: float
    spans: dict[str, float]
    bound: int
    evicted: int
    faults: int
    cuts: int


class _FaultRow:
    """A fault, how often it was seen, and in which cycle last."""

    __slots__ = ("at", "count", "cycle", "fault")

    def __init__(self, fault: Fault) -> None:
        self.fault, self.count, self.cycle, self.at = fault, 0, 0, 0.0


class _Slots:
    """Places of names in an array of fixed size. One that is used by no name any more goes to the next new one."""

    def __init__(self, count: int) -> None:
        self.of: dict[str, int] = {}
        self._free = list(range(count - 1, -1, -1))

    def take(self, name: str) -> int | None:
        """Return the place of a name, None if all are taken."""
        if name not in self.of:
            if not self._free:
                return None
            self.of[name] = self._free.pop()
        return self.of[name]

    def release(self, name: str) -> None:
        self._free.append(self.of.pop(name))


class CycleHistory:
    """``width_s``: of one part at the beginning. All methods are for one thread."""

    def __init__(self, *, span_max_s: float = math.inf, width_s: float = 1.0) -> None:
        self.start, self.width_s, self.count = 0.0, width_s, 0
        self.cycles: deque[CycleRow] = deque(maxlen=CYCLES_KEPT)
        #: How many cycles were taken in.
        self.taken = 0
        self._span_max_s = span_max_s
        self._resources, self._queues, self._spans = _Slots(RESOURCES_MAX), _Slots(QUEUES_KEPT), _Slots(SPANS_KEPT)
        self._faults: OrderedDict[tuple[str, ...], _FaultRow] = OrderedDict()
        # The last axis is time. Half the bytes are enough for a curve.
        self._cluster = np.zeros((len(_CLUSTER), RESOURCES_MAX, PARTS), dtype=np.float32)
        self._queue = np.zeros((QUEUES_KEPT, len(_QUEUE), RESOURCES_MAX, PARTS), dtype=np.float32)
        self._waiting = np.zeros(PARTS, dtype=np.float32)
        self._counts = np.zeros((len(_COUNTS), PARTS))
        self._seconds = np.zeros((SPANS_KEPT, PARTS))
        self._longest = np.zeros(PARTS)

    @property
    def nbytes(self) -> int:
        """Return what its arrays take, which does not grow."""
        arrays = (*self._levels, *self._sums, self._longest)
        return sum(each.nbytes for each in arrays)

    @property
    def until(self) -> float:
        """When the last cycle ended, -inf before the first."""
        return self.cycles[-1].at if self.cycles else -math.inf

    @property
    def _levels(self) -> tuple[AnyArray, ...]:
        return self._cluster, self._queue, self._waiting

    @property
    def _sums(self) -> tuple[AnyArray, ...]:
        return self._counts, self._seconds

    # -- taking in -----------------------------------------------------------------------------------------------------

    def take(self, sample: CycleSample) -> None:
        """Take in a cycle that ended after those before."""
        if not self.taken:
            self.start, self.count = sample.at, 1
        self.taken += 1
        part = self._part_of(sample.at)
        self._put_levels(sample, part)
        counts = (1, sample.bound, sample.evicted, sample.fault_count, sample.cuts)
        self._counts[:, part] += counts
        for name, seconds in sample.spans.items():
            if (slot := self._spans.take(name)) is not None:
                self._seconds[slot, part] += seconds
        self._longest[part] = max(self._longest[part], _whole(sample.spans))
        self.cycles.append(
            CycleRow(
                sample.number,
                sample.at,
                dict(sample.spans),
                sample.bound,
                sample.evicted,
                sample.fault_count,
                sample.cuts,
            )
        )
        self._take_faults(sample)

    def _part_of(self, at: float) -> int:
        """Return the part of a moment, and make it the last one. A clock that was put back stays in the last part."""
        while (part := int(max(at - self.start, 0.0) / self.width_s)) >= PARTS:
            if 2 * self.width_s * PARTS <= self._span_max_s:
                self._merge()
            else:
                self._drop(min(part - PARTS + 1, self.count))
                if not self.count:
                    self.start, self.count = at, 1
        last = self.count - 1
        if part > last:
            for each in self._levels:
                each[..., last + 1 : part + 1] = each[..., last : last + 1]
            self.count = part + 1
        return max(part, last)

    def _merge(self) -> None:
        """Make one part of each two."""
        if self.count % 2:
            for each in self._levels:  # the half that has not come yet is as the one before
                each[..., self.count] = each[..., self.count - 1]
        for each in self._levels:
            _halve(each, each.reshape(*each.shape[:-1], PARTS // 2, 2).mean(axis=-1))
        for each in self._sums:
            _halve(each, each.reshape(*each.shape[:-1], PARTS // 2, 2).sum(axis=-1))
        _halve(self._longest, self._longest.reshape(PARTS // 2, 2).max(axis=-1))
        self.width_s *= 2
        self.count = (self.count + 1) // 2

    def _drop(self, count: int) -> None:
        """Forget the oldest parts."""
        for each in (*self._levels, *self._sums, self._longest):
            each[..., : PARTS - count] = each[..., count:].copy()
            each[..., PARTS - count :] = 0
        self.start += count * self.width_s
        self.count -= count

    def _put_levels(self, sample: CycleSample, part: int) -> None:
        amounts = sample.amounts
        slots = [self._resources.take(each.name) for each in amounts.resources]
        pairs = [(slot, column) for column, slot in enumerate(slots) if slot is not None]
        at, columns = [slot for slot, _ in pairs], [column for _, column in pairs]
        self._cluster[:, :, part] = 0
        for place, of_cluster in enumerate((amounts.offers, amounts.used, amounts.asked)):
            self._cluster[place, at, part] = of_cluster[columns]
        self._waiting[part] = amounts.waiting
        self._queue[..., part] = 0
        queues = amounts.queues
        for row in self._rows_of(queues):
            slot = self._queues.of[queues.names[row]]
            for place, name in enumerate(_QUEUE):
                amounts_of = getattr(queues, name)[row, columns]
                # What is unlimited has no curve.
                self._queue[slot, place, at, part] = np.where(np.isfinite(amounts_of), amounts_of, 0.0)

    def _rows_of(self, queues: QueueColumns) -> list[int]:
        """Return the rows of the queues that have a slot, after new ones got theirs and those that are gone lost it."""
        there = set(queues.names)
        # Those that are gone keep their curves until others need the room.
        if len(there | self._queues.of.keys()) > QUEUES_KEPT:
            for name in self._queues.of.keys() - there:
                self._queue[self._queues.of[name]] = 0
                self._queues.release(name)
        order = np.lexsort((np.arange(len(queues.names)), queues.depth)).tolist()
        return [row for row in order if self._queues.take(queues.names[row]) is not None]

    def _take_faults(self, sample: CycleSample) -> None:
        for fault in sample.faults:
            key = (fault.plugin, fault.point, fault.where, fault.problem)
            row = self._faults.pop(key, None) or _FaultRow(fault)
            self._faults[key] = row
            row.count, row.cycle, row.at = row.count + 1, sample.number, sample.at
        while len(self._faults) > FAULTS_KEPT:
            self._faults.popitem(last=False)

    # -- reading -------------------------------------------------------------------------------------------------------

    def _time(self) -> dict[str, Any]:
        return {"from": self.start, "width_s": self.width_s, "parts": self.count, "grain": PARTS}

    def curves(self, resource: str) -> dict[str, Any]:
        """Return the curves of one resource, of the cluster and of the queues with most of it; none for another."""
        slot, count = self._resources.of.get(resource), self.count
        if slot is None:
            return self._time() | {"cluster": {}, "queues": [], "queues_left_out": 0}
        weight = self._queue[:, [_QUEUE.index("used"), _QUEUE.index("waiting")], slot, :count].sum(axis=(1, 2))
        names = sorted(self._queues.of, key=lambda name: (-float(weight[self._queues.of[name]]), name))
        charted = sorted(names[:QUEUES_CHARTED])
        return self._time() | {
            "cluster": {name: rounded(self._cluster[i, slot, :count]) for i, name in enumerate(_CLUSTER)},
            "waiting": rounded(self._waiting[:count]),
            "queues": [
                {"name": name}
                | {kind: rounded(self._queue[self._queues.of[name], i, slot, :count]) for i, kind in enumerate(_QUEUE)}
                for name in charted
            ],
            "queues_left_out": len(names) - len(charted),
        }

    def health(self) -> dict[str, Any]:
        """Return how the last cycles went, at most ``CYCLES_KEPT``: their times in seconds, None if not measured, and
        what went wrong in them."""
        seconds = sorted(_whole(each.spans) for each in self.cycles if each.spans)
        return {
            "cycles": len(self.cycles),
            "median_s": seconds[len(seconds) // 2] if seconds else None,
            "longest_s": seconds[-1] if seconds else None,
            "faults": sum(each.faults for each in self.cycles),
            "cuts": sum(each.cuts for each in self.cycles),
            "evicted": sum(each.evicted for each in self.cycles),
        }

    def times(self) -> dict[str, Any]:
        """Return where the time of cycles went, their faults, and the last of them, newest first."""
        count = self.count
        return self._time() | {
            "counts": {name: self._counts[i, :count].tolist() for i, name in enumerate(_COUNTS)},
            "spans": {name: rounded(self._seconds[slot, :count]) for name, slot in self._spans.of.items()},
            "longest": rounded(self._longest[:count]),
            "cycles": [
                {
                    "number": each.number,
                    "at": each.at,
                    "seconds": _whole(each.spans),
                    "spans": each.spans,
                    "bound": each.bound,
                    "evicted": each.evicted,
                    "faults": each.faults,
                    "cuts": each.cuts,
                }
                for each in reversed(self.cycles)
            ],
            "faults": [
                {
                    "plugin": row.fault.plugin,
                    "text": row.fault.text,
                    "subject": row.fault.subject,
                    "count": row.count,
                    "cycle": row.cycle,
                    "at": row.at,
                }
                for row in reversed(self._faults.values())
            ],
        }


def _whole(spans: dict[str, float] | Any) -> float:
    """Return the seconds of a cycle: plugins are a part of opening and closing, and not counted twice."""
    return float(sum(seconds for name, seconds in spans.items() if not name.startswith("plugin ")))


def _halve(array: AnyArray, halved: AnyArray) -> None:
    array[..., : PARTS // 2] = halved
    array[..., PARTS // 2 :] = 0


def rounded(values: AnyArray | Sequence[float]) -> list[float]:
    """Return values with four significant digits, more than a curve shows: they are most of what is sent."""
    found: F64 = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore"):
        step = np.where(found == 0, 1.0, 10.0 ** (np.floor(np.log10(np.abs(found))) - 3))
    whole = np.rint(found / step)
    # Divided where the step is below one, so that 0.1 is not 0.1000…01.
    listed: list[float] = np.where(step < 1, whole / np.rint(1 / np.minimum(step, 1.0)), whole * step).tolist()
    return listed
