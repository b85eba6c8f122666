"""Which nominations still keep room for their job."""

from __future__ import annotations

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import AnyArray
from pumice.columns.tasks import TaskTable
from pumice.placing.feasibility import Feasibility


def kept_nominations(tasks: TaskTable, feasible: Feasibility) -> AnyArray:
    """Return the jobs that have a task whose nominated node has room for it, now or when what leaves has left."""
    # A nomination is not taken back when others get the node. Then nothing is kept for the job, and going first, it
    # would take for ever what was freed for another one (decision 0016).
    kept = [
        row for row in tasks.awaiting().tolist() if feasible.of(int(tasks.cls[row])).future_fits[tasks.nominated[row]]
    ]
    return distinct(tasks.job[kept])
