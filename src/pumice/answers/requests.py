"""What jobs that wait ask for, and how much of it there is."""

from __future__ import annotations

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import EPS, F64
from pumice.columns.tables import Tables


def waiting_amounts(tables: Tables) -> F64:
    """Return what the pods of each job that wait ask for together, with shares of GPUs. Shape (J, R)."""
    tasks, jobs = tables.tasks, tables.jobs
    rows = (tasks.alive & (tasks.job >= 0) & (tasks.status == PENDING)).nonzero()[0]
    found = sums_by(tasks.job[rows], tables.classes.charge[tasks.cls[rows]], len(jobs.queue))
    # Volcano creates the pods of a job only once it is admitted; before, its minimum says what it asks for.
    unborn = jobs.alive & jobs.has_min & (jobs.size == 0)
    found[unborn] = jobs.min_resources[unborn]
    return found


def room_for(tables: Tables, job: int) -> int:
    """Return how many more pods like the first of a job that waits fit by resources alone, on nodes without taints and
    cordons. A guess: filters are not asked."""
    tasks, nodes = tables.tasks, tables.nodes
    rows = [row for row in tables.jobs.tasks[job].tolist() if tasks.status[row] == PENDING]
    if not rows:
        return 0
    req, facts = tables.classes.req[tasks.cls[rows[0]]], nodes.facts
    asked = (req > 0).nonzero()[0]
    tainted = np.array([bool(each) for each in facts.taint_sets], dtype=bool)
    there = ~facts.unschedulable & ~tainted[facts.taint_code]
    if not len(asked) or not there.any():
        return 0
    room = np.floor((nodes.future[there][:, asked] + EPS) / req[asked]).min(axis=1)
    return int(np.maximum(room, 0.0).sum())
