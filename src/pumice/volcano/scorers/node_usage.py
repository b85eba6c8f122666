"""Align measured usage with the rows of nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, Bool, read_only
from pumice.framework.cycle.session import Session

#: Seconds after which a measurement is stale. Source: Volcano usage plugin.
FRESH_S = 300.0


class NodeUsages(NamedTuple):
    """Usage of nodes, (N,) each, read-only. ``cpu`` and ``memory`` in percent; ``at`` in seconds since the epoch, 0 if
    never measured."""

    cpu: F64
    memory: F64
    at: F64

    def fresh(self, now: float) -> Bool:
        """Return True for nodes with a recent measurement. Shape (N,)."""
        # The absolute difference also rejects measurements far in the future, from a clock that is wrong.
        found: Bool = (self.at > 0) & (np.abs(now - self.at) <= FRESH_S)
        return found


def node_usage(ssn: Session) -> NodeUsages:
    """Return the usage of nodes in a session's snapshot."""
    tables = ssn.tables
    row_of, usages = tables.nodes.facts.row_of, tables.usages
    # Usage of a node that has just been removed may still be there.
    nodes = np.array([row_of.get(name, -1) for name in usages.names], dtype=np.int64)
    known = nodes >= 0
    found = np.zeros((3, len(tables.nodes.facts)))
    for amounts, measured in zip(found, (usages.cpu, usages.memory, usages.at), strict=True):
        # A source may report NaN for a node without samples.
        amounts[nodes[known]] = np.where(np.isfinite(measured[known]), measured[known], 0.0)
    return NodeUsages(*map(read_only, found))
