"""Topologies (levels of node labels) as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.columns.column import Versions
from pumice.columns.table import Table, objects
from pumice.model.topology import Topology


class TopologyTable(Table):
    """One row each, by name; made anew when a Topology comes, goes or changes."""

    objs: Sequence[Topology] = objects()

    def __init__(self, versions: Versions, topologies: Iterable[Topology] = ()) -> None:
        super().__init__(versions, stamped=False)
        in_order = sorted(topologies, key=lambda topology: topology.name)
        self._resize(len(in_order))
        for row, topology in enumerate(in_order):
            self.write(row, alive=True, objs=topology)
