"""Keep jobs off nodes whose maintenance begins before the jobs are expected to end."""

from __future__ import annotations

import numpy as np

from pumice.api import NOW, ROWS, FilterResult, NodeRows, Session, Task, Unfit, plugin, points


@plugin("before-maintenance")
class BeforeMaintenance:
    """Refuse nodes whose maintenance begins before a job would end by its estimate, if it started now."""

    def __init__(self, ssn: Session, *, label: str = "example.com/maintenance-at") -> None:
        self.ssn = ssn
        begins = ssn.nodes.label(label)
        moments = np.array([moment_in(value) for value in begins.values])
        self.begins = moments[begins.codes]  # of each node, by its row

    @points.predicate(reads=(ROWS, NOW))
    def predicate(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        end = self.ssn.now + task.job.estimate_s
        return FilterResult.of(nodes.pick(self.begins) >= end, Unfit("node(s) had maintenance before the job ends"))


def moment_in(value: str) -> float:
    """Seconds since the epoch that a label says; infinity if it is not such a number."""
    return float(value) if value.isdecimal() and len(value) < 12 else float("inf")
