"""How busy nodes are, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import F64
from pumice.columns.table import Table, number, objects
from pumice.model.usage import NodeUsage


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
