"""Sub-jobs as columns: the parts of a gang that have a minimum and a topology of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import I32, I64, AnyArray
from pumice.columns.table import Table, number, objects
from pumice.model.status import STATUS_COUNT
from pumice.model.workloads.podgroup import NetworkTopology


class SubJobTable(Table):
    """S rows. A job has a default sub-job as soon as it has a task that no sub-group policy selects."""

    uids: Sequence[str] = objects()
    gids: Sequence[str] = objects()
    topologies: Sequence[NetworkTopology | None] = objects()
    #: Rows of tasks in fallback order (creation, uid).
    tasks: Sequence[AnyArray] = objects()
    job: I32 = number(np.int32, -1, rows_of="jobs")
    min_available: I32 = number(np.int32)
    #: The order among the sub-jobs of one policy.
    match_index: I64 = number(np.int64)
    priority: I64 = number(np.int64)
    best_effort: I32 = number(np.int32, moves=True)
    #: The hypernode that holds the tasks, -1 for none.
    hypernode: I32 = number(np.int32, -1, moves=True, rows_of="tree")
    #: The hypernode that a cycle before chose and waits for, -1 for none.
    nominated: I32 = number(np.int32, -1, moves=True, rows_of="tree")
    counts: I32 = number(np.int32, moves=True)

    def __init__(self, versions: Versions) -> None:
        # No stamps: what is remembered about a sub-job rests on the stamp of its job.
        super().__init__(versions, {"counts": (STATUS_COUNT,)}, stamped=False)
