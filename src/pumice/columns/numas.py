"""What agents say of the CPUs of nodes, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.columns.column import Versions
from pumice.columns.table import Table, objects
from pumice.model.numa import Numatopology


class NumaTable(Table):
    """One row each, by the name of the node; made anew when one of them comes, goes or changes."""

    objs: Sequence[Numatopology] = objects()

    def __init__(self, versions: Versions, numas: Iterable[Numatopology] = ()) -> None:
        super().__init__(versions, stamped=False)
        in_order = sorted(numas, key=lambda numa: numa.name)
        self._resize(len(in_order))
        for row, numa in enumerate(in_order):
            self.write(row, alive=True, objs=numa)
