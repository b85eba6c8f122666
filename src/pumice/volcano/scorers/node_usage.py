"""What was measured of nodes, along the rows of nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, Bool, read_only
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.framework.memo import ground

#: Seconds after which a measurement says nothing any more. Source: Volcano.
FRESH_S = 300.0


class NodeUsages(NamedTuple):
    """``cpu`` and ``memory`` in percent, ``at`` seconds since the epoch, 0 where nothing was ever measured. (N,) each,
    not to be written on."""

    cpu: F64
    memory: F64
    at: F64

    def fresh(self, now: float) -> Bool:
        """Of which nodes that still says something; what is far in the future does not. Shape (N,)."""
        found: Bool = (self.at > 0) & (np.abs(now - self.at) <= FRESH_S)
        return found


def node_usage(ssn: Session) -> NodeUsages:
    """Those of a session's snapshot."""
    tables = ssn.tables
    rests_on = (tables.nodes.facts.version, *ground(*tables.usages.columns.values()))
    return ssn.memo.get("node usage", rests_on, lambda: _along_nodes(tables))


def _along_nodes(tables: Tables) -> NodeUsages:
    row_of, usages = tables.nodes.facts.row_of, tables.usages
    nodes = np.array([row_of.get(name, -1) for name in usages.names], dtype=np.int64)
    known = nodes >= 0
    found = np.zeros((3, len(tables.nodes.facts)))
    for amounts, measured in zip(found, (usages.cpu, usages.memory, usages.at), strict=True):
        amounts[nodes[known]] = np.where(np.isfinite(measured[known]), measured[known], 0.0)
    return NodeUsages(*map(read_only, found))
