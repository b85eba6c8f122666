"""How busy nodes are, and what queues had lately, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import F64
from pumice.columns.table import Table, number, objects
from pumice.model.usage import NodeUsage, QueueHistory


class UsageTable(Table):
    """One row each, by the name of the node; made anew when something new was measured. ``cpu`` and ``memory`` in
    percent, ``at`` in seconds since the epoch."""

    names: Sequence[str] = objects()
    cpu: F64 = number(np.float64)
    memory: F64 = number(np.float64)
    at: F64 = number(np.float64)

    def __init__(self, versions: Versions, usages: Iterable[NodeUsage] = ()) -> None:
        super().__init__(versions, stamped=False)
        in_order = sorted(usages, key=lambda usage: usage.name)
        self._resize(len(in_order))
        if in_order:
            self.write(
                slice(None),
                alive=True,
                names=[usage.name for usage in in_order],
                cpu=[usage.cpu for usage in in_order],
                memory=[usage.memory for usage in in_order],
                at=[usage.at for usage in in_order],
            )

    @property
    def objs(self) -> list[NodeUsage]:
        """The rows as values."""
        each = zip(self.names, self.cpu.tolist(), self.memory.tolist(), self.at.tolist(), strict=True)
        return [NodeUsage(*row) for row in each]


class HistoryTable(Table):
    """One row each, by the name of the queue; made anew when something new was measured. Parts of the cluster, and
    ``at`` in seconds since the epoch."""

    names: Sequence[str] = objects()
    cpu: F64 = number(np.float64)
    memory: F64 = number(np.float64)
    gpu: F64 = number(np.float64)
    at: F64 = number(np.float64)

    def __init__(self, versions: Versions, histories: Iterable[QueueHistory] = ()) -> None:
        super().__init__(versions, stamped=False)
        in_order = sorted(histories, key=lambda each: each.name)
        self._resize(len(in_order))
        for row, each in enumerate(in_order):
            self.write(row, alive=True, names=each.name, cpu=each.cpu, memory=each.memory, gpu=each.gpu, at=each.at)

    @property
    def objs(self) -> list[QueueHistory]:
        """The rows as values."""
        columns = (self.cpu.tolist(), self.memory.tolist(), self.gpu.tolist(), self.at.tolist())
        return [QueueHistory(*row) for row in zip(self.names, *columns, strict=True)]
