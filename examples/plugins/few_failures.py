"""Prefer nodes with few failures, which a label of each node counts."""

from __future__ import annotations

import numpy as np

from pumice.api import F64, NodeRows, Session, TaskClass, plugin, points


@plugin("few-failures")
class FewFailures:
    """A node scores 100 without failures, 50 with one, 33 with two, and so on, times the weight."""

    def __init__(self, ssn: Session, *, label: str = "example.com/failures", weight: float = 1.0) -> None:
        failures = ssn.nodes.label(label)
        score = np.array([100 * weight / (1 + number_in(value)) for value in failures.values])
        self.score = score[failures.codes]  # of each node, by its row

    @points.node_order
    def node_order(self, cls: TaskClass, nodes: NodeRows) -> F64:
        return nodes.pick(self.score)


def number_in(value: str) -> int:
    """The number that a label says; 0 for a node without the label and for a label that is not a number."""
    return int(value) if value.isdecimal() and len(value) < 10 else 0
