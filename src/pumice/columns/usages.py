"""How busy nodes are, and what queues had lately, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import F64
from pumice.columns.table import Table, number, objects
from pumice.model.usage import NodeUsage, QueueHistory

Measured = TypeVar("Measured", NodeUsage, QueueHistory)


class MeasuredTable(Table, Generic[Measured]):
    """One row each, in the order of names; made anew when something new was measured. The columns of its own are the
    fields of the value, in their order: ``names`` first."""

    VALUE: ClassVar[type[Any]]

    def __init__(self, versions: Versions, values: Iterable[Measured] = ()) -> None:
        super().__init__(versions, stamped=False)
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
    """By the name of the node. ``cpu`` and ``memory`` in percent, ``at`` in seconds since the epoch."""

    VALUE = NodeUsage

    names: Sequence[str] = objects()
    cpu: F64 = number(np.float64)
    memory: F64 = number(np.float64)
    at: F64 = number(np.float64)


class HistoryTable(MeasuredTable[QueueHistory]):
    """By the name of the queue. Parts of the cluster, and ``at`` in seconds since the epoch."""

    VALUE = QueueHistory

    names: Sequence[str] = objects()
    cpu: F64 = number(np.float64)
    memory: F64 = number(np.float64)
    gpu: F64 = number(np.float64)
    at: F64 = number(np.float64)
