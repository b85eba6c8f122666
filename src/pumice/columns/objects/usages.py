"""Measured usage as tables: the load of nodes, the recent share of queues, and what ended pods used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import F64, I64, ResourceAxis
from pumice.columns.table import Table, number, objects
from pumice.model.usage import SPANS, NodeUsage, QueueHistory, UsageWindow

Measured = TypeVar("Measured", NodeUsage, QueueHistory)


class MeasuredTable(Table, Generic[Measured]):
    """A table of measurements in the order of names, replaced as a whole with each measurement."""

    # A subclass declares one column for each field of VALUE, in the same order, ``names`` first.
    VALUE: ClassVar[type[Any]]

    def __init__(self, versions: Versions, values: Iterable[Measured] = ()) -> None:
        super().__init__(versions, stamped=False)
        # By name, so that equal measurements give equal bytes in whatever order they arrive.
        in_order = sorted(values, key=lambda value: value.name)
        self._resize(len(in_order))
        if in_order:
            rows = map(attrgetter(*self.VALUE.__struct_fields__), in_order)
            self.write(slice(None), alive=True, **dict(zip(self._own(), zip(*rows, strict=True), strict=True)))

    @property
    def objs(self) -> list[Measured]:
        """The rows as values."""
        rows = zip(*(self.columns[name].array.tolist() for name in self._own()), strict=True)
        return [self.VALUE(*row) for row in rows]

    def _own(self) -> list[str]:
        return [name for name in self.FIELDS if name != "alive"]


class UsageTable(MeasuredTable[NodeUsage]):
    """The load of nodes, by name. Units: ``cpu`` and ``memory`` in percent, ``at`` in seconds since the epoch."""

    VALUE = NodeUsage

    names: Sequence[str] = objects()
    cpu: F64 = number(np.float64)
    memory: F64 = number(np.float64)
    at: F64 = number(np.float64)


class HistoryTable(MeasuredTable[QueueHistory]):
    """What queues used lately, by name. Units: parts of the cluster (0 to 1), ``at`` in seconds since the epoch."""

    VALUE = QueueHistory

    names: Sequence[str] = objects()
    cpu: F64 = number(np.float64)
    memory: F64 = number(np.float64)
    gpu: F64 = number(np.float64)
    at: F64 = number(np.float64)


class LabelUsageTable(Table):
    """What ended pods used, with a row for each value of a window's label.

    A window is divided into SPANS spans of equal length, numbered from the epoch on.
    """

    label: Sequence[str] = objects()
    label_value: Sequence[str] = objects()
    window_s: F64 = number(np.float64)
    #: The number of the row's newest span.
    newest: I64 = number(np.int64)
    #: Requests times the seconds that pods ran in each span (rows, SPANS, R). A ring: span ``n`` is at ``n % SPANS``,
    #: so that moving the window on overwrites the oldest span and shifts nothing.
    amounts: F64 = number(np.float64)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, axis)

    def __init__(self, versions: Versions, axis: ResourceAxis) -> None:
        super().__init__(versions, {"amounts": (SPANS, len(axis))}, stamped=False)

    def rows_of(self, window: UsageWindow) -> list[int]:
        """Return the rows of a window."""
        found = (self.alive & (self.window_s == window.window_s)).nonzero()[0].tolist()
        return [row for row in found if self.label[row] == window.label]

    def used(self, window: UsageWindow, now: float) -> dict[str, F64]:
        """Return for each value of the label the sum over the spans that are in the window at ``now``. Shape (R,)."""
        rows = np.array(self.rows_of(window), dtype=np.int64)
        newest = self.newest[rows, None]
        # The number of the span at each position of the ring: the greatest one, up to the newest, with that remainder.
        spans = newest - (newest - np.arange(SPANS)) % SPANS
        # A row may have been written long ago, so its newest spans can be out of the window too.
        in_window = (spans > window.span_of(now) - SPANS).astype(np.float64)
        sums = np.einsum("vs,vsr->vr", in_window, self.amounts[rows])
        return dict(zip([self.label_value[row] for row in rows.tolist()], sums, strict=True))

    def add(self, row: int, amounts: F64, start: float, end: float) -> None:
        """Add amounts (R,) that were used from ``start`` to ``end``, seconds since the epoch."""
        window = UsageWindow(self.label[row], float(self.window_s[row]))
        before, first, last = int(self.newest[row]), window.span_of(start), window.span_of(end)
        newest, ring = max(before, last), self.amounts[row].copy()
        # Spans that are new to the ring take positions of spans that left it.
        if last > before:
            ring[np.arange(max(before, last - SPANS) + 1, last + 1) % SPANS] = 0.0
        # What was used before the oldest span in the ring is dropped.
        spans = np.arange(max(first, newest - SPANS + 1), last + 1)
        begins = spans * window.span_s
        seconds = np.minimum(begins + window.span_s, end) - np.maximum(begins, start)
        ring[spans % SPANS] += np.maximum(seconds, 0.0)[:, None] * amounts
        self.write(row, amounts=ring, newest=newest)

    def measure(self, before: ResourceAxis, axis: ResourceAxis) -> None:
        """Change to another axis of resources.

        Amounts of resources that are not on the new axis are dropped: no node offers them any more.
        """
        held, kept = self.amounts, [name for name in before.names if name in axis.column]
        self._remake({"amounts": (SPANS, len(axis))})
        amounts = self.amounts.copy()
        amounts[..., [axis.column[name] for name in kept]] = held[..., [before.column[name] for name in kept]]
        self.write(slice(None), amounts=amounts)
