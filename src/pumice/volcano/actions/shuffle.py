"""shuffle: evict running tasks that plugins name, without a task to place instead. Source: Volcano shuffle action."""

from __future__ import annotations

import numpy as np

from pumice.columns.rows import TaskRows
from pumice.framework.cycle.session import Session
from pumice.model.status import TaskStatus
from pumice.volcano import points

REASON = "shuffle"


def shuffle(ssn: Session) -> None:
    """Evict each task in a statement of its own, so that a refused eviction does not affect the others."""
    if not ssn.has(points.victim_tasks):
        return
    tasks = ssn.tables.tasks
    rows = (tasks.alive & (tasks.status == TaskStatus.RUNNING) & (tasks.job >= 0) & (tasks.node >= 0)).nonzero()[0]
    # Jobs that cannot be read are left alone in every respect, so nothing is evicted for a wrong reason.
    rows = rows[~ssn.tables.jobs.quarantined[tasks.job[rows]]]
    if not len(rows):
        return
    # By name: plugins take the first ones up to a budget, and rows depend on which pods were there before. A cycle of a
    # record, which is run on a store of its own, must evict the same pods.
    rows = rows[np.argsort([tasks.pods[row].key for row in rows.tolist()], kind="stable")]
    # All tasks at once, because plugins apply budgets over them.
    victims = rows[ssn.ask(points.victim_tasks, TaskRows(ssn.tables, rows))]
    for row in victims.tolist():
        with ssn.fault_scope(tasks.pods[row].key), ssn.statement() as stmt:
            stmt.evict([row], REASON)
            stmt.commit()
